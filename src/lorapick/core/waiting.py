"""Let a request wait at the picker, refuse it, or clear a slot for it.

In: a case for which no pod can be picked now. Out: Hold and Reject effects; who waits, in the state.
Not here: which pod it gets (see `core.deciding`), who is tried next (see `core.admission`).
"""

from lorapick.core.admission.queues import Waiter
from lorapick.core.case import Case, journal, pick_value, reject
from lorapick.core.columns import CODE, REASONS, TIER_BITS
from lorapick.core.holding_back import why_held_back
from lorapick.core.naming import near_names
from lorapick.core.picking.filters import veto
from lorapick.core.picking.pick import NOBODY
from lorapick.core.picking.verdicts import judge, why_nobody
from lorapick.core.state import FleetState, Flight
from lorapick.core.waiting_room import why_full
from lorapick.model.bands import Ordering
from lorapick.model.effects import Effect, Hold
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, RequestId, Seconds

PASSING_AWAY = (
    CODE[Reason.QUEUE_FULL],
    CODE[Reason.SLOTS_FULL],
    CODE[Reason.LOAD_BUDGET],
    CODE[Reason.PROBATION],
    CODE[Reason.PRESSURE_SOFT],
    CODE[Reason.PRESSURE_HARD],
)
"""Vetoes that end when the pod has done what it is doing."""
WRONG = 4.0
"""Times the expected wait after which nobody trusts the expectation any more."""
MOST_TRIES = 16
"""Flows that are tried in vain before those behind them must wait for the next event."""


def hold_for_load(case: Case, row: int) -> list[Effect]:
    """Let it follow the load on a row; nothing when it does so already; a refusal when too many wait."""
    state, flight = case.state, case.flight
    request = flight.request
    effects: list[Effect] = []
    if flight.follow_until is None:
        since, until = _span(case)
        if case.now >= until:
            return [reject_nobody(case, waited=case.now - since)]
        if not may_wait(case):
            return [_shed(case, full=why_full(case))]
        effects = _make_room(case)
        if flight.waits_since is None:
            flight.waits_since = case.now
        flight.follow_until = _patience(case, row)
    elif state.holds.row_of(request.id) == row:
        return []
    state.stop_waiting(request.id)
    state.holds.add(request.id, row, until=flight.follow_until)
    made = pick_value(case, NOBODY, reason=Reason.HELD_FOR_LOAD, follows=state.columns.targets[row].pod)
    journal(case, made, outcome="held", until=flight.follow_until)
    held = Hold(
        cause=case.cause, request_id=request.id, until=flight.follow_until, reason=Reason.HELD_FOR_LOAD, pick=made
    )
    return [*effects, held]


def cheaper_to_wait(case: Case, row: int) -> bool:
    """Whether a place on a pod that has its adapter, and whose queue is full, costs less than a load on `row`.

    A place comes with each end there, after those who wait already; the load costs what it takes and what it does to
    others. Who has waited for as long as that waits no longer, nor does who would have to give up meanwhile, or has
    waited for so long that what was expected of the holder is wrong.
    """
    state, query, name = case.state, case.query, case.flight.adapter_name
    codes, full = query.codes, CODE[Reason.QUEUE_FULL]
    if name is None or codes is None or (codes[row] & TIER_BITS) >= Tier.LOADING:
        return False
    if not case.policy.coalesces or not may_wait(case):
        return False
    waits: Seconds | None = None
    for other, _ in state.columns.live():
        if (codes[other] & TIER_BITS) >= Tier.LOADING and veto(query, state.columns, row=other, now=case.now) == full:
            there = state.columns.load[other]
            each = state.prices.service.expected(there) / max(1.0, there)
            waits = each if waits is None else min(waits, each)
    if waits is None:
        return False
    waits *= 1 + state.queues.count(name)
    since, until = _span(case)
    waited = case.now - since
    return case.now + waits < until and waited + waits < load_cost(case, row) and waited <= WRONG * waits


def load_cost(case: Case, row: int) -> Seconds:
    """Seconds that a load of its adapter on a row costs, its own and those of others."""
    state, codes = case.state, case.query.codes
    assert codes is not None
    loads = state.prices.loads
    own = loads.cpu if (codes[row] & TIER_BITS) == Tier.CPU else loads.disk
    return own + state.prices.of_load(state.residency.home(row), state.columns.load[row], now=case.now)


