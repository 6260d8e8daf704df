"""Scorers of lorapick's own, as further plugins of profiles: they look at residency, where llm-d's see activity.

In: the picking settings, a decision. Out: a value per candidate in [0, 1]. A profile that has one of them leaves
admission to the picker: requests follow loads under way, and no pod gets more adapters than it has slots.
Not here: the policies that they stand for (`core.picking.weighted`, `core.picking.cost`).
"""

from lorapick.core.picking.cost import Cost
from lorapick.core.picking.query import FleetView, Query
from lorapick.core.picking.weighted import Weighted, affinity_table
from lorapick.model.settings import PickingSettings

_FREE = 64
"""Bit of `affinity_table` for a pod with a free slot."""


class Residency:
    """`lorapick-residency-scorer`: the value of the tier that the adapter has on the pod; 1 for base models."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    aware = True

    def __init__(self, settings: PickingSettings) -> None:
        self._values = affinity_table(settings.affinity)

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """Of each."""
        codes = query.codes
        if codes is None:
            return [1.0] * len(rows)
        return [self._values[codes[row] | (_FREE if view.free_slots[row] > 0 else 0)] for row in rows]


class WeightedSum:
    """`lorapick-weighted-scorer`: the score of the policy `weighted`, as a share of its weights."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = Weighted.reads
    aware = True

    def __init__(self, settings: PickingSettings) -> None:
        self._policy = Weighted(settings)
        weights = settings.weights
        self._whole = weights.adapter + weights.kv + weights.queue + weights.gpu or 1.0

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """Of each."""
        policy = self._policy
        return [policy.score(query, view, row=row, rows=rows) / self._whole for row in rows]


class LeastSeconds:
    """`lorapick-cost-scorer`: 1 where the request takes the least time, its own and others', 0 where the most."""

    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = Cost.reads
    aware = True

    def __init__(self, settings: PickingSettings) -> None:
        self._policy = Cost(settings)

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """1 for all when they take the same."""
        scores = self._policy.score_rows(query, view, rows=rows)
        best, worst = max(scores), min(scores)
        return [1.0 if best == worst else (score - worst) / (best - worst) for score in scores]
