"""The pod where a request costs the least time, its own and that of others [R6.5].

    seconds = base + each·n                     until it is answered, with n requests there
            + each·n                            that it adds to those n
            + prefill·uncached tokens
            + load(tier) + price of a load      where the adapter is not on the GPU
            + what is left of the load          where it is on its way

Scores are negative seconds. `base`, `each` and the loads are learnt from the fleet's own answers
(`core.admission.estimates`); prices are in a column (`core.admission.prices`).
"""

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import TIER_BITS, PodColumns
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.picks import Terms
from lorapick.model.settings import PickingSettings
from lorapick.model.tiers import Tier

_DISK, _LOADING = int(Tier.DISK), int(Tier.LOADING)


class Cost:
    """Least seconds."""

    name = "cost"
    coalesces = True
    waits = True
    keeps_sessions = True
    reads: tuple[str, ...] = ("load", "load_price")
    counts_in_flight = False
    narrows = False

    def __init__(self, settings: PickingSettings) -> None:
        del settings

    def narrow(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """All of them."""
        del query, view
        return rows

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Negative seconds on one pod, in the order of the formula."""
        del rows
        costs = query.costs
        seconds = costs.base + 2.0 * costs.each * view.load[row] + query.uncached(row, costs.prefill)
        if query.codes is not None:
            tier = query.codes[row] & TIER_BITS
            if tier < _LOADING:
                seconds += (costs.from_disk if tier == _DISK else costs.from_cpu) + view.load_price[row]
            elif tier == _LOADING:
                seconds += costs.remaining.get(row, 0.0)
        return -seconds

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for the candidates."""
        return [self.score(query, view, row=row, rows=rows) for row in rows]

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        del may
        view, costs = columns.vectors(), query.costs
        prefill = np.full(columns.rows, costs.prefill)
        for row in query.kv:
            prefill[row] = query.uncached(row, costs.prefill)
        seconds: NDArray[np.float64] = costs.base + 2.0 * costs.each * view.load + prefill
        if query.codes is not None:
            tiers = np.frombuffer(query.codes, dtype=np.uint8)[: columns.rows] & TIER_BITS
            missing = np.where(tiers == _DISK, costs.from_disk, costs.from_cpu) + view.load_price
            seconds += np.where(tiers < _LOADING, missing, 0.0)
            for row, left in costs.remaining.items():
                if tiers[row] == _LOADING:
                    seconds[row] += left
        return -seconds

    def terms(self, query: Query, view: FleetView, *, row: int) -> Terms | None:
        """None: its parts are seconds, which `Terms` does not hold."""
        del query, view, row
        return None

    def weights(self) -> dict[str, float]:
        """None: nothing is weighed."""
        return {}
