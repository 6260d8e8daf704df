"""What operators want: pins, orders, declarations, aliases, settings.

In: intent as events. Out: notes, and decisions that were waiting for it. Placement acts on it at its next tick, which
comes at once. Not here: what pods answer (see `core.operator`), what is done about intent (see `core.placement`).
"""

from collections.abc import Callable

import msgspec

from lorapick.core import modes
from lorapick.core.arms_routing import Moment
from lorapick.core.peers import listening
from lorapick.core.picking.policies import make_policy
from lorapick.core.placement import by_load, pinning
from lorapick.core.placement.controller import stir, wake
from lorapick.core.placement.pins import meant
from lorapick.core.placement.state import Order
from lorapick.core.placement.wants import Want, fits
from lorapick.core.releasing import admit
from lorapick.core.state import FleetState
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Effect, Note
from lorapick.model.events import (
    AdapterChanged,
    AdapterChecked,
    AdapterDeclared,
    AdapterRetired,
    AliasCleared,
    AliasSet,
    ConfigChanged,
    DemandRecalled,
    LeadershipChanged,
    LoadAsked,
    MoveAsked,
    PinCleared,
    PinSet,
    PlacementComputed,
    TriggerFired,
    UnloadAsked,
)
from lorapick.model.placement import Why
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, Seconds

PIN_REFUSED = "pin_refused"
"""Kind of the note that a pin does not fit."""
TRIGGER_REFUSED = "trigger_refused"
"""Kind of the note that an event, or one of its triggers, loads nothing."""


def on_pin_set(state: FleetState, event: PinSet, *, now: Seconds) -> list[Effect]:
    """The operator wants an adapter resident; refused, with the arithmetic, when it does not fit."""
    problem = pinning.why_not(state, event.adapter, pin=event.pin)
    if problem is not None:
        facts: dict[str, str | float] = {"adapter": event.adapter, "why": problem}
        return [Note(cause=event.id, kind=PIN_REFUSED, facts=facts)]
    state.pins[event.adapter] = event.pin
    _stay(state, event.adapter, meant=lambda pod: meant(event.pin, pod))
    wake(state, now=now)
    return []


def on_pin_cleared(state: FleetState, event: PinCleared, *, now: Seconds) -> list[Effect]:
    """The operator no longer insists."""
    state.pins.pop(event.adapter, None)
    wake(state, now=now)
    return []


def on_load_asked(state: FleetState, event: LoadAsked, *, now: Seconds) -> list[Effect]:
    """The operator wants an adapter loaded: the newest order replaces those before, unless they name other pods."""
    want = Want(
        adapter=event.adapter,
        why=Why.OPERATOR,
        name=f"load {event.id}",
        replicas=event.replicas,
        pods=event.pods,
        selector=event.selector,
        until=now + event.lasts if event.lasts is not None else None,
    )
    _order(state, Order(want, once=event.lasts is None, asked=now), now=now)
    return []


def _order(state: FleetState, order: Order, *, now: Seconds) -> None:
    placement, name = state.placement, order.want.adapter
    want = order.want
    placement.orders = [each for each in placement.orders if each.want.adapter != name or _apart(each.want, want)]
    placement.orders.append(order)
    _stay(state, name, meant=lambda pod: pod.name in want.pods if want.pods else fits(want.selector, pod))
    wake(state, now=now)


def _apart(one: Want, other: Want) -> bool:
    """Whether both name pods, and none of them is the same."""
    return bool(one.pods and other.pods) and not any(pod in other.pods for pod in one.pods)


def _stay(state: FleetState, name: AdapterName, *, meant: Callable[[Pod], bool]) -> None:
    """The newest word counts: what was to be taken from these pods, and has not been, stays there."""
    for row, pod in state.columns.live():
        if meant(pod):
            state.placement.unloads.pop((row, name), None)
            state.placement.unwanted.pop((row, name), None)


def on_unload_asked(state: FleetState, event: UnloadAsked, *, now: Seconds) -> list[Effect]:
    """The operator wants an adapter away; that happens when no request for it is in flight there."""
    placement, name = state.placement, event.adapter
    placement.orders = [each for each in placement.orders if each.want.adapter != name]
    for row, pod in state.columns.live():
        if (not event.pods or pod.name in event.pods) and state.residency.home(row).caches.unloads:
            placement.unloads[row, name] = Why.OPERATOR
            placement.unwanted[row, name] = None
    wake(state, now=now)
    return []


def on_move_asked(state: FleetState, event: MoveAsked, *, now: Seconds) -> list[Effect]:
    """Loaded on one pod first, then unloaded on the other."""
    want = Want(adapter=event.adapter, why=Why.OPERATOR, name=f"move {event.id}", pods=(event.target,))
    _order(state, Order(want, once=True, asked=now, leaves=event.source), now=now)
    return []


def on_alias_set(state: FleetState, event: AliasSet, *, now: Seconds) -> list[Effect]:
    """The next request by that name goes to what it leads to now."""
    del now
    state.aliases[event.alias.name] = event.alias
    return []


def on_alias_cleared(state: FleetState, event: AliasCleared, *, now: Seconds) -> list[Effect]:
    """The name is unknown from now on."""
    del now
    state.aliases.pop(event.name, None)
    return []


def on_adapter_checked(state: FleetState, event: AdapterChecked, *, now: Seconds) -> list[Effect]:
    """What an adapter's files say. With a problem nobody loads it by command; requests go where it is."""
    placement, name = state.placement, event.adapter
    before = placement.problems.pop(name, None)
    placement.facts[name] = event.facts
    stir(state, now=now)
    if event.problem is None:
        return _learn(state, name, event=event)
    placement.problems[name] = event.problem
    if before == event.problem:
        return []
    return [Note(cause=event.id, kind="adapter_refused", facts={"adapter": name, "why": event.problem})]


