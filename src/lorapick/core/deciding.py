"""Decide about one request: which pod, hold it, or refuse it.

In: a flight that no pod has, and the fleet's state. Out: its Dispatch, Hold or Reject, and the decision in the journal.
Not here: which pod is best (see `core.picking`), what happens to the request before and after (see `core.requests`).
"""

from typing import NamedTuple

from lorapick.core.columns import TIER_BITS
from lorapick.core.draw import draw_for
from lorapick.core.explain import Decision, Journal
from lorapick.core.naming import near_names
from lorapick.core.picking.filters import QUEUE_FULL, STALE, passing, veto
from lorapick.core.picking.pick import NOBODY, Choice, pick
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.query import NOTHING_CACHED, Query, prepare
from lorapick.core.picking.verdicts import FULL, judge, why_nobody
from lorapick.core.state import FleetState, Flight
from lorapick.model.effects import Dispatch, Effect, Hold, Note, Reject
from lorapick.model.picks import Pick
from lorapick.model.reasons import Reason, status_of
from lorapick.model.requests import Outcome
from lorapick.model.tiers import Tier
from lorapick.model.units import PodName, Ratio, Seconds

TIERS = tuple(Tier)
"""By code; a call of the enum costs thirty times as much."""
LOADING = Tier.LOADING
"""Found faster than the enum's member."""
RETRY_AFTER = 1.0
"""Seconds that a client should wait before it tries a refused request again."""


class Case:
    """One decision while it is taken."""

    __slots__ = ("cause", "degraded", "draw", "flight", "now", "policy", "query", "state")

    def __init__(self, state: FleetState, flight: Flight, *, now: Seconds, cause: int) -> None:
        self.state = state
        self.flight = flight
        self.now = now
        self.cause = cause
        self.draw: Ratio = draw_for(state.seed, flight.request.id)
        self.policy: Policy = state.policy
        self.query: Query = _query(state, flight)
        self.degraded = False


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
    effects: list[Effect] = []
    choice = _choose(case, effects)
    lead = _follow(case, choice)
    if lead is not None:
        if not lead.room:
            return [*effects, *_hold(case, lead.row)]
        effects.append(_dispatch(case, _instead(case, choice, row=lead.row), follows_load=True))
    elif choice.row < 0:
        effects.append(_reject_nobody(case))
    else:
        effects.append(_dispatch(case, choice))
    return effects


def _query(state: FleetState, flight: Flight) -> Query:
    request = flight.request
    session_row = -1
    if request.session is not None:
        pod = state.sessions.get((request.model, request.session))
        session_row = state.columns.row_of.get(pod, -1) if pod is not None else -1
    kv = state.prefixes.match(flight.blocks) if flight.blocks else NOTHING_CACHED
    query = prepare(request, flight.adapter, columns=state.columns, kv=kv, session_row=session_row)
    query.seed = state.seed
    if state.policy.counts_in_flight and query.adapter is not None:
        query.in_flight = state.residency.in_flight(query.adapter)
    return query


# -- which pod


def _choose(case: Case, effects: list[Effect]) -> Choice:
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
    full = None
    for row in rows:
        code = veto(query, state.columns, row=row, now=case.now)
        if code == 0:
            return Lead(row, room=True)
        if code == QUEUE_FULL and full is None:
            full = Lead(row, room=False)
    return full


def _instead(case: Case, choice: Choice, *, row: int) -> Choice:
    """Take `row` although `choice` scored better; that one is the first fallback."""
    query, columns = case.query, case.state.columns
    score = case.policy.score(query, columns, row=row, rows=passing(query, columns, now=case.now))
    others = [other for other in (choice.row, *choice.fallbacks) if other not in (row, -1)]
    return Choice(row, score, tuple(others[: case.state.settings.picking.fallbacks]))


# -- hold


def _hold(case: Case, row: int) -> list[Effect]:
    state, flight = case.state, case.flight
    request = flight.request
    if flight.follow_until is None:
        if state.holds.full:
            return [
                reject(case, Reason.SHED, message=f"{state.holds.limit} requests wait already (admission.max_queued)")
            ]
        flight.follow_until = _patience(case, row)
    elif state.holds.row_of(request.id) == row:
        return []
    state.holds.add(request.id, row, until=flight.follow_until)
    made = _pick_value(case, NOBODY, reason=Reason.HELD_FOR_LOAD, follows=state.columns.targets[row].pod)
    if state.journal.on:
        _journal(case, made, outcome="held")
    return [
        Hold(cause=case.cause, request_id=request.id, until=flight.follow_until, reason=Reason.HELD_FOR_LOAD, pick=made)
    ]


def _patience(case: Case, row: int) -> Seconds:
    """Until when to wait: as long as the load should take and a second one would; never past deadline and max_wait."""
    residency, flight, now = case.state.residency, case.flight, case.now
    name = flight.adapter_name
    assert name is not None
    ends = residency.loading_until(row, name)
    bounds = [max(ends if ends is not None else now, now) + residency.load_time(Tier.DISK)]
    bounds.append(now + case.state.settings.admission.max_wait)
    if flight.request.deadline is not None:
        bounds.append(flight.request.deadline)
    return min(bounds)