def may_wait(case: Case) -> bool:
    """Whether it waits already, or may begin to: priorities below 0 never do, and there must be room and time."""
    state, request = case.state, case.flight.request
    if case.now >= _span(case)[1]:
        return False
    if request.id in state.holds or request.id in state.queues:
        return True
    if request.priority < 0 or why_full(case) is not None:
        return False
    return state.waiting < state.settings.admission.max_queued or _gives_way(state, request.priority) is not None


def _make_room(case: Case) -> list[Effect]:
    """Nothing, or the refusal of somebody of lower priority whose place this request takes, which may wait.

    Who waits already keeps the place that it has.
    """
    state, request = case.state, case.flight.request
    if request.id in state.holds or request.id in state.queues:
        return []
    if state.waiting < state.settings.admission.max_queued:
        return []
    last = _gives_way(state, request.priority)
    assert last is not None, f"{request.id!r} may not wait"
    return [_shed(Case(state, state.flights[last], now=case.now, cause=case.cause), full=None)]


def _gives_way(state: FleetState, priority: int) -> RequestId | None:
    """Who gives up its place to a request of this priority: the last one of the lowest band, if that is lower."""
    flights, queued = state.flights, state.queues.yields_to(priority)
    waiting = [*state.holds.held] if queued is None else [*state.holds.held, queued.request_id]
    bands = [(flights[each].request.priority, -(flights[each].waits_since or 0.0), each) for each in waiting]
    lowest = min(bands, key=lambda band: band[:2], default=None)
    return lowest[2] if lowest is not None and lowest[0] < priority else None


def _shed(case: Case, *, full: str | None, busy: str | None = None) -> Effect:
    priority = case.flight.request.priority
    text = full or f"{case.state.settings.admission.max_queued} requests wait already (admission.max_queued)"
    if priority < 0:
        text = f"its priority is {priority}, below 0 (objectives), and it would have to wait"
    return reject(case, Reason.SHED, message=text if busy is None else f"{text}: {busy}")


def wait(case: Case, *, busy: str | None = None) -> list[Effect]:
    """No pod can take it now: let it wait for a place; refuse it when none will come, or it has waited for long.

    Or some pod could, and the fleet is too `busy` for its priority, which says how busy.
    """
    state, flight, now = case.state, case.flight, case.now
    request = flight.request
    bound = state.queues.until(request.id)
    awaited = _awaited(case) if busy is None else CODE[Reason.HELD_BACK]
    if not awaited:
        return [reject_nobody(case)]
    since, until = _span(case)
    if now >= until:
        return [_too_late(case, waited=now - since, busy=busy)]
    if bound is not None and bound > now:
        return []
    if not may_wait(case):
        return [_shed(case, full=why_full(case), busy=busy)]
    effects = _make_room(case)
    flight.waits_since = since
    state.stop_waiting(request.id)
    state.queues.add(
        Waiter(
            request_id=request.id,
            flow=(request.priority, request.fairness_id or "", flight.adapter_name),
            since=since,
            until=until,
            rank=_rank(case, until),
        )
    )
    if state.placement.keeps:
        state.placement.hurry(now)  # a touch may be all that is needed
    made = pick_value(case, NOBODY, reason=Reason.HELD_FOR_SLOT)
    journal(case, made, outcome="held", until=until, because=REASONS[awaited])
    held = Hold(cause=case.cause, request_id=request.id, until=until, reason=Reason.HELD_FOR_SLOT, pick=made)
    return [*effects, held]


def _rank(case: Case, until: Seconds) -> Seconds:
    """By which it is ordered among those of its flow; 0: by when it came."""
    match case.state.settings.admission.ordering:
        case Ordering.DEADLINE:
            return until
        case Ordering.SLO:
            wanted = case.flight.request.first_token_by
            return float("inf") if wanted is None else wanted
        case _:
            return 0.0


def would_wait(case: Case) -> Reason:
    """What `wait` would come to: a wait for a place, or why the request would be refused."""
    if not _awaited(case):
        return why_nobody(judge(case.query, case.state.columns, now=case.now, policy=case.policy))
    return Reason.HELD_FOR_SLOT if may_wait(case) else Reason.SHED


