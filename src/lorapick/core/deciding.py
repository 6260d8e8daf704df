"""Decide about one request: which pod, hold it, or refuse it.

In: a flight that no pod has, and the fleet's state. Out: its Dispatch, Hold or Reject, and the decision in the journal.
Not here: which pod is best (see `core.picking`), what happens to the request before and after (see `core.requests`).
"""

from math import inf
from typing import NamedTuple

from lorapick.core import splitting
from lorapick.core.case import Case, journal, pick_value, reject, with_leg
from lorapick.core.columns import TIER_BITS
from lorapick.core.facts import note_cold
from lorapick.core.holding_back import why_held_back, why_shed
from lorapick.core.peers import claiming
from lorapick.core.picking.filters import QUEUE_FULL, STALE, passing, veto
from lorapick.core.picking.pick import NOBODY, Choice, pick
from lorapick.core.picking.verdicts import FULL
from lorapick.core.state import FleetState, Flight
from lorapick.core.waiting import cheaper_to_wait, hold_for_load, load_cost, may_wait, wait, would_wait
from lorapick.model.effects import Dispatch, Effect, Note
from lorapick.model.picks import Pick
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds

LOADING = Tier.LOADING
"""Found faster than the enum's member."""


class Lead(NamedTuple):
    """A pod whose load this request should follow."""

    row: int
    room: bool
    """Whether the pod takes it now."""


def decide(state: FleetState, flight: Flight, *, now: Seconds, cause: int) -> list[Effect]:
    """Dispatch, hold or reject one request that no pod has; nothing when it goes on waiting for the same pod."""
    case = Case(state, flight, now=now, cause=cause)
    deadline = flight.request.deadline
    if deadline is not None and now >= deadline:
        return [reject(case, Reason.DEADLINE, message="its deadline has passed")]
    if flight.request.priority < 0 and (busy := why_shed(case)) is not None:
        return [reject(case, Reason.SHED, message=busy)]
    row = state.turns.row_of(flight.adapter_name) if flight.adapter_name is not None else -1
    if row < 0:
        return _answer(case)
    state.gates.open(row)
    try:
        return _answer(case)
    finally:
        state.gates.refresh(row)


def _answer(case: Case) -> list[Effect]:
    effects: list[Effect] = []
    choice = choose(case, effects)
    if choice.row >= 0 and (busy := why_held_back(case)) is not None:
        return [*effects, *wait(case, busy=busy)]
    lead = _follow(case, choice)
    if lead is not None and lead.room:
        effects += _go(case, _instead(case, choice, row=lead.row), follows_load=True)
    elif lead is not None and (choice.row < 0 or may_wait(case)):
        effects += hold_for_load(case, lead.row)
    elif choice.row < 0 or cheaper_to_wait(case, choice.row):
        effects += wait(case)
    else:
        effects += _go(case, choice)
    return effects


def _go(case: Case, choice: Choice, *, follows_load: bool = False) -> list[Effect]:
    """Dispatch, unless other pickers must be asked first."""
    if not case.state.peers.on:
        return _dispatch(case, choice, follows_load=follows_load)
    row = claiming.where_claimed(case, choice)
    if row != choice.row:
        choice = _instead(case, choice, row=row)
    asked = claiming.ask_first(case, choice)
    return asked if asked is not None else _dispatch(case, choice, follows_load=follows_load)


def foresee(case: Case) -> Pick:
    """What `decide` would come to, and nothing comes of it. Who would have to wait has no pod, and the reason."""
    choice = choose(case, [])
    if choice.row >= 0 and why_held_back(case, tries=False) is not None:
        return pick_value(case, NOBODY, reason=Reason.HELD_FOR_SLOT if may_wait(case) else Reason.SHED)
    lead = _follow(case, choice)
    if lead is not None and (lead.room or choice.row < 0 or may_wait(case)):
        leader = case.state.columns.targets[lead.row].pod
        if lead.room:
            return pick_value(case, _instead(case, choice, row=lead.row), follows=leader)
        return pick_value(case, NOBODY, reason=Reason.HELD_FOR_LOAD, follows=leader)
    if choice.row < 0 or cheaper_to_wait(case, choice.row):
        return pick_value(case, NOBODY, reason=would_wait(case))
    return pick_value(case, choice)