# -- dispatch


def _dispatch(case: Case, choice: Choice, *, follows_load: bool = False) -> Effect:
    state, flight = case.state, case.flight
    request, columns = flight.request, state.columns
    if flight.follow_until is not None:
        state.holds.remove(request.id)
    row, targets = choice.row, columns.targets
    made = _pick_value(case, choice, follows=targets[row].pod if follows_load else None)
    if state.journal.on:
        _journal(case, made, outcome="dispatched")
    assign(state, flight, row=row, now=case.now)
    columns.turn = row + 1
    name = case.query.adapter
    return Dispatch(
        cause=case.cause,
        request_id=request.id,
        target=targets[row],
        fallbacks=tuple([targets[row] for row in choice.fallbacks]),
        pick=made,
        model=name if name is not None and name != request.model else None,
    )


def assign(state: FleetState, flight: Flight, *, row: int, now: Seconds) -> None:
    """Count a request in flight at a pod, from the moment it is sent there."""
    flight.row, flight.pod = row, state.columns.targets[row].pod
    tally, request = state.tally, flight.request
    tally.dispatched += 1
    if flight.adapter is not None:
        tier = flight.tier = state.residency.dispatched(row, flight.adapter.name, now=now)
        tally.picks_by_tier[tier.word] += 1
        if tier is LOADING:
            tally.coalesced += 1
        elif tier < LOADING:
            tally.loads += 1
    else:
        tally.picks_by_tier["base"] += 1
    state.loads[row].dispatched(now)
    if flight.blocks:
        state.prefixes.record(row, flight.blocks)
    if request.session is not None:
        state.remember_session(request, flight.pod)
    state.refresh(row)


# -- refusal


def reject_unknown(state: FleetState, flight: Flight, *, name: str, now: Seconds, cause: int) -> Effect:
    """Refuse a name that nobody serves; a name that a pod may yet turn out to serve gets another answer."""
    case = Case(state, flight, now=now, cause=cause)
    case.query.base = None  # the name is no base model either; no pod is vetoed for that
    if not state.columns.row_of:
        return reject(case, Reason.NO_POD, message="no pod is known")
    if state.residency.registry.nobody_asked:
        text = f"no pod has said yet whether it serves {name!r}; try again"
        return reject(case, Reason.NO_POD, message=text)
    near = near_names(state, name, now=now)
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    return reject(case, Reason.ADAPTER_UNKNOWN, message=f"The model `{name}` does not exist on any pod.{hint}")


def _reject_nobody(case: Case) -> Effect:
    state, flight = case.state, case.flight
    judged = judge(case.query, state.columns, now=case.now, policy=case.policy)
    counts: dict[str, int] = {}
    for pod in judged:
        word = pod.reason.value if pod.reason is not None else "ok"
        counts[word] = counts.get(word, 0) + 1
    registry, name = state.residency.registry, flight.adapter_name
    if name is not None and judged and registry.all_asked and not registry.known(name):
        return reject(case, Reason.ADAPTER_UNKNOWN, message=f"The model `{name}` does not exist on any pod any more.")
    told = ", ".join(f"{count} {word}" for word, count in counts.items()) or "no pod is known"
    return reject(case, why_nobody(judged), message=f"no pod can serve {flight.request.model!r} now: {told}")


def reject(case: Case, reason: Reason, *, message: str) -> Effect:
    """Answer the client ourselves; the request is over."""
    state, request_id = case.state, case.flight.request.id
    made = _pick_value(case, NOBODY, reason=reason)
    if state.journal.on:
        _journal(case, made, outcome="rejected")
    state.holds.remove(request_id)
    del state.flights[request_id]
    state.tally.outcomes[Outcome.REJECTED] += 1
    status = status_of(reason)
    retry = RETRY_AFTER if status in (429, 503) else None
    return Reject(
        cause=case.cause,
        request_id=request_id,
        status=status,
        reason=reason,
        message=message,
        retry_after=retry,
        pick=made,
    )


# -- the decision as a value


def _pick_value(case: Case, choice: Choice, *, reason: Reason | None = None, follows: PodName | None = None) -> Pick:
    query, columns, row = case.query, case.state.columns, choice.row
    codes, targets, won = query.codes, columns.targets, row >= 0
    return Pick(
        request_id=query.request_id,
        adapter=query.adapter,
        pod=targets[row].pod if won else None,
        score=choice.score if won else None,
        tier=TIERS[codes[row] & TIER_BITS] if won and codes is not None else None,
        fallbacks=tuple([targets[other].pod for other in choice.fallbacks]),
        reason=reason,
        follows=follows,
        policy=case.policy.name,
        version=columns.version,
        degraded=case.degraded,
    )


def _journal(case: Case, made: Pick, *, outcome: str) -> None:
    """Keep a copy of what the decision read. It is the last to read the query, which then reads the copy."""
    state, query = case.state, case.query
    if not Journal.wants(state.columns, case.draw, rejected=outcome == "rejected"):
        return
    view = state.columns.frozen(query.adapter, reads=case.policy.reads)
    if query.codes is not None:
        query.codes = view.codes
    state.journal.record(Decision(case.now, case.flight.request.model, made, outcome, query, view, case.policy))
