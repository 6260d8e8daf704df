"""What operators, controllers, peers and the clock say.

In: intent and lifecycle events. Out: notes and decisions that were waiting for the clock.
Not here yet: placement (pins by count, schedules, triggers, solver plans, peers). Their events are refused with a
Note of kind `not_yet` that names the event, never dropped in silence.
"""

from lorapick.core.picking.policies import make_policy
from lorapick.core.pods import pins_here
from lorapick.core.requests import admit, load_over, release, release_due
from lorapick.core.state import FleetState
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.effects import LOAD_FAILED, Effect, Note
from lorapick.model.events import (
    AdapterChanged,
    AdapterDeclared,
    AdapterRetired,
    By,
    ConfigChanged,
    Event,
    Evicted,
    LoadFailed,
    LoadStarted,
    LoadSucceeded,
    PinCleared,
    PinSet,
    Ticked,
    Unloaded,
    UnloadFailed,
)
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import AdapterName, Seconds


def on_ticked(state: FleetState, event: Ticked, *, now: Seconds) -> list[Effect]:
    """Loads whose time is up ended before this is called; holds whose time is up end here."""
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
    """The engine refused; the adapter is where it was, on disk. Who waited for it is decided anew."""
    facts: dict[str, str | float] = {"pod": event.pod, "adapter": event.adapter, "why": event.why}
    note = Note(cause=event.id, kind=LOAD_FAILED, facts=facts)
    row = state.columns.row_of.get(event.pod)
    if row is not None and state.unloads.given(row, event.adapter, now=now, failed=True):
        return [note]  # nobody was sent there for it, and none is
    if row is not None:
        state.fail(row, event.adapter, now=now)
    return [note, *_left(state, event, tier=Tier.DISK, source=Source.COMMANDED, now=now)]


def on_evicted(state: FleetState, event: Evicted, *, now: Seconds) -> list[Effect]:
    """The engine said that an adapter left a level."""
    return _left(state, event, tier=event.tier, source=Source.REPORTED, now=now)


def _left(state: FleetState, event: LoadFailed | Evicted, *, tier: Tier, source: Source, now: Seconds) -> list[Effect]:
    row = state.columns.row_of.get(event.pod)
    if row is None:
        return []
    state.residency.left(row, event.adapter, tier=tier, now=now, source=source)
    state.refresh(row)
    return release(state, row, now=now, cause=event.id)


def on_unloaded(state: FleetState, event: Unloaded, *, now: Seconds) -> list[Effect]:
    """The engine forgot the name; on vLLM the weights keep their slot."""
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        state.unloads.ended(row, event.adapter, now=now)
        state.residency.unregistered(row, event.adapter, now=now)
        state.refresh(row)
    return []


def on_unload_failed(state: FleetState, event: UnloadFailed, *, now: Seconds) -> list[Effect]:
    """The adapter is where it was, and may be asked for there again."""
    facts: dict[str, str | float] = {"pod": event.pod, "adapter": event.adapter, "why": event.why}
    note = Note(cause=event.id, kind="unload_failed", facts=facts)
    row = state.columns.row_of.get(event.pod)
    if row is None or not state.unloads.ended(row, event.adapter, now=now, failed=True):
        return [note]
    state.tally.unload_failures += 1
    return [note, *admit(state, now=now, cause=event.id)]


def on_pin_set(state: FleetState, event: PinSet, *, now: Seconds) -> list[Effect]:
    """Pins by pod or selector count in the score from now on; pins by count wait for the controller."""
    del now
    return _set_pin(state, event.adapter, pin=event.pin, cause=event)


def on_pin_cleared(state: FleetState, event: PinCleared, *, now: Seconds) -> list[Effect]:
    """The operator no longer insists."""
    del now
    return _set_pin(state, event.adapter, pin=None, cause=event)


def _set_pin(state: FleetState, name: AdapterName, *, pin: PinSpec | None, cause: Event) -> list[Effect]:
    if pin is None:
        state.pins.pop(name, None)
    else:
        state.pins[name] = pin
    for row, pod in state.columns.live():
        state.residency.pin(row, name, pinned=pin is not None and pins_here(pin, pod))
    if pin is not None and pin.replicas is not None:
        return [_not_yet(cause, "pins by count are placed by the controller")]
    return []


def on_adapter_declared(state: FleetState, event: AdapterDeclared | AdapterChanged, *, now: Seconds) -> list[Effect]:
    """The operator names an adapter or says more of it."""
    del now
    return _declare(state, event.adapter, cause=event)


def _declare(state: FleetState, adapter: Adapter, *, cause: Event) -> list[Effect]:
    before = state.adapters.get(adapter.name)
    state.adapters[adapter.name] = adapter
    state.residency.declare(adapter.name)
    # A pin that the declaration itself gave goes with it; one set by PinSet stays.
    if adapter.pin is not None or (before is not None and before.pin is not None):
        return _set_pin(state, adapter.name, pin=adapter.pin, cause=cause)
    return []


def on_adapter_retired(state: FleetState, event: AdapterRetired, *, now: Seconds) -> list[Effect]:
    """The operator withdraws an adapter; pods that accept it may still be asked for it."""
    del now
    return _retire(state, event.adapter, cause=event)


def _retire(state: FleetState, name: AdapterName, *, cause: Event) -> list[Effect]:
    state.adapters.pop(name, None)
    state.unloads.forget(name)
    state.residency.retire(name)
    return _set_pin(state, name, pin=None, cause=cause)


def on_config_changed(state: FleetState, event: ConfigChanged, *, now: Seconds) -> list[Effect]:
    """New settings are in force for the next decision.

    Raises:
        ValueError: they name a policy that does not exist; the old settings stay in force.
    """
    settings = event.settings
    policy = make_policy(settings.picking)
    state.unloads.configure(settings.retention)
    state.take_policy(policy)
    before = {adapter.name: None for adapter in state.settings.adapters}
    state.settings = settings
    state.queues.fairness, state.queues.patience = settings.admission.fairness, settings.admission.patience
    state.gates.configure(settings, on=state.policy.coalesces)
    state.probation.share = settings.admission.probation_slots_share
    state.residency.load_times, state.residency.retention = settings.load_times, settings.retention
    state.prefixes.blocks_per_pod = settings.picking.prefix_blocks_per_pod
    state.aliases = {alias.name: alias for alias in settings.aliases}
    effects: list[Effect] = []
    for adapter in settings.adapters:
        before.pop(adapter.name, None)
        effects += _declare(state, adapter, cause=event)
    for name in before:
        effects += _retire(state, name, cause=event)
    for row in state.loads:
        state.residency.home(row).excuse()
        state.refresh(row)
    return [*effects, *admit(state, now=now, cause=event.id)]


def refuse(state: FleetState, event: Event, *, now: Seconds) -> list[Effect]:
    """An event of a part that does not exist yet."""
    del state, now
    return [_not_yet(event, "this part is not built yet")]


def _not_yet(event: Event, why: str) -> Note:
    return Note(cause=event.id, kind="not_yet", facts={"event": type(event).__name__, "why": why})
