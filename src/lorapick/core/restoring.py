"""Give a pod the names back that it was told to unload while its memory was short [R3.8].

In: a pod's report, or the loss of another pod, and the fleet's state. Out: Load commands with notes that say so; one
per pod at a time. A name comes back when the pod's pressure is below every tier, by a report that was asked for after
the last command ended: the one that is asked for most, over the whole fleet, before others. Whatever the pressure, it
comes back at once when no other pod would serve it. On engines where an unload makes room, a load ends in host memory:
it takes nobody's slot.
Not here: which names those are (see `core.admission.unloading`), what leaves (see `core.relief`).
"""

from lorapick.core.admission.pressure import Pressure
from lorapick.core.columns import TIER_BITS
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, Load, Note
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

PRESSURE_OVER = "pressure_over"
NOBODY_ELSE = "nobody_else"
"""Why a name comes back."""


def restore(state: FleetState, row: int, *, since: Seconds, now: Seconds, cause: int) -> list[Effect]:
    """Give one name back to a pod, after a report asked for at `since`."""
    names = _missing(state, row)
    if not names or state.loads[row].draining or not _may_ask(state, row, since=since, now=now):
        return []
    lost = [name for name in names if not _served_elsewhere(state, row, name=name, now=now)]
    if lost:
        return _give_back(state, row, names=lost, why=NOBODY_ELSE, now=now, cause=cause)
    if state.loads[row].pressure_tier is Pressure.NONE:
        return _give_back(state, row, names=names, why=PRESSURE_OVER, now=now, cause=cause)
    return []


def rescue(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Some pod was lost: give back what nobody serves any more, to pods that have least pressure first."""
    effects: list[Effect] = []
    rows = [row for row in state.unloads.rows_owed() if _serves(state, row, now=now)]
    rows.sort(key=lambda row: state.loads[row].pressure_tier)
    for row in rows:
        if _may_ask(state, row, since=now, now=now):
            lost = [name for name in _missing(state, row) if not _served_elsewhere(state, row, name=name, now=now)]
            if lost:
                effects += _give_back(state, row, names=lost, why=NOBODY_ELSE, now=now, cause=cause)
    return effects


def _may_ask(state: FleetState, row: int, *, since: Seconds, now: Seconds) -> bool:
    placement = state.placement
    return placement.may_tell and not placement.commands.busy(row) and state.unloads.may_ask(row, since=since, now=now)


def _missing(state: FleetState, row: int) -> list[AdapterName]:
    registry = state.residency.registry
    return [name for name in state.unloads.owed(row) if not registry.accepts(row, name)]


def _give_back(
    state: FleetState, row: int, *, names: list[AdapterName], why: str, now: Seconds, cause: int
) -> list[Effect]:
    name = max(names, key=lambda each: state.prices.demand.rate(each, now=now))
    state.unloads.ask(row, name, now=now, loads=True)
    state.tally.given_back += 1
    pod = state.columns.targets[row].pod
    facts: dict[str, str | float] = {"pod": pod, "adapter": name, "why": why}
    return [Note(cause=cause, kind="give_back", facts=facts), Load(cause=cause, pod=pod, adapters=(name,), why=why)]


def _served_elsewhere(state: FleetState, row: int, *, name: AdapterName, now: Seconds) -> bool:
    """Whether another pod accepts the name and keeps it, or is being given it."""
    columns, codes = state.columns, state.columns.adapter_row(name)
    leaving = state.unloads.rows(name, now=now)
    coming = state.unloads.rows(name, now=now, loads=True)
    base = columns.base[row]
    return any(
        other != row
        and other not in leaving
        and (codes[other] & TIER_BITS > Tier.UNREGISTERED or other in coming)
        and columns.base[other] == base
        and not columns.prefill_only[other]
        and _serves(state, other, now=now)
        for other, _ in columns.live()
    )


def _serves(state: FleetState, row: int, *, now: Seconds) -> bool:
    """Whether the pod is there; pressure passes."""
    load = state.loads[row]
    return not (load.draining or load.circuit_open) and state.columns.fresh_until[row] >= now
