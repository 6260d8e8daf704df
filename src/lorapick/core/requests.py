"""What happens to a request: arrival, response, end.

In: request events and the fleet's state. Out: Dispatch, Hold and Reject effects. A request that arrived is
answered by exactly one Dispatch or Reject, at once or after one or more Holds.
Not here: the decision (see `core.deciding`), who waits and may go (see `core.releasing`), the end of a prefill
elsewhere (see `core.prefilled`), what pods report (see `core.pods`).
"""

from lorapick.core import aftermath, arms_routing, splitting
from lorapick.core.admission.pressure import Pressure
from lorapick.core.arms import OBSERVED
from lorapick.core.columns import CODE
from lorapick.core.deciding import decide
from lorapick.core.naming import Unknown, resolve
from lorapick.core.prefilled import Said, leg_over, seated
from lorapick.core.releasing import admit, load_over, release, release_waiting
from lorapick.core.state import FleetState, Flight
from lorapick.core.waiting import reject_unknown
from lorapick.model.effects import LOAD_FAILED, Effect, Note
from lorapick.model.events import (
    BodyStarted,
    RequestArrived,
    RequestEnded,
    RequestRefused,
    ResponseStarted,
)
from lorapick.model.picks import What
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds

SERVED, FAILED = Outcome.SERVED, Outcome.FAILED


def on_arrived(state: FleetState, event: RequestArrived, *, now: Seconds) -> list[Effect]:
    """Resolve the name and decide."""
    request = event.request
    if request.id in state.flights:
        raise ValueError(f"request id {request.id!r} is in flight already; the driver must make ids unique")
    state.tally.arrivals += 1
    adapter = resolve(state, request)
    if isinstance(adapter, Unknown):
        state.signals.arrived(None, now=now)
        flight = state.flights[request.id] = Flight(request, None, now=now)
        if state.arms.on and _observed(state, flight):
            return arms_routing.route(state, flight, at=arms_routing.Moment(now, event.id), unknown=adapter)
        return [reject_unknown(state, flight, name=adapter.name, now=now, cause=event.id)]
    flight = state.flights[request.id] = Flight(request, adapter, now=now)
    state.signals.arrived(adapter.name if adapter is not None else None, now=now)
    if adapter is not None:
        state.tally.by_adapter[adapter.name] += 1
        state.prices.demand.arrived(adapter.name, now=now)
        state.placement.arrived(adapter.name, request, now=now)
        state.tally.on_probation += state.probation.arrived(adapter.name, now=now)
    if state.arms.on and _observed(state, flight):
        return arms_routing.route(state, flight, at=arms_routing.Moment(now, event.id))
    return decide(state, flight, now=now, cause=event.id)


def _observed(state: FleetState, flight: Flight) -> bool:
    """Whether it is routed as before; draws which arm it is in."""
    trial = flight.trial = state.arms.begin(flight.request)
    return trial.arm is OBSERVED


def on_refused(state: FleetState, event: RequestRefused, *, now: Seconds) -> list[Effect]:
    """Count a request that a transport refused by itself, so that outcomes add up to arrivals."""
    state.tally.arrivals += 1
    state.tally.outcomes[Outcome.REJECTED] += 1
    state.signals.outcomes.refused(event.status, now=now)
    return []


def on_response_started(state: FleetState, event: ResponseStarted, *, now: Seconds) -> list[Effect]:
    """First response headers: a load that this request waited for has ended.

    Neither an error nor the headers of a stream say so: vLLM sends those at admission (docs/adr/0008).
    """
    flight = state.flights.get(event.request_id)
    if flight is None:
        return []
    # An error says nothing of the prefill, nor do headers that come with the whole answer of when it was over.
    went_well = True if flight.request.stream and event.status < 400 else None
    told = None if event.status < 400 else f"status {event.status}"
    effects = leg_over(state, flight, said=Said(went_well, What.OVER, told), now=now, cause=event.id)
    if flight.row < 0 or event.status >= 400:
        return effects
    flight.started = True
    return effects if flight.request.stream else [*effects, *_ran(state, flight, now=now, cause=event.id)]


def on_body_started(state: FleetState, event: BodyStarted, *, now: Seconds) -> list[Effect]:
    """First bytes of the answer: the pod ran the request, streamed or not. An error's body says nothing."""
    state.legs.bodies = True
    flight = state.flights.get(event.request_id)
    if flight is None or flight.row < 0 or not flight.started:
        return []
    if flight.trial is not None:
        state.arms.first_byte(flight.trial, now - flight.arrived)
    state.signals.outcomes.body_started(now - flight.arrived, now=now)
    return _ran(state, flight, now=now, cause=event.id)


def _ran(state: FleetState, flight: Flight, *, now: Seconds, cause: int) -> list[Effect]:
    """The pod ran the request, so its adapter was on the GPU."""
    effects = seated(state, flight, now=now, cause=cause)
    name = flight.adapter_name
    if name is not None:
        state.quarantine.worked(flight.row, name)
    load = state.residency.ran(flight.row, name, now=now) if name is not None else None
    if load is not None:
        return [*effects, *load_over(state, load, now=now, cause=cause)]
    if flight.row in state.placement.keeps:
        state.refresh(flight.row)  # another one may be the next to go
    return effects