# -- which pod


def choose(case: Case, effects: list[Effect]) -> Choice:
    """The best pod of all that may serve, fresh or not; notes of what went wrong go to `effects`."""
    choice = _pick(case, effects)
    if choice.row < 0 and _only_old_reports(case):
        # Never worse than no picker: old reports are better than a refusal.
        case.query.ignore_stale = case.degraded = True
        effects.clear()
        choice = _pick(case, effects)
    return choice


def _only_old_reports(case: Case) -> bool:
    """Whether some pod is kept out by the age of its report, and none that is fresh will have room again."""
    columns, query = case.state.columns, case.query
    if min([columns.fresh_until[row] for row in columns.row_of.values()], default=case.now) >= case.now:
        return False  # asked for each request that waits, each time that it is tried
    codes = [veto(query, columns, row=row, now=case.now) for row, _ in columns.live()]
    return STALE in codes and not any(code in FULL for code in codes)


def _pick(case: Case, effects: list[Effect]) -> Choice:
    """Pick by the configured policy; when that fails, by the spare one: scoring must not cost a request its pod."""
    state = case.state
    fallbacks = state.settings.picking.fallbacks
    try:
        return pick(case.query, state.columns, now=case.now, draw=case.draw, policy=case.policy, fallbacks=fallbacks)
    except Exception as error:  # noqa: BLE001 - whatever a policy raises must not cost the request its pod; it is noted
        facts: dict[str, str | float] = {"policy": case.policy.name, "error": f"{type(error).__name__}: {error}"}
        state.tally.scoring_errors += 1
        case.policy, case.degraded = state.spare_policy, True
    effects.append(Note(cause=case.cause, kind="scoring_error", facts=facts))
    return pick(case.query, state.columns, now=case.now, draw=case.draw, policy=case.policy, fallbacks=fallbacks)


def _follow(case: Case, choice: Choice) -> Lead | None:
    """The pod whose load this request should follow; None: it need not follow any.

    Followers of one load stay together [R3.3]: a second load may begin only when the first has kept them
    waiting for longer than it would have taken.
    """
    codes = case.query.codes
    if codes is None or not case.policy.coalesces:
        return None
    if choice.row >= 0 and (codes[choice.row] & TIER_BITS) >= LOADING:
        return None
    state, query, flight = case.state, case.query, case.flight
    name = flight.adapter_name
    assert name is not None
    if flight.follow_until is None:
        rows = state.residency.loading_rows(name)
    elif case.now < flight.follow_until:
        # The load it waited for may have ended.
        rows = [row for row in range(state.columns.rows) if (codes[row] & TIER_BITS) >= LOADING]
    else:
        return None
    full, best, least = None, -1, inf
    if case.policy.narrows:
        kept = case.policy.narrow(query, state.columns, rows=passing(query, state.columns, now=case.now))
        rows = [row for row in rows if row in kept]
    for row in rows:
        code = veto(query, state.columns, row=row, now=case.now)
        if code == QUEUE_FULL and full is None:
            full = Lead(row, room=False)
        elif code == 0 and (waits := _wait_behind(case, row)) < least:
            best, least = row, waits
    if best < 0:
        return full
    return Lead(best, room=True) if choice.row < 0 or not _dearer(case, least, than=choice.row) else None


def _wait_behind(case: Case, row: int) -> Seconds:
    """Seconds until an answer, for one more that follows a load under way on a row."""
    state, name = case.state, case.flight.adapter_name
    assert name is not None
    ends = state.residency.loading_until(row, name)
    left = max(0.0, ends - case.now) if ends is not None else 0.0
    return left + state.prices.service.expected(state.columns.load[row])


