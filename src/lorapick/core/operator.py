"""What pods answer to commands, and what the clock says.

In: loads, unloads, registrations and touches that began or ended, whoever asked for them; ticks. Out: notes and
decisions that were waiting for them. Not here: what operators want (see `core.intent`).
"""

from collections import OrderedDict

from lorapick.core.placement import giving
from lorapick.core.placement.commands import Failed, Kind
from lorapick.core.releasing import admit, load_over, release, release_due
from lorapick.core.state import FleetState
from lorapick.model.effects import LOAD_FAILED, Effect, Note
from lorapick.model.events import (
    By,
    Evicted,
    LoadFailed,
    LoadStarted,
    LoadSucceeded,
    Registered,
    RegisterFailed,
    Ticked,
    Touched,
    TouchFailed,
    Unloaded,
    UnloadFailed,
)
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.model.units import AdapterName, Seconds


def on_ticked(state: FleetState, event: Ticked, *, now: Seconds) -> list[Effect]:
    """Loads whose time is up ended before this is called; holds whose time is up end here."""
    if event.wall is not None:
        state.placement.wall_offset = event.wall - now
    return release_due(state, now=now, cause=event.id)


def expire_loads(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """End loads that nobody reported and whose expected time has passed."""
    effects: list[Effect] = []
    for load in state.residency.expire(now):
        effects += load_over(state, load, now=now, cause=cause)
    return effects


def on_load_started(state: FleetState, event: LoadStarted, *, now: Seconds) -> list[Effect]:
    """A commanded or observed load begins; one that we inferred already is not counted again."""
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        for name in event.adapters:
            state.tally.loads += state.residency.commanded(row, name, now=now)
        state.residency.home(row).excuse()
        state.refresh(row)
    return []


def on_load_succeeded(state: FleetState, event: LoadSucceeded, *, now: Seconds) -> list[Effect]:
    """The engine agreed."""
    row = state.columns.row_of.get(event.pod)
    if row is None:
        return []
    state.unloads.given(row, event.adapter, now=now)
    if event.by is By.CONTROLLER:
        giving.ended(state, row, adapter=event.adapter, kind=Kind.LOAD, now=now)
    if event.by is By.CONTROLLER and state.residency.home(row).caches.loads_to_host:
        _in_memory(state, row, name=event.adapter, now=now)
        return release(state, row, now=now, cause=event.id)
    load = state.residency.arrived(row, event.adapter, now=now, seconds=event.seconds)
    return load_over(state, load, now=now, cause=event.id)


def _in_memory(state: FleetState, row: int, *, name: AdapterName, now: Seconds) -> None:
    """The engine accepts the name and has the weights in host memory; a load into a slot is none of this."""
    state.residency.registry.add(row, name)
    if state.residency.home(row).cell(name).tier < Tier.LOADING:
        state.residency.left(row, name, tier=Tier.CPU, now=now, source=Source.COMMANDED)
    else:
        state.residency.commanded(row, name, now=now)
    state.refresh(row)


def on_load_failed(state: FleetState, event: LoadFailed, *, now: Seconds) -> list[Effect]:
    """The adapter counts as being on disk, its slot as taken unless it will never load; who waited is decided anew."""
    facts: dict[str, str | float] = {"pod": event.pod, "adapter": event.adapter, "why": event.why}
    note = Note(cause=event.id, kind=LOAD_FAILED, facts=facts)
    row = state.columns.row_of.get(event.pod)
    if row is not None and state.unloads.given(row, event.adapter, now=now, failed=True):
        return [note]  # nobody was sent there for it, and none is
    if row is not None:
        command = giving.ended(state, row, adapter=event.adapter, kind=Kind.LOAD, now=now, failed=_how(event.lasting))
        if command is None:
            state.fail(row, event.adapter, now=now)
    if row is None or event.lasting:
        return [note, *_left(state, event, tier=Tier.DISK, source=Source.COMMANDED, now=now)]
    state.residency.doubted(row, event.adapter, tier=Tier.DISK, now=now)
    return [note, *_over(state, row, now=now, cause=event.id)]


def _how(lasting: bool) -> Failed:
    return Failed.LASTING if lasting else Failed.THIS_TIME


def on_evicted(state: FleetState, event: Evicted, *, now: Seconds) -> list[Effect]:
    """The engine said that an adapter left a level."""
    return _left(state, event, tier=event.tier, source=Source.REPORTED, now=now)


def _left(state: FleetState, event: LoadFailed | Evicted, *, tier: Tier, source: Source, now: Seconds) -> list[Effect]:
    row = state.columns.row_of.get(event.pod)
    if row is None:
        return []
    state.residency.left(row, event.adapter, tier=tier, now=now, source=source)
    return _over(state, row, now=now, cause=event.id)


def _over(state: FleetState, row: int, *, now: Seconds, cause: int) -> list[Effect]:
    """An adapter left a slot, or never came to it: who waited for it is decided anew."""
    state.placement.load_ended(now=now)
    state.refresh(row)
    return release(state, row, now=now, cause=cause)


def on_unloaded(state: FleetState, event: Unloaded, *, now: Seconds) -> list[Effect]:
    """The engine forgot the name; on vLLM the weights keep their slot."""
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        state.unloads.ended(row, event.adapter, now=now)
        giving.ended(state, row, adapter=event.adapter, kind=Kind.UNLOAD, now=now)
        state.residency.unregistered(row, event.adapter, now=now)
        state.refresh(row)
    return []


def on_unload_failed(state: FleetState, event: UnloadFailed, *, now: Seconds) -> list[Effect]:
    """The adapter is where it was, and may be asked for there again."""
    facts: dict[str, str | float] = {"pod": event.pod, "adapter": event.adapter, "why": event.why}
    note = Note(cause=event.id, kind="unload_failed", facts=facts)
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        command = giving.ended(state, row, adapter=event.adapter, kind=Kind.UNLOAD, now=now, failed=Failed.THIS_TIME)
        if command is not None:
            return [note, *admit(state, now=now, cause=event.id)]
    if row is None or not state.unloads.ended(row, event.adapter, now=now, failed=True):
        return [note]
    state.tally.unload_failures += 1
    return [note, *admit(state, now=now, cause=event.id)]


def on_registered(state: FleetState, event: Registered, *, now: Seconds) -> list[Effect]:
    """A pod accepts a name more; vLLM has put the adapter into a slot for it."""
    row = state.columns.row_of.get(event.pod)
    if row is None:
        return []
    command = giving.ended(state, row, adapter=event.adapter, kind=Kind.REGISTER, now=now)
    if state.residency.home(row).caches.loads_to_host:
        _in_memory(state, row, name=event.adapter, now=now)
        return release(state, row, now=now, cause=event.id)
    if event.known_before:
        if command is not None:
            giving.undo(state, row, command=command, now=now, certain=True)
        state.residency.registered(row, event.adapter)
        return release(state, row, now=now, cause=event.id)
    load = state.residency.arrived(row, event.adapter, now=now, seconds=None)
    if command is None:
        state.placement.load_began(row, now=now)
    return load_over(state, load, now=now, cause=event.id)


def on_register_failed(state: FleetState, event: RegisterFailed, *, now: Seconds) -> list[Effect]:
    """The pod does not know the name; it is told again later."""
    row = state.columns.row_of.get(event.pod)
    facts: dict[str, str | float] = {"pod": event.pod, "adapter": event.adapter, "why": event.why}
    note = Note(cause=event.id, kind="register_failed", facts=facts)
    if row is None:
        return [note]
    command = giving.ended(state, row, adapter=event.adapter, kind=Kind.REGISTER, now=now, failed=_how(event.lasting))
    if command is None:
        return [note]
    giving.undo(state, row, command=command, now=now, certain=event.lasting)
    return [note, *release(state, row, now=now, cause=event.id)]


def on_touched(state: FleetState, event: Touched, *, now: Seconds) -> list[Effect]:
    """The pod has just used the adapter: it is in a slot, and the last to leave, unless others were used since."""
    row = state.columns.row_of.get(event.pod)
    if row is None:
        return []
    command = giving.ended(state, row, adapter=event.adapter, kind=Kind.TOUCH, now=now)
    shadow = state.residency.home(row).shadow
    since = command is None or command.uses != shadow.uses
    before, last = OrderedDict(shadow.gpu), shadow.last.get(event.adapter)
    if since and event.adapter not in before and state.residency.home(row).endangers_reserved():
        # It may have been thrown out again by others since. Whoever counted on it would throw out what is reserved.
        if command is not None:
            giving.undo(state, row, command=command, now=now)
        state.refresh(row)
        return release(state, row, now=now, cause=event.id) if len(state.queues) else []
    load = state.residency.ran(row, event.adapter, now=now, kind=Evidence.COMMAND)
    if since and event.adapter in state.residency.home(row).reserved:
        # The pod may have used others after it, and nobody else's load may count on that; nor on that it has not.
        shadow.as_before(before)
        shadow.unsure[event.adapter] = None
    shadow.answered(event.adapter, asked=command.asked if command is not None else float("-inf"), before=last)
    state.refresh(row)
    if load is not None:
        return load_over(state, load, now=now, cause=event.id)
    return release(state, row, now=now, cause=event.id) if len(state.queues) else []


def on_touch_failed(state: FleetState, event: TouchFailed, *, now: Seconds) -> list[Effect]:
    """Nobody knows whether the pod used it; if it was to bring the adapter into a slot, nobody counts on that."""
    row = state.columns.row_of.get(event.pod)
    facts: dict[str, str | float] = {"pod": event.pod, "adapter": event.adapter, "why": event.why}
    note = Note(cause=event.id, kind="touch_failed", facts=facts)
    if row is None:
        return [note]
    command = giving.ended(state, row, adapter=event.adapter, kind=Kind.TOUCH, now=now, failed=Failed.THIS_TIME)
    if command is None:
        return [note]
    giving.undo(state, row, command=command, now=now)
    return [note, *release(state, row, now=now, cause=event.id)]
