"""Random: any pod that may serve, each as likely as the others, whatever it holds and however busy it is."""

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.draw import draw_for
from lorapick.core.picking.baseline import Baseline
from lorapick.core.picking.query import FleetView, Query


def _first(query: Query, count: int) -> int:
    return int(draw_for(query.seed, query.request_id, purpose=AtRandom.name) * count)


class AtRandom(Baseline):
    """Starts at one candidate by chance and goes round from there, so that fallbacks differ from request to request."""

    name = "random"

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Minus the number of candidates to go round until this one."""
        del view
        return 0.0 - (rows.index(row) - _first(query, len(rows))) % len(rows)

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for all candidates."""
        del view
        count = len(rows)
        first = _first(query, count)
        return [0.0 - (place - first) % count for place in range(count)]

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        del columns
        places = may.cumsum() - 1
        count = int(places[-1]) + 1
        return 0.0 - ((places - _first(query, count)) % count).astype(np.float64)
