"""Names that pods should know, and names that they should forget.

In: declared adapters with a source, what pods accept, unloads that are wanted. Out: Register and Unload commands, one
at a time per pod. An engine answers 404 to a name that it was not told, so every pod that may serve an adapter is told
of it, those first that fewest pods know. On vLLM the same call brings the adapter into a slot, so the guard has its
say. Nothing is unloaded while a request for it is in flight there, or on its way there.
Not here: which adapters fit a pod (see `core.placement.guard`).
"""

from heapq import nsmallest

from lorapick.core.placement import giving, guard, turning
from lorapick.core.placement.state import Refusal
from lorapick.core.placement.targets import Target
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect
from lorapick.model.placement import Why
from lorapick.model.units import AdapterName, Seconds

TRIES = 4
"""Names that the guard is asked about for one pod in one tick."""
LOOKS = 64
"""Names of which it is found out whether they fit, likewise; those that do not are left out from then on."""


def any_to_register(state: FleetState) -> bool:
    """Whether some pod does not know a name that it should."""
    return any(unknown(state, row) for row in state.loads)


def unknown(state: FleetState, row: int) -> list[AdapterName]:
    """Names that a pod should know, if it can serve them, and does not; none while it has not been asked."""
    placement, registry = state.placement, state.residency.registry
    listed = registry.listed(row)
    if listed is None or not state.residency.home(row).caches.registers:
        return []
    key = id(listed), registry.declarations
    cached = placement.unknown.get(row)
    if cached is None or cached[0] != key:
        names = [
            name
            for name, adapter in state.adapters.items()
            if adapter.source is not None and adapter.declared and name not in listed
        ]
        cached = placement.unknown[row] = (key, names, listed)
    return cached[1]


def register(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Tell each pod that may be told of one name: one that fewest pods know, the most wanted first."""
    rows = [row for row in state.loads if not state.placement.commands.busy(row) and unknown(state, row)]
    ranks: dict[AdapterName, tuple[int, float]] = {}
    effects: list[Effect] = []
    for row in rows:
        placement = state.placement
        names = [
            name
            for name in unknown(state, row)
            if (row, name) not in placement.unwanted and placement.fits.get((row, name)) is None
        ]
        for name in names:
            if name not in ranks:
                ranks[name] = _known_by(state, name)
        looked = nsmallest(LOOKS, names, key=ranks.__getitem__)
        fit = [name for name in looked if guard.cannot_serve(state, row, name=name) is None]
        for name in fit[:TRIES]:
            target = Target(row, name, Why.REGISTER)
            reason = guard.refuse(state, target, now=now)
            if reason is None:
                effects += giving.register(state, target, now=now, cause=cause)
                break
            state.placement.refused(row, name, refusal=Refusal(reason, Why.REGISTER, now))
            if reason in (guard.EVICTS_KEPT, guard.EVICTS_LAST_COPY):
                effects += turning.turn(state, target, now=now, cause=cause)
                break
    return effects


def _known_by(state: FleetState, name: AdapterName) -> tuple[int, float]:
    """Those that fewest pods know first, then those that are asked for most."""
    return state.residency.registry.accepting(name), -state.prices.demand.rate(name, now=state.now)


def may_come_back(state: FleetState, row: int, *, name: AdapterName) -> bool:
    """Whether a pod that forgets a name could be told it again: by its source, or by what its engine lists."""
    adapter = state.adapters.get(name)
    return (adapter is not None and adapter.source is not None) or state.residency.home(row).caches.relieves


def withdraw(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Unload what is to leave and not in use; a retired adapter is forgotten when no pod knows it any more."""
    placement, registry = state.placement, state.residency.registry
    for name in [*placement.retiring]:
        rows = [row for row in state.loads if registry.accepts(row, name) and state.residency.home(row).caches.unloads]
        for row in rows:
            placement.unloads[row, name] = Why.RETIRED
        if not rows:
            del placement.retiring[name]
    effects: list[Effect] = []
    for (row, name), why in [*placement.unloads.items()]:
        if not registry.accepts(row, name):
            del placement.unloads[row, name]
        elif _may_unload(state, row, name=name, now=now):
            effects += giving.unload(state, Target(row, name, why), now=now, cause=cause)
    return effects


def _may_unload(state: FleetState, row: int, *, name: AdapterName, now: Seconds) -> bool:
    placement, home = state.placement, state.residency.home(row)
    keeps = placement.keeps.get(row)
    if keeps is not None and name in keeps.pinned:
        return False
    if placement.commands.busy(row) or state.unloads.busy(row, now=now) or state.loads[row].circuit_open:
        return False
    if placement.commands.resting(row, name, now=now):
        return False
    return not home.busy(name) and name not in home.reserved and not state.queues.wanted(name)
