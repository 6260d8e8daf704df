"""Least loaded: the pod with the fewest requests that run or wait, whatever it holds; equals by chance.

Load is what the pod reported, corrected by our own dispatches and ends since (`PodLoad.total`), so that it does not
herd on the pod that looked idle at the last scrape.
"""

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.picking.baseline import Baseline
from lorapick.core.picking.query import FleetView, Query


class LeastLoaded(Baseline):
    """Score is minus the load."""

    name = "least-loaded"
    reads: tuple[str, ...] = ("load",)

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Minus the pod's load."""
        del query, rows
        return 0.0 - view.load[row]

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for all candidates."""
        del query
        load = view.load
        return [0.0 - load[row] for row in rows]

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        del query, may
        return 0.0 - columns.vectors().load
