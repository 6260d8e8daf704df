"""Requests that go on to another pod than picked, and slots that are kept for them there.

In: what the gateway says of who serves; pods that are lost before they had what they were picked for. Out: effects,
notes, reservations on fallbacks. Not here: where the gateway goes on (it does that by itself), what a reservation is
(see `core.standby`).
"""

from lorapick.core import aftermath, arms_routing, splitting, standby
from lorapick.core.deciding import assign
from lorapick.core.prefilled import Said, leg_over
from lorapick.core.releasing import release
from lorapick.core.requests import gate, take_off
from lorapick.core.state import FleetState, Flight
from lorapick.model.effects import Effect, Note
from lorapick.model.events import RequestDispatched
from lorapick.model.picks import What
from lorapick.model.tiers import Tier
from lorapick.model.units import PodName, Seconds


def on_dispatched(state: FleetState, event: RequestDispatched, *, now: Seconds) -> list[Effect]:
    """Another pod served than picked: move the request there and keep off the pod that refused it."""
    flight = state.flights.get(event.request_id)
    row = state.columns.row_of.get(event.pod)
    if flight is not None and row is not None and flight.trial is not None and flight.trial.passed:
        return arms_routing.served_by(state, flight, row=row, at=arms_routing.Moment(now, event.id))
    if flight is None or row is None or flight.pod is None or flight.row == row:
        return []
    if flight.pod == event.pod:  # it had left the list
        return _take_back(state, flight, row=row, now=now, cause=event.id)
    refused, refused_row, leg, reserved = flight.pod, flight.row, flight.leg, flight.awaited
    effects: list[Effect] = [
        Note(cause=event.id, kind="fallback_served", facts={"picked": refused, "served": event.pod})
    ]
    aftermath.came(state, flight, what=What.SERVED_BY, pod=event.pod)
    _undo(state, flight)
    # It never came there, so no load of its adapter began for it; the pod is to blame, not the adapter.
    take_off(state, flight, now=now, load_failed=_alone(state, flight))
    assign(state, flight, row=row, now=now, reserve=reserved)
    if flight.trial is not None:
        flight.trial.tier = flight.tier
    kept = standby.let_go(state, flight, now=now)  # last: if it was kept there, it was never free
    if leg is not None and leg.row == row:
        effects += leg_over(state, flight, said=Said(None), now=now, cause=event.id)
    state.residency.home(row).excuse()
    if kept not in (-1, row):
        effects += release(state, kept, now=now, cause=event.id)
    if refused_row >= 0:
        load = state.loads[refused_row]
        newly, load.circuit_open = not load.circuit_open, True
        load.detail = "a request could not connect"
        gate(state, refused_row)
        if newly:
            effects += pod_lost(state, refused_row, pod=refused, why=REFUSED, now=now, cause=event.id)
        effects += release(state, refused_row, now=now, cause=event.id)
    return effects


def _alone(state: FleetState, flight: Flight) -> bool:
    """Whether no other request for its adapter is at its pod."""
    name, row = flight.adapter_name, flight.row
    return name is not None and row >= 0 and state.residency.home(row).cells[name].in_flight == 1


def _undo(state: FleetState, flight: Flight) -> None:
    """Take back what the tally counted for a dispatch that never reached its pod."""
    tally, tier = state.tally, flight.tier
    tally.fallbacks += 1
    tally.dispatched -= 1
    tally.picks_by_tier[tier.word if tier is not None else "base"] -= 1
    if tier is Tier.LOADING:
        tally.coalesced -= 1
    elif tier is not None and tier < Tier.LOADING and not flight.awaited:
        tally.loads -= 1


# -- pods that are lost

GONE, RESTARTED, REFUSED = "gone", "restarted", "refused"
"""Why a pod counts as lost: it is not listed any more, its process is another one, it takes no connection."""