def _learn(state: FleetState, name: AdapterName, *, event: AdapterChecked) -> list[Effect]:
    """Take over what the operator did not say."""
    adapter, facts = state.adapters.get(name), event.facts
    if adapter is not None:
        state.adapters[name] = msgspec.structs.replace(
            adapter,
            rank=adapter.rank if adapter.rank is not None else facts.rank,
        )
    return []


def on_adapter_declared(state: FleetState, event: AdapterDeclared | AdapterChanged, *, now: Seconds) -> list[Effect]:
    """The operator names an adapter or says more of it."""
    _declare(state, event.adapter)
    wake(state, now=now)
    return []


def _declare(state: FleetState, adapter: Adapter) -> None:
    before = state.adapters.get(adapter.name)
    state.adapters[adapter.name] = adapter
    if adapter.name in state.placement.retiring:
        del state.placement.retiring[adapter.name]
        _stay(state, adapter.name, meant=lambda _: True)
    state.residency.declare(adapter.name)
    # A pin that the declaration itself gave goes with it; one set by PinSet stays.
    if adapter.pin is not None:
        state.pins[adapter.name] = adapter.pin
    elif before is not None and before.pin is not None:
        state.pins.pop(adapter.name, None)


def on_adapter_retired(state: FleetState, event: AdapterRetired, *, now: Seconds) -> list[Effect]:
    """The operator withdraws an adapter: no new requests; pods forget it once those in flight have ended."""
    _retire(state, event.adapter)
    wake(state, now=now)
    return []


def _retire(state: FleetState, name: AdapterName) -> None:
    adapter = state.adapters.pop(name, None)
    state.unloads.forget(name)
    state.residency.retire(name)
    state.pins.pop(name, None)
    placement = state.placement
    placement.orders = [each for each in placement.orders if each.want.adapter != name]
    if adapter is not None and adapter.source is not None and state.settings.placement.enabled:
        placement.retiring[name] = None  # pods were told of it by us; others may have it from somebody else


def on_config_changed(state: FleetState, event: ConfigChanged, *, now: Seconds) -> list[Effect]:
    """New settings are in force for the next decision.

    Raises:
        ValueError: they name a policy that does not exist; the old settings stay in force.
    """
    settings = event.settings
    policy = make_policy(settings.picking)
    if settings.mode != state.settings.mode:
        return _set_mode(state, event, now=now)
    state.arms.configure(settings, now=now)
    state.unloads.configure(settings.retention)
    state.take_policy(policy)
    before = {adapter.name: None for adapter in state.settings.adapters}
    state.settings = settings
    state.queues.fairness, state.queues.patience = settings.admission.fairness, settings.admission.patience
    state.gates.configure(settings, on=state.policy.coalesces)
    state.recount()
    state.probation.share = settings.admission.probation_slots_share
    state.residency.load_times, state.residency.retention = settings.load_times, settings.retention
    state.signals.useful.load_times = settings.load_times
    state.prefixes.blocks_per_pod = settings.picking.prefix_blocks_per_pod
    state.placement.configure(settings)
    state.peers.configure(settings.peers)
    state.aliases = {alias.name: alias for alias in settings.aliases}
    for adapter in settings.adapters:
        before.pop(adapter.name, None)
        _declare(state, adapter)
    for name in before:
        _retire(state, name)
    wake(state, now=now)
    for row in state.loads:
        state.residency.home(row).excuse()
        state.refresh(row)
    return [*listening.configured(state, now=now, cause=event.id), *admit(state, now=now, cause=event.id)]


def _set_mode(state: FleetState, event: ConfigChanged, *, now: Seconds) -> list[Effect]:
    """Take over the mode, then what else is new, if anything; who waits and is only observed now is sent on."""
    effects = modes.change(state, event.settings, at=Moment(now, event.id))
    modes.said(state)
    if event.settings != state.settings:
        return [*effects, *on_config_changed(state, event, now=now)]
    return [*effects, *admit(state, now=now, cause=event.id)]


def on_leadership_changed(state: FleetState, event: LeadershipChanged, *, now: Seconds) -> list[Effect]:
    """Who does not lead goes on picking, and knows what is wanted; it tells pods nothing."""
    placement = state.placement
    placement.leads = event.leads
    placement.commands_pods = placement.may_tell and state.settings.placement.enabled
    wake(state, now=now)
    return [Note(cause=event.id, kind="leadership", facts={"leads": "yes" if event.leads else "no"})]


def on_trigger_fired(state: FleetState, event: TriggerFired, *, now: Seconds) -> list[Effect]:
    """Something happened outside; what it loads is wanted for a while."""
    registry = state.residency.registry
    fired = state.placement.triggers.fired(
        event.name,
        event.attributes,
        now=now,
        known=lambda name: name in state.adapters or registry.known(name),
    )
    if fired.wants:
        state.placement.hurry_a_little(now)
    refused = [{"event": event.name, "why": each.why.value, "detail": each.words} for each in fired.refusals]
    return [Note(cause=event.id, kind=TRIGGER_REFUSED, facts={**facts}) for facts in refused]


def on_placement_computed(state: FleetState, event: PlacementComputed, *, now: Seconds) -> list[Effect]:
    """A solver has answered; what is older than the last answer is not looked at."""
    by_load.take(state.placement, event.plan, version=event.version, now=now)
    return []


def on_demand_recalled(state: FleetState, event: DemandRecalled, *, now: Seconds) -> list[Effect]:
    """What was asked for before this process began; the next tick chooses anew, once for all pieces that came."""
    del now
    state.placement.history.recall(event.bins)
    state.signals.traffic.known(each.adapter for each in event.bins)
    state.placement.ahead = None
    return []
