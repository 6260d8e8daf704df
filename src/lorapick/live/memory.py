"""What pods have in their memories, cheaply: asked once a second for every pod while somebody watches the page.

In: the core's state. Out: rows by pod. Not here: all that is believed of an adapter (see `core.residency.beliefs`).
"""

from collections.abc import Mapping, Sequence

from lorapick.core.columns import TIER_BITS
from lorapick.core.residency.cells import PodResidency
from lorapick.core.state import FleetState
from lorapick.live.publish import InMemory
from lorapick.model.tiers import Tier
from lorapick.model.units import PodName

# Looking a member up in its enum costs more than the rest of a row.
_TIERS = tuple(Tier)
_LEAST = int(Tier.CPU)


def in_memory(state: FleetState, *, least: Tier) -> Mapping[PodName, Sequence[InMemory]]:
    """What each pod has in the tier `least`, or in a readier one; pods without any have an empty row."""
    return {home.name: _of(state, home, least=least) for home in state.residency.homes()}


def _of(state: FleetState, home: PodResidency, *, least: Tier) -> list[InMemory]:
    codes, row = state.columns.adapters, home.row
    found = []
    for name, cell in home.cells.items():
        if cell.tier >= least:
            # The column knows serving from idle, and whether the pod still takes the name; every cell has one.
            tier = codes[name][row] & TIER_BITS
            if tier >= _LEAST:
                found.append(InMemory(name, _TIERS[tier], cell.since, cell.source, cell.in_flight, cell.pinned))
    return found