def pod_lost(state: FleetState, row: int, *, pod: PodName, why: str, now: Seconds, cause: int) -> list[Effect]:
    """Keep slots on fallbacks for the requests that a lost pod was to decode and had not got.

    `row` was `pod`'s; its fleet state may be gone already. Requests whose answer has begun fail with their pod.
    """
    effects: list[Effect] = []
    for flight in [*state.flights.values()]:
        if not flight.awaited:
            continue
        if flight.standby == row:
            standby.let_go(state, flight, now=now)
        elif flight.standby >= 0 or flight.pod != pod:
            continue
        effects += _stand_by(state, flight, lost=row, pod=pod, why=why, cause=cause)
    return effects


def _stand_by(state: FleetState, flight: Flight, *, lost: int, pod: PodName, why: str, cause: int) -> list[Effect]:
    now = state.now
    row = standby.next_living(state, flight, lost=lost)
    room = row >= 0 and standby.has_room(state, flight, row=row)
    state.tally.reservations_moved["moved" if room else "no_room" if row >= 0 else "nobody"] += 1
    if not room:
        reason = "no slot is free on the fallback" if row >= 0 else "no fallback is left"
        return aftermath.moved(state, flight, lost=pod, to=None, why=f"{why}; {reason}", cause=cause)
    may_load = standby.may_load(state, flight, row=row)
    standby.keep(state, flight, row=row, now=now)
    effects = aftermath.moved(state, flight, lost=pod, to=state.columns.targets[row].pod, why=why, cause=cause)
    return [*effects, *splitting.bring(state, flight, row=row, now=now, cause=cause)] if may_load else effects


def pod_back(state: FleetState, row: int, *, now: Seconds, cause: int) -> list[Effect]:
    """A pod that took no connection answers again, and its process is the same: requests there need no other slot."""
    effects: list[Effect] = []
    for flight in [*state.flights.values()]:
        if flight.row == row and flight.standby >= 0:
            kept = standby.let_go(state, flight, now=now)
            state.tally.reservations_moved["back"] += 1
            if kept >= 0:
                effects += release(state, kept, now=now, cause=cause)
    return effects


def pod_listed_again(state: FleetState, row: int, *, now: Seconds, cause: int) -> list[Effect]:
    """A pod that had left the list is back at its address: the gateway goes there with what it was to decode.

    Whoever has no slot left there keeps the one on its fallback, if it has one, until the answer.
    """
    effects: list[Effect] = []
    target = state.columns.targets[row]
    for flight in [*state.flights.values()]:
        waits = flight.awaited and flight.row < 0 and flight.pod == target.pod and flight.address == target.address
        if waits and standby.has_room(state, flight, row=row):
            effects += _take_back(state, flight, row=row, now=now, cause=cause)
    return effects


def _take_back(state: FleetState, flight: Flight, *, row: int, now: Seconds, cause: int) -> list[Effect]:
    """Count a request where it was sent, at a pod that was not listed for a while."""
    target, name, effects = state.columns.targets[row], flight.adapter_name, list[Effect]()
    flight.row, flight.address = row, target.address
    state.loads[row].dispatched(now)
    state.signals.dispatched(target.pod, now=now)
    if not flight.awaited:
        flight.reserved = flight.unseated = False
        if name is not None and state.residency.dispatched(row, name, now=now) < Tier.LOADING:
            state.tally.loads += 1
            state.placement.load_began(row, now=now)
        state.refresh(row)
        return effects
    if name is not None:
        state.residency.reserve(row, name)
    state.refresh(row)
    state.tally.reservations_moved["back"] += 1
    aftermath.came(state, flight, what=What.MOVED, pod=target.pod, why="listed again")
    if standby.may_load(state, flight, row=row):
        effects += splitting.bring(state, flight, row=row, now=now, cause=cause)
    kept = standby.let_go(state, flight, now=now)
    return effects if kept < 0 else [*effects, *release(state, kept, now=now, cause=cause)]