def _awaited(case: Case) -> int:
    """Veto code of the first pod that would take it if only it had room; 0: waiting would not help.

    Room is a seat, a slot, time for a load, less pressure.
    """
    if not case.policy.waits:
        return 0
    state, query, slots_full = case.state, case.query, CODE[Reason.SLOTS_FULL]
    for row, _ in state.columns.live():
        code = veto(query, state.columns, row=row, now=case.now)
        # A pod without slots will not have one later either.
        if code in PASSING_AWAY and (code != slots_full or state.loads[row].limits.max_loras > 0):
            return code
    return 0


def _patience(case: Case, row: int) -> Seconds:
    """Until when to wait: as long as the load should take and a second one would; never past deadline and max_wait."""
    residency, flight, now = case.state.residency, case.flight, case.now
    name = flight.adapter_name
    assert name is not None
    ends = residency.loading_until(row, name)
    _, until = _span(case)
    return min(until, max(ends if ends is not None else now, now) + case.state.prices.loads.disk)


def _span(case: Case) -> tuple[Seconds, Seconds]:
    """Since when it waits, and until when it may: `max_wait`, and its own deadline."""
    flight, now = case.flight, case.now
    since = flight.waits_since if flight.waits_since is not None else now
    until, deadline = since + case.state.settings.admission.max_wait, flight.request.deadline
    return since, until if deadline is None else min(until, deadline)


# -- turns


def give_turns(state: FleetState, *, now: Seconds, cause: int) -> None:
    """Clear a slot for whoever has waited longer than patience allows, when nothing but slots keeps it waiting."""
    left = state.columns.slots_left
    full = [row for row, _ in state.columns.live() if left[row] <= 0.0 and not state.turns.taken(row)]
    tries = MOST_TRIES
    for waiter in state.queues.impatient(now) if full else ():
        name = waiter.flow[2]
        if name is None or state.turns.row_of(name) >= 0:
            continue
        case = Case(state, state.flights[waiter.request_id], now=now, cause=cause)
        if why_held_back(case, tries=False) is not None:
            continue
        row = _give_turn(case, name, rows=full)
        if row >= 0:
            full.remove(row)
        tries -= 1
        if not full or not tries:
            break


def _give_turn(case: Case, name: AdapterName, *, rows: list[int]) -> int:
    """Clear a slot on one of the rows; -1: on none of them it would help."""
    state, slots_full = case.state, CODE[Reason.SLOTS_FULL]
    rows = [row for row in rows if veto(case.query, state.columns, row=row, now=case.now) == slots_full]
    homes = [state.residency.home(row) for row in rows]
    home = state.turns.begin(name, homes, demand=state.prices.demand, now=case.now)
    if home is None:
        return -1
    state.tally.turns += 1
    state.gates.refresh(home.row)
    return home.row


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


def _hint(case: Case, counts: dict[str, int]) -> str:
    """What an operator may want to know of the reasons."""
    if Reason.PROBATION in counts:
        return f"; {case.flight.adapter_name!r} is on probation: declare it under `adapters` to lift that"
    silent = [load.detail for load in case.state.loads.values() if load.circuit_open and load.detail]
    return f"; pods do not answer: {silent[0]}" if Reason.CIRCUIT_OPEN in counts and silent else ""


def _too_late(case: Case, *, waited: Seconds, busy: str | None) -> Effect:
    if busy is None:
        return reject_nobody(case, waited=waited)
    told = f"it has waited for {waited:.3g} s, and still" if waited > 0.0 else "it may not wait, and"
    return reject(case, Reason.DEADLINE, message=f"{told} {busy}")


def reject_nobody(case: Case, *, waited: Seconds = 0.0) -> Effect:
    """No pod will take it: say what kept the mildest one from it. Who has `waited` until its time was up hears that."""
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
    message = f"no pod can serve {flight.request.model!r} now: {told}{_hint(case, counts)}"
    if waited > 0.0:
        return reject(case, Reason.DEADLINE, message=f"it has waited for {waited:.3g} s, and still {message}")
    return reject(case, why_nobody(judged), message=message)
