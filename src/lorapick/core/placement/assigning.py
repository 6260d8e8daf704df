"""Which pods a want gets.

In: a want, the fleet's state, what pods are wanted for already. Out: rows, best first. Whoever has a pod keeps it; then
come pods that hold the adapter, then those that have it in host memory, then those with most slots that nobody is
wanted for; ties are broken by rendezvous, so that the same want gets the same pods everywhere.
Replicas are of one side; pods that are named may be of either.
Not here: whether it is loaded there (see `core.placement.guard`).
"""

from collections.abc import Mapping

import xxhash

from lorapick.core.columns import TIER_BITS
from lorapick.core.placement import sides
from lorapick.core.placement.guard import cannot_serve, holds
from lorapick.core.placement.wants import Want, fits
from lorapick.core.state import FleetState
from lorapick.model.placement import Side, Why
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName

Wanted = Mapping[int, Mapping[AdapterName, Why]]
"""By row: what it is to hold already."""


def rows_for(
    state: FleetState, want: Want, *, wanted: Wanted, before: tuple[int, ...] = (), side: Side = Side.DECODE
) -> tuple[int, ...]:
    """Rows of one side for one want; fewer than it asks for when no more pods fit or have a slot."""
    name = want.adapter
    if (
        len(before) == want.replicas
        and not want.pods
        and all(_stays(state, row, want=want, wanted=wanted, side=side) for row in before)
    ):
        return before
    rows = [row for row in candidates(state, want, side=side) if _has_slot(state, row, name=name, wanted=wanted)]
    count = len(want.pods) if want.pods else want.replicas
    return tuple(sorted(rows, key=lambda row: _rank(state, row, name=name, wanted=wanted, before=before))[:count])


def candidates(state: FleetState, want: Want, *, side: Side) -> list[int]:
    """Rows that a want may have, whether they have a slot for it or not."""
    found = []
    for row, pod in state.columns.live():
        meant = pod.name in want.pods if want.pods else fits(want.selector, pod)
        keeps = state.placement.keeps.get(row)
        reserved = keeps is not None and keeps.reserved and want.adapter not in keeps.pinned
        taken = (row, want.adapter) in state.placement.unwanted and want.why is not Why.OPERATOR
        on = sides.of(state, row)
        away = taken or state.loads[row].draining or on is None or (on is not side and not want.pods)
        if meant and not reserved and not away and cannot_serve(state, row, name=want.adapter) is None:
            found.append(row)
    return found


def _stays(state: FleetState, row: int, *, want: Want, wanted: Wanted, side: Side) -> bool:
    """Whether a pod has what it was chosen for, and may keep it: then nobody is looked for anew."""
    pod = state.columns.pods[row] if row in state.loads else None
    if pod is None or sides.of(state, row) is not side or not fits(want.selector, pod):
        return False
    if not _has_slot(state, row, name=want.adapter, wanted=wanted):
        return False
    load = state.loads[row]
    away = load.draining or load.circuit_open or state.columns.fresh_until[row] < state.now
    return not away and (row, want.adapter) not in state.placement.unwanted and holds(state, row, name=want.adapter)


def _has_slot(state: FleetState, row: int, *, name: AdapterName, wanted: Wanted) -> bool:
    there = wanted.get(row, {})
    return name in there or len(there) < state.residency.home(row).shadow.gpu_slots


def _rank(
    state: FleetState, row: int, *, name: AdapterName, wanted: Wanted, before: tuple[int, ...]
) -> tuple[bool, bool, int, int, float, int]:
    home = state.residency.home(row)
    tier = state.columns.adapter_row(name)[row] & TIER_BITS
    away = state.loads[row].circuit_open or state.columns.fresh_until[row] < state.now
    there = wanted.get(row, {})
    idle = home.shadow.gpu_slots - len(there) - (name not in there)
    tie = xxhash.xxh64_intdigest(f"{name}\0{home.name}".encode())
    # Loading, idle and serving are alike: it is there.
    return away, row not in before, -min(tier, int(Tier.LOADING)), -idle, state.columns.load[row], tie
