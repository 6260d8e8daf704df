"""Round-robin: each request to the next pod that may serve it, whatever it holds. The baseline."""

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.picking.baseline import Baseline
from lorapick.core.picking.query import FleetView, Query


class RoundRobin(Baseline):
    """Score falls with the distance from the row after the last dispatch."""

    name = "round-robin"

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Minus the number of rows to go round until this one."""
        del rows
        turn = view.leg_turn if query.prefill else view.turn
        return -float((row - turn) % view.rows)

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for some rows."""
        turn = view.leg_turn if query.prefill else view.turn
        return [-float((row - turn) % view.rows) for row in rows]

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        del may
        turn = columns.leg_turn if query.prefill else columns.turn
        return -((np.arange(columns.rows) - turn) % columns.rows).astype(np.float64)
