"""Round-robin: each request to the next pod that may serve it, whatever it holds. The baseline."""

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.settings import PickingSettings


class RoundRobin:
    """Score falls with the distance from the row after the last dispatch."""

    name = "round-robin"
    coalesces = False

    def __init__(self, settings: PickingSettings) -> None:
        del settings

    def score(self, query: Query, view: FleetView, *, row: int) -> float:
        """Minus the number of rows to go round until this one."""
        del query
        return -float((row - view.turn) % view.rows)

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for some rows."""
        del query
        return [-float((row - view.turn) % view.rows) for row in rows]

    def scores(self, query: Query, columns: PodColumns) -> NDArray[np.float64]:
        """The same for all rows."""
        del query
        return -((np.arange(columns.rows) - columns.turn) % columns.rows).astype(np.float64)

    def terms(self, query: Query, view: FleetView, *, row: int) -> None:
        """Round-robin weighs nothing."""
        del query, view, row

    def weights(self) -> dict[str, float]:
        """No parts."""
        return {}