def _dearer(case: Case, waits: Seconds, *, than: int) -> bool:
    """Whether following a load for so long costs more than another load elsewhere [R3.3].

    By more than a load: the first one is paid for already, and both estimates may be wrong by as much.
    """
    state = case.state
    return waits > 2.0 * load_cost(case, than) + state.prices.service.expected(state.columns.load[than])


def _instead(case: Case, choice: Choice, *, row: int) -> Choice:
    """Take `row` although `choice` scored better; that one is the first fallback."""
    query, columns = case.query, case.state.columns
    score = case.policy.score(query, columns, row=row, rows=passing(query, columns, now=case.now))
    others = [other for other in (choice.row, *choice.fallbacks) if other not in (row, -1)]
    return Choice(row, score, tuple(others[: case.state.settings.picking.fallbacks]))


# -- dispatch


def _dispatch(case: Case, choice: Choice, *, follows_load: bool = False) -> list[Effect]:
    state, flight = case.state, case.flight
    request, columns = flight.request, state.columns
    if flight.waits_since is not None:
        state.stop_waiting(request.id)
    row, targets = choice.row, columns.targets
    made = pick_value(case, choice, follows=targets[row].pod if follows_load else None)
    leg_row = -1
    if state.splits:
        leg_row, costs = splitting.choose(
            state, case.query, row=row, request=request, policy=case.policy, draw=case.draw
        )
        made = with_leg(case, made, row=leg_row, costs=costs)
    if state.journal.on:
        journal(case, made, outcome="dispatched")
    claimed = claiming.begin(case, rows=(row, leg_row)) if state.peers.claims.ours else []
    assign(state, flight, row=row, now=case.now, reserve=leg_row >= 0)
    note_cold(state, case.query, rows=(row, leg_row))
    effects = splitting.begin(state, flight, row=leg_row, now=case.now, cause=case.cause) if leg_row >= 0 else []
    if state.queues.attained is not None:
        state.queues.attained.sent(request, now=case.now)
    columns.turn = row + 1
    name = case.query.adapter
    if name is not None and len(state.turns):
        state.end_turn(name)
    dispatch = Dispatch(
        cause=case.cause,
        request_id=request.id,
        target=targets[row],
        fallbacks=tuple([targets[columns.row_of[pod]] for pod in made.fallbacks]),
        pick=made,
        model=name if name is not None and name != request.model else None,
        prefill=targets[leg_row] if leg_row >= 0 else None,
    )
    flight.fallbacks = dispatch.fallbacks
    return [dispatch, *claimed, *effects]


def assign(state: FleetState, flight: Flight, *, row: int, now: Seconds, reserve: bool = False) -> None:
    """Count a request in flight at a pod, from the moment it is sent there.

    With `reserve` it is prefilled elsewhere first: the pod keeps a slot for it.
    """
    target = state.columns.targets[row]
    flight.row, flight.pod, flight.address = row, target.pod, target.address
    flight.reserved = reserve
    flight.sent, flight.ran_from, flight.load_then = now, None if reserve else now, state.columns.load[row]
    tally, request = state.tally, flight.request
    tally.dispatched += 1
    if flight.adapter is not None and reserve:
        tier = flight.tier = state.residency.reserve(row, flight.adapter.name)
        tally.picks_by_tier[tier.word] += 1
        tally.coalesced += tier is LOADING
    elif flight.adapter is not None:
        tier = flight.tier = state.residency.dispatched(row, flight.adapter.name, now=now)
        tally.picks_by_tier[tier.word] += 1
        if tier is LOADING:
            tally.coalesced += 1
        elif tier < LOADING:
            tally.loads += 1
            state.placement.load_began(row, now=now)
            state.prices.demand.load_began(now)
        if len(state.unloads):
            state.unloads.used(row, flight.adapter.name, now=now)
    else:
        tally.picks_by_tier["base"] += 1
    state.loads[row].dispatched(now)
    state.signals.dispatched(flight.pod, now=now)
    if flight.blocks:
        state.prefixes.record(row, flight.blocks)
    if request.session is not None:
        state.remember_session(request, flight.pod)
    state.refresh(row)
