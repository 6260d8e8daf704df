"""Let a request wait at the picker, refuse it, or clear a slot for it.

In: a case for which no pod can be picked now. Out: Hold and Reject effects; who waits, in the state.
Not here: which pod it gets (see `core.deciding`), who is tried next (see `core.admission`).
"""

from lorapick.core.admission.queues import Waiter
from lorapick.core.case import Case, journal, pick_value, reject
from lorapick.core.columns import CODE
from lorapick.core.naming import near_names
from lorapick.core.picking.filters import veto
from lorapick.core.picking.pick import NOBODY
from lorapick.core.picking.verdicts import judge, why_nobody
from lorapick.core.state import FleetState, Flight
from lorapick.model.effects import Effect, Hold
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

PASSING_AWAY = (
    CODE[Reason.QUEUE_FULL],
    CODE[Reason.SLOTS_FULL],
    CODE[Reason.LOAD_BUDGET],
    CODE[Reason.PROBATION],
    CODE[Reason.PRESSURE_SOFT],
    CODE[Reason.PRESSURE_HARD],
)
"""Vetoes that end when the pod has done what it is doing."""
MOST_TRIES = 16
"""Flows that are tried in vain before those behind them must wait for the next event."""


def hold_for_load(case: Case, row: int) -> list[Effect]:
    """Let it follow the load on a row; nothing when it does so already; a refusal when too many wait."""
    state, flight = case.state, case.flight
    request = flight.request
    effects: list[Effect] = []
    if flight.follow_until is None:
        room = _make_room(case)
        if room is None:
            return [_shed(case)]
        effects = room
        if flight.waits_since is None:
            flight.waits_since = case.now
        flight.follow_until = _patience(case, row)
    elif state.holds.row_of(request.id) == row:
        return []
    state.stop_waiting(request.id)
    state.holds.add(request.id, row, until=flight.follow_until)
    made = pick_value(case, NOBODY, reason=Reason.HELD_FOR_LOAD, follows=state.columns.targets[row].pod)
    journal(case, made, outcome="held")
    held = Hold(
        cause=case.cause, request_id=request.id, until=flight.follow_until, reason=Reason.HELD_FOR_LOAD, pick=made
    )
    return [*effects, held]


def _make_room(case: Case) -> list[Effect] | None:
    """Nothing, or the refusal of somebody of lower priority whose place this request takes; None: there is no room.

    Who waits already keeps the place that it has.
    """
    state, request_id = case.state, case.flight.request.id
    if request_id in state.holds or request_id in state.queues:
        return []
    if state.waiting < state.settings.admission.max_queued:
        return []
    last = state.queues.yields_to(case.flight.request.priority)
    if last is None:
        return None
    return [_shed(Case(state, state.flights[last.request_id], now=case.now, cause=case.cause))]


def _shed(case: Case) -> Effect:
    most = case.state.settings.admission.max_queued
    return reject(case, Reason.SHED, message=f"{most} requests wait already (admission.max_queued)")


def wait(case: Case) -> list[Effect]:
    """No pod can take it now: let it wait for a place; refuse it when none will come, or it has waited for long."""
    state, flight, now = case.state, case.flight, case.now
    request, admission = flight.request, state.settings.admission
    bound = state.queues.until(request.id)
    if not _worth_waiting(case):
        return [reject_nobody(case)]
    since = flight.waits_since if flight.waits_since is not None else now
    until = since + admission.max_wait
    if request.deadline is not None:
        until = min(until, request.deadline)
    if now >= until:
        return [reject_nobody(case)]
    if bound is not None and bound > now:
        return []
    if request.priority < 0:
        return [_shed(case)]
    effects = _make_room(case)
    if effects is None:
        return [_shed(case)]
    flight.waits_since = since
    state.stop_waiting(request.id)
    state.queues.add(
        Waiter(
            request_id=request.id,
            flow=(request.priority, request.fairness_id or "", flight.adapter_name),
            since=since,
            until=until,
            tokens=(request.prompt_tokens or 0) + (request.max_tokens or 0),
        )
    )
    made = pick_value(case, NOBODY, reason=Reason.HELD_FOR_SLOT)
    journal(case, made, outcome="held")
    held = Hold(cause=case.cause, request_id=request.id, until=until, reason=Reason.HELD_FOR_SLOT, pick=made)
    return [*effects, held]


def _worth_waiting(case: Case) -> bool:
    """Whether some pod would take it if only it had room: a seat, a slot, time for a load, less pressure."""
    if not case.policy.coalesces:
        return False
    columns, query = case.state.columns, case.query
    return any(veto(query, columns, row=row, now=case.now) in PASSING_AWAY for row, _ in columns.live())


def _patience(case: Case, row: int) -> Seconds:
    """Until when to wait: as long as the load should take and a second one would; never past deadline and max_wait."""
    residency, flight, now = case.state.residency, case.flight, case.now
    name = flight.adapter_name
    assert name is not None
    ends = residency.loading_until(row, name)
    bounds = [max(ends if ends is not None else now, now) + residency.load_time(Tier.DISK)]
    since = flight.waits_since if flight.waits_since is not None else now
    bounds.append(since + case.state.settings.admission.max_wait)
    if flight.request.deadline is not None:
        bounds.append(flight.request.deadline)
    return min(bounds)


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


def reject_nobody(case: Case) -> Effect:
    """No pod will take it: say what kept the mildest one from it."""
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
