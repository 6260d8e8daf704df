"""What operators, controllers, peers and the clock say.

In: intent and lifecycle events. Out: notes and decisions that were waiting for the clock.
Not here yet: placement (pins by count, schedules, triggers, solver plans, peers). Their events are refused with a
Note of kind `not_yet` that names the event, never dropped in silence.
"""

from lorapick.core.picking.policies import make_policy
from lorapick.core.pods import pins_here
from lorapick.core.requests import load_over, release_due
from lorapick.core.state import FleetState
from lorapick.model.adapters import PinSpec
from lorapick.model.effects import Effect, Note
from lorapick.model.events import (
    AdapterChanged,
    AdapterDeclared,
    AdapterRetired,
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
)
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import AdapterName, Seconds


def on_ticked(state: FleetState, event: Ticked, now: Seconds) -> list[Effect]:
    """Loads whose time is up ended before this is called; holds whose time is up end here."""
    return release_due(state, now, cause=event.id)


def expire_loads(state: FleetState, now: Seconds, *, cause: int) -> list[Effect]:
    """End loads that nobody reported and whose expected time has passed."""
    effects: list[Effect] = []
    for pod, name, tier in state.residency.expire(now):
        effects += load_over(state, state.columns.row_of[pod], name, tier, now, cause=cause, seconds=None)
    return effects


def on_load_started(state: FleetState, event: LoadStarted, now: Seconds) -> list[Effect]:
    """A commanded or observed load begins."""
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        for name in event.adapters:
            state.residency.commanded(row, name, now)
        state.tally.loads += len(event.adapters)
    return []


def on_load_succeeded(state: FleetState, event: LoadSucceeded, now: Seconds) -> list[Effect]:
    """The engine agreed."""
    row = state.columns.row_of.get(event.pod)
    if row is None:
        return []
    tier = state.residency.tier(row, event.adapter)
    state.residency.arrived(row, event.adapter, now, Source.COMMANDED)
    return load_over(state, row, event.adapter, tier, now, cause=event.id, seconds=event.seconds)


def on_load_failed(state: FleetState, event: LoadFailed, now: Seconds) -> list[Effect]:
    """The engine refused; the adapter is where it was, on disk."""
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        state.residency.left(row, event.adapter, Tier.DISK, now, Source.COMMANDED)
    return [
        Note(cause=event.id, kind="load_failed", facts={"pod": event.pod, "adapter": event.adapter, "why": event.why})
    ]


def on_evicted(state: FleetState, event: Evicted, now: Seconds) -> list[Effect]:
    """The engine said that an adapter left a level."""
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        state.residency.left(row, event.adapter, event.tier, now, Source.REPORTED)
    return []


def on_unloaded(state: FleetState, event: Unloaded, now: Seconds) -> list[Effect]:
    """The engine forgot the name; on vLLM the weights keep their slot."""
    del now
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        state.residency.unregistered(row, event.adapter)
    return []


def on_pin_set(state: FleetState, event: PinSet, now: Seconds) -> list[Effect]:
    """Pins by pod or selector count in the score from now on; pins by count wait for the controller."""
    state.pins[event.adapter] = event.pin
    _mark_pins(state, event.adapter, event.pin, now)
    if event.pin.replicas is not None:
        return [_not_yet(event, "pins by count are placed by the controller")]
    return []


def on_pin_cleared(state: FleetState, event: PinCleared, now: Seconds) -> list[Effect]:
    """The operator no longer insists."""
    state.pins.pop(event.adapter, None)
    _mark_pins(state, event.adapter, PinSpec(), now)
    return []


def _mark_pins(state: FleetState, name: AdapterName, pin: PinSpec, now: Seconds) -> None:
    for row, pod in state.columns.live():
        state.residency.pin(row, name, pinned=pins_here(pin.pods, pin.selector, pod), now=now)


def on_adapter_declared(state: FleetState, event: AdapterDeclared | AdapterChanged, now: Seconds) -> list[Effect]:
    """The operator names an adapter or says more of it."""
    state.adapters[event.adapter.name] = event.adapter
    state.residency.declare(event.adapter.name)
    if event.adapter.pin is not None:
        pin = PinSet(t=event.t, id=event.id, adapter=event.adapter.name, pin=event.adapter.pin)
        return on_pin_set(state, pin, now)
    return []


def on_adapter_retired(state: FleetState, event: AdapterRetired, now: Seconds) -> list[Effect]:
    """The operator withdraws an adapter; pods that register it may still be asked for it."""
    del now
    state.adapters.pop(event.adapter, None)
    state.pins.pop(event.adapter, None)
    state.residency.retire(event.adapter)
    return []


def on_config_changed(state: FleetState, event: ConfigChanged, now: Seconds) -> list[Effect]:
    """New settings are in force for the next decision."""
    before = {adapter.name for adapter in state.settings.adapters}
    state.settings = event.settings
    state.policy = make_policy(event.settings.picking)
    state.holds.limit = event.settings.admission.max_queued
    state.aliases = {alias.name: alias for alias in event.settings.aliases}
    effects: list[Effect] = []
    for adapter in event.settings.adapters:
        before.discard(adapter.name)
        effects += on_adapter_declared(state, AdapterDeclared(t=event.t, id=event.id, adapter=adapter), now)
    for name in sorted(before):
        effects += on_adapter_retired(state, AdapterRetired(t=event.t, id=event.id, adapter=name), now)
    return effects


def refuse(state: FleetState, event: Event, now: Seconds) -> list[Effect]:
    """An event of a part that does not exist yet."""
    del state, now
    return [_not_yet(event, "this part is not built yet")]


def _not_yet(event: Event, why: str) -> Note:
    return Note(cause=event.id, kind="not_yet", facts={"event": type(event).__name__, "why": why})
