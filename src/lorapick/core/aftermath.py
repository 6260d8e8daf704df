"""What came of a dispatch after it was decided: told in a note, and kept with the decision for explanations.

In: a flight, what came of it. Out: notes; entries of the journal. Not here: what follows from it for the fleet (see
`core.requests`, `core.moving`).

A pod that dies takes hundreds of prefills with it, and each is counted by its note. So that logs do not fill up, few
are to be printed (see `core.told`).
"""

from lorapick.core.state import FleetState, Flight
from lorapick.model.effects import PREFILL_FAILED, RESERVATION_MOVED, Effect, Note
from lorapick.model.picks import Came, What
from lorapick.model.units import PodName

FAILURES = (What.FAILED, What.LOST, What.OVERDUE)


def came(state: FleetState, flight: Flight, *, what: What, pod: PodName | None, why: str | None = None) -> None:
    """Keep with the decision what came of it."""
    if state.journal.on:
        news = Came(t=state.now, what=what, pod=pod, why=why)
        state.journal.came(flight.request.id, news, since=flight.arrived)


def prefill_came(
    state: FleetState, flight: Flight, *, what: What, pod: PodName | None, why: str | None, cause: int
) -> list[Effect]:
    """What came of the prefill on `pod`: kept, and told if it is nothing good, once: after that it has no leg."""
    came(state, flight, what=what, pod=pod, why=why)
    if what not in FAILURES or flight.leg is None:
        return []
    facts: dict[str, str | float] = {"pod": pod or "unknown", "end": what.value, "why": why or "unknown"}
    return [_note(state, flight, kind=PREFILL_FAILED, facts=facts, cause=cause)]


def moved(
    state: FleetState, flight: Flight, *, lost: PodName, to: PodName | None, why: str, cause: int
) -> list[Effect]:
    """The pod that was to decode is lost; `to` keeps a slot instead (None: no pod does)."""
    came(state, flight, what=What.MOVED if to is not None else What.NOT_MOVED, pod=to, why=why)
    facts: dict[str, str | float] = {"pod": lost, "to": to or "none", "why": why}
    return [_note(state, flight, kind=RESERVATION_MOVED, facts=facts, cause=cause)]


def _note(state: FleetState, flight: Flight, *, kind: str, facts: dict[str, str | float], cause: int) -> Note:
    facts["request"] = flight.request.id
    if kind == PREFILL_FAILED and flight.pod is not None:
        facts["decode"] = flight.pod
    if flight.adapter_name is not None:
        facts["adapter"] = flight.adapter_name
    untold = state.told.take(kind, str(facts["pod"]), now=state.now)
    if untold:
        facts["untold"] = float(untold)
    return Note(cause=cause, kind=kind, facts=facts, quiet=untold is None)
