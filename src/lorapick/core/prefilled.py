"""The end of a prefill on another pod, and of the wait for a seat after it.

In: what is said of a prefill, that nobody says anything, pods that are lost. Out: effects; slots that are kept no
longer. Not here: what a leg is and does to its pods (see `core.splitting`).
"""

from typing import NamedTuple

from lorapick.core import aftermath, splitting
from lorapick.core.releasing import load_over, release_waiting
from lorapick.core.state import FleetState, Flight
from lorapick.model.effects import Effect
from lorapick.model.events import PrefillEnded
from lorapick.model.picks import What
from lorapick.model.units import Seconds


class Said(NamedTuple):
    """What is said of the end of a prefill."""

    ok: bool | None
    """None: nobody knows."""
    what: What | None = None
    """For explanations; None: nothing is to be said."""
    why: str | None = None


def on_prefill_ended(state: FleetState, event: PrefillEnded, *, now: Seconds) -> list[Effect]:
    """The pod that decodes has the request now, with its KV or (not `ok`) without.

    A prefill that fails after it was overdue, or its pod was lost, counts as that and not twice.
    """
    flight = state.flights.get(event.request_id)
    if flight is None or not (flight.leg or flight.awaited):
        return []
    state.tally.legs_failed += not event.ok and flight.leg is not None
    said = Said(event.ok, What.PREFILLED if event.ok else What.FAILED, None if event.ok else event.why)
    return leg_over(state, flight, said=said, now=now, cause=event.id)


def leg_over(state: FleetState, flight: Flight, *, said: Said, now: Seconds, cause: int) -> list[Effect]:
    """The prefill is over, if it was not before; its own pod has the request, and no other one needs to keep a slot."""
    leg, kept = flight.leg, flight.standby
    if leg is None and not flight.awaited:
        return []
    effects: list[Effect] = []
    if said.what is not None:
        pod = flight.prefiller
        effects = aftermath.prefill_came(state, flight, what=said.what, pod=pod, why=said.why, cause=cause)
    for load in splitting.end(state, flight, now=now, ok=said.ok):
        effects += load_over(state, load, now=now, cause=cause)
    for row in dict.fromkeys((leg.row if leg is not None else -1, flight.row, kept)):
        effects += release_waiting(state, row, now=now, cause=cause)
    return effects


def expire_legs(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Prefills that should have been over for long are, as far as the pods that did them are concerned.

    And requests whose answers have begun for long run.
    """
    effects: list[Effect] = []
    for request_id in state.legs.running(now):
        flight = state.flights.get(request_id)
        if flight is not None:
            effects += seated(state, flight, now=now, cause=cause)
    for request_id, sent in state.legs.overdue(now):
        flight = state.flights.get(request_id)
        if flight is not None and flight.leg is not None and flight.leg.sent == sent:
            state.tally.legs_overdue += 1
            row = flight.leg.row
            effects += splitting.unheard(state, flight, what=What.OVERDUE, now=now, cause=cause)
            effects += release_waiting(state, row, now=now, cause=cause)
    return effects


def lose_legs(state: FleetState, row: int, *, now: Seconds, cause: int) -> list[Effect]:
    """A pod that prefilled is gone: those that it was to prefill are prefilled where they are decoded.

    One whose process is another one has lost them. One that is listed no more (`row` has no pod now) may still end
    them: their slots stay reserved until somebody says how they ended.
    """
    effects: list[Effect] = []
    for flight in splitting.pod_gone(state, row):
        state.tally.legs_lost += 1
        if row in state.loads:
            effects += leg_over(state, flight, said=Said(None, What.LOST), now=now, cause=cause)
        else:
            effects += splitting.unheard(state, flight, what=What.LOST, now=now, cause=cause)
    return effects


def seated(state: FleetState, flight: Flight, *, now: Seconds, cause: int) -> list[Effect]:
    """The engine of its pod runs a request that was prefilled elsewhere: its slot needs no word of ours any more."""
    if not flight.unseated:
        return []
    splitting.seat(state, flight, now=now)
    return release_waiting(state, flight.row, now=now, cause=cause)