def on_ended(state: FleetState, event: RequestEnded, *, now: Seconds) -> list[Effect]:
    """The request left; its place is free."""
    flight = state.flights.pop(event.request_id, None)
    if flight is None:
        return []
    if flight.waits_since is not None:
        state.stop_waiting(event.request_id)
    if state.queues.attained is not None and flight.pod is not None:
        state.queues.attained.ended(flight.request, event, sent=flight.sent)
    outcome, status = event.outcome, event.status
    state.tally.outcomes[outcome] += 1
    row, leg, kept = flight.row, flight.leg, flight.standby
    state.signals.outcomes.left(outcome, status, seconds=now - flight.arrived, now=now)
    if flight.trial is not None:
        arms_routing.left(state, flight, event=event, now=now)
    effects = _left(state, flight, event=event, now=now)
    if row < 0:
        splitting.drop(state, flight, now=now)
        return [*effects, *admit(state, now=now, cause=event.id)]
    if outcome is SERVED and status is not None and status < 400:
        learn(state, flight, now=now)
        _count_hit(state, flight, now=now)
        effects += _ran(state, flight, now=now, cause=event.id)
    # A client's mistake (4xx) says nothing of the load.
    broken = outcome is FAILED and not flight.started and (status is None or status >= 500)
    if take_off(state, flight, now=now, load_failed=broken):
        effects += _failed(state, flight, row=row, status=status, now=now, cause=event.id)
    splitting.drop(state, flight, now=now)
    for other in dict.fromkeys((leg.row if leg is not None else -1, kept)):
        if other in state.loads and other != row and state.holds.any_for(other):
            effects += release(state, other, now=now, cause=event.id)
    return [*effects, *release_waiting(state, row, now=now, cause=event.id)]


def _left(state: FleetState, flight: Flight, *, event: RequestEnded, now: Seconds) -> list[Effect]:
    """What the end of a request says of its prefill: one that was served must have been prefilled."""
    if event.outcome is SERVED:
        return leg_over(state, flight, said=Said(None, What.OVER), now=now, cause=event.id)
    if flight.leg is not None or flight.awaited:
        told = None if event.status is None else f"status {event.status}"
        aftermath.came(state, flight, what=What.LEFT, pod=flight.prefiller, why=told)
    return []


def _count_hit(state: FleetState, flight: Flight, *, now: Seconds) -> None:
    name = flight.adapter_name
    if name is not None:
        seconds = now - flight.arrived
        home = state.residency.home(flight.row)
        state.signals.served(home, name, tier=flight.tier, sent=flight.sent, seconds=seconds, now=now)


def learn(state: FleetState, flight: Flight, *, now: Seconds) -> None:
    """What an answer teaches of times: that of serving, or what a load added to it."""
    if flight.ran_from is None:
        return  # prefilled elsewhere, and nobody said until when
    prices, tier, seconds = state.prices, flight.tier, now - flight.ran_from
    if tier is not None and flight.pod is not None:
        state.signals.useful.answered(flight.pod, seconds, tier=tier)
    if tier is None or tier.on_gpu:
        prices.service.served(flight.load_then, seconds)
    elif tier < Tier.LOADING:
        prices.loads.ended(tier, seconds - prices.service.expected(flight.load_then))


def _failed(
    state: FleetState, flight: Flight, *, row: int, status: int | None, now: Seconds, cause: int
) -> list[Effect]:
    """A load failed, by how a request that waited for it ended."""
    name = flight.adapter_name
    assert name is not None
    state.placement.load_ended(now=now)
    told = f"status {status}" if status is not None else "no answer"
    facts: dict[str, str | float] = {
        "pod": state.columns.targets[row].pod,
        "adapter": name,
        "why": f"request {flight.request.id} ended with {told}",
        "pause_seconds": state.fail(row, name, now=now),
    }
    return [Note(cause=cause, kind=LOAD_FAILED, facts=facts)]


def take_off(state: FleetState, flight: Flight, *, now: Seconds, load_failed: bool) -> bool:
    """Its place is free; whether its end shows that a load failed."""
    row = flight.row
    if row < 0:
        return False
    flight.row = -1
    name = flight.adapter_name
    reserved, flight.reserved, flight.unseated = flight.reserved, False, False
    failed = name is not None and state.residency.ended(
        row, name, now=now, load_failed=load_failed and not reserved, reserved=reserved
    )
    if name is not None and len(state.unloads):
        state.unloads.touched(row, name, now=now)
    state.loads[row].ended(now)
    state.signals.left(state.columns.targets[row].pod, sent=flight.sent, now=now)
    state.refresh(row)
    return failed


def gate(state: FleetState, row: int) -> None:
    """Write the pod's own veto: draining, circuit, critical pressure, warming up, in this order."""
    load, placement = state.loads[row], state.placement
    reason = (
        Reason.DRAINING
        if load.draining and row not in placement.leaving
        else Reason.CIRCUIT_OPEN
        if load.circuit_open
        else Reason.PRESSURE_CRITICAL
        if load.pressure_tier is Pressure.CRITICAL
        else Reason.NOT_READY
        if row in placement.warming
        else None
    )
    code = 0 if reason is None else CODE[reason]
    if code != state.columns.gate[row]:
        state.columns.gate[row] = code
        state.columns.settle(row)
        if reason is not None and placement.warming:
            placement.hurry(state.now)  # whoever warms up may be needed now
    if reason is not None and state.turns.taken(row):
        state.turns.gone(row)
        state.gates.refresh(row)
