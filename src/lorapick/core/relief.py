"""Make room on a pod whose memory is short, where an unload makes room [R3.8].

In: a pod's report, and the fleet's state. Out: at most one Unload, of the idle adapter that the pod misses least, with
a note that says so. Nobody is unloaded for whom a request runs, waits, is held there or is prefilled elsewhere to be
decoded there; nor a pin; nor an adapter that no other pod could serve now: an unload takes the name away too, until it
is given back (see `core.restoring`). Pods that decode serve what a pod that only prefills has, never the other way.
Not here: who is missed least (see `core.retention`), what pressure is (see `core.admission.pressure`).
"""

from lorapick.core.admission.pressure import Pressure
from lorapick.core.columns import TIER_BITS
from lorapick.core.residency.cells import PodResidency
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, Note, Unload
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

WHY = Reason.PRESSURE_HARD.value


def relieve(state: FleetState, row: int, *, since: Seconds, now: Seconds, cause: int) -> list[Effect]:
    """Unload one adapter of a pod under pressure that has one to spare, after a report asked for at `since`."""
    load = state.loads[row]
    if load.pressure_tier < Pressure.HARD or load.draining or not state.policy.coalesces:
        return []
    placement = state.placement
    if not placement.may_tell or placement.commands.busy(row) or not state.unloads.may_ask(row, since=since, now=now):
        return []
    names = spare(state, row, now=now)
    if not names:
        return []
    name, worth = state.unloads.least(row, names, now=now)
    state.unloads.ask(row, name, now=now)
    state.tally.unloads += 1
    pod = state.columns.targets[row].pod
    facts: dict[str, str | float] = {"pod": pod, "adapter": name, "why": WHY, "worth": worth, "spare": len(names)}
    return [Note(cause=cause, kind="unload", facts=facts), Unload(cause=cause, pod=pod, adapter=name, why=WHY)]


def spare(state: FleetState, row: int, *, now: Seconds) -> list[AdapterName]:
    """Adapters in the pod's slots that may be unloaded, in the order of their last use."""
    home = state.residency.home(row)
    held = {state.flights[request_id].adapter_name: None for request_id in state.holds.waiting_for(row)}
    return [
        name
        for name in home.shadow.gpu
        if name not in held
        and _idle(home, name)
        and not _pinned(state, home, name=name)
        and not state.queues.wanted(name)
        and _served_elsewhere(state, row, name=name, now=now)
    ]


def _idle(home: PodResidency, name: AdapterName) -> bool:
    cell = home.cells.get(name)
    return cell is not None and cell.tier is Tier.GPU_IDLE and not home.busy(name) and name not in home.reserved


def _pinned(state: FleetState, home: PodResidency, *, name: AdapterName) -> bool:
    """A pin by count, which nobody places, may mean any of the pods that have it."""
    pin = state.all_pins.get(name)
    by_count = pin is not None and (pin.replicas is not None or bool(pin.prefill_replicas))
    return home.cells[name].pinned or by_count


def _served_elsewhere(state: FleetState, row: int, *, name: AdapterName, now: Seconds) -> bool:
    """Whether another pod takes its requests: it has it, or may load it."""
    columns, codes = state.columns, state.columns.adapter_row(name)
    leaving = state.unloads.rows(name, now=now) if state.unloads.under_way else ()
    base = columns.base[row]
    for other, _ in columns.live():
        if other == row or other in leaving or columns.gate[other] or columns.fresh_until[other] < now:
            continue
        tier = codes[other] & TIER_BITS
        loads = state.loads[other].pressure_tier is Pressure.NONE and tier > Tier.UNREGISTERED
        if columns.base[other] == base and not columns.prefill_only[other] and (tier >= Tier.LOADING or loads):
            return True
    return False
