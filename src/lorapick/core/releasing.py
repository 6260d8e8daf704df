"""Who waits at the picker and may go now.

In: a pod that has room again, a load that ended, holds that run out. Out: Dispatch, Hold and Reject effects. Not here:
the decision (see `core.deciding`), the queues themselves (see `core.admission.queues`).
"""

from lorapick.core.admission.queues import FlowKey
from lorapick.core.deciding import decide
from lorapick.core.residency.cells import EndedLoad
from lorapick.core.state import FleetState
from lorapick.core.waiting import MOST_TRIES, give_turns
from lorapick.model.effects import Effect, Note
from lorapick.model.reasons import Reason
from lorapick.model.units import Seconds

HELD_FOR_LOAD, HELD_FOR_SLOT = Reason.HELD_FOR_LOAD, Reason.HELD_FOR_SLOT
"""Found faster than the enum's members."""


def load_over(state: FleetState, load: EndedLoad, *, now: Seconds, cause: int) -> list[Effect]:
    """A load ended: its waiters run, held followers may go."""
    state.loads[load.row].load_ended(state.residency.home(load.row).cells[load.name].in_flight, now)
    state.placement.load_ended(now=now)
    state.refresh(load.row)
    return [load_note(state, load, cause=cause), *release(state, load.row, now=now, cause=cause)]


def load_note(state: FleetState, load: EndedLoad, *, cause: int) -> Effect:
    """Say that a load ended."""
    facts: dict[str, str | float] = {
        "pod": state.columns.targets[load.row].pod,
        "adapter": load.name,
        "from": load.tier.word,
    }
    if load.seconds is not None:
        facts["seconds"] = load.seconds
    return Note(cause=cause, kind="load_ended", facts=facts)


def release(state: FleetState, row: int, *, now: Seconds, cause: int) -> list[Effect]:
    """Try again the requests held for a pod, oldest first, until one must go on waiting for it; then the queues."""
    effects: list[Effect] = []
    for request_id in state.holds.waiting_for(row):
        answer = decide(state, state.flights[request_id], now=now, cause=cause)
        if not answer:
            break
        effects += answer
    return [*effects, *admit(state, now=now, cause=cause)]


def release_waiting(state: FleetState, row: int, *, now: Seconds, cause: int) -> list[Effect]:
    """The same if anybody waits, for a pod that may be gone."""
    if row in state.loads and (state.holds.any_for(row) or len(state.queues)):
        return release(state, row, now=now, cause=cause)
    return []


def admit(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Try those who wait for a place: flow after flow, each until one must go on waiting.

    Requests for the base model need no slot, so those that wait for one do not use up their tries.
    """
    effects: list[Effect] = []
    if not len(state.queues):
        return effects
    tries = {True: MOST_TRIES, False: MOST_TRIES}
    for flow in state.queues.in_turn(now):
        base = flow[2] is None
        if not tries[base]:
            continue
        answers, through = _serve(state, flow, now=now, cause=cause)
        effects += answers
        if not through:
            tries[base] -= 1
            if not tries[base] and (tries[False] or not base):
                state.queues.go_on_after(flow)
    give_turns(state, now=now, cause=cause)
    return effects


def _serve(state: FleetState, flow: FlowKey, *, now: Seconds, cause: int) -> tuple[list[Effect], bool]:
    """One flow, oldest request first; and whether nobody in it must go on waiting."""
    effects: list[Effect] = []
    for waiter in state.queues.waiting_in(flow):
        flight = state.flights.get(waiter.request_id)
        if flight is None or flight.row >= 0:
            continue  # it made room for one before it
        answer = decide(state, flight, now=now, cause=cause)
        if not answer:
            return effects, False
        if flight.row >= 0:
            state.queues.served(waiter)
        effects += answer
    return effects, True


def release_due(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Decide for good about requests whose hold has run out."""
    effects: list[Effect] = []
    for request_id in (*state.holds.due(now), *state.queues.due(now)):
        # One that was decided for may have made room, and sent another of these away.
        if (flight := state.flights.get(request_id)) is not None and flight.row < 0:
            state.tally.expired[HELD_FOR_LOAD if request_id in state.holds else HELD_FOR_SLOT] += 1
            effects += decide(state, flight, now=now, cause=cause)
    return [*effects, *admit(state, now=now, cause=cause)]
