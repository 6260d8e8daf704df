"""Power of two choices: of two different pods drawn at random, the less loaded one.

Nearly as even as looking at all pods, and pickers that share a fleet and know little of each other do not all run
to the same one (Mitzenmacher 2001). Load as for least-loaded; which pod holds the adapter plays no part.
"""

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.draw import draw_for
from lorapick.core.picking.baseline import BEHIND, Baseline
from lorapick.core.picking.query import FleetView, Query


def pair(query: Query, count: int) -> list[int]:
    """Two different places among `count` candidates, every ordered pair as likely; one place if there is one."""
    if count == 1:
        return [0]
    chance = draw_for(query.seed, query.request_id, purpose=PowerOfTwo.name)
    first, second = divmod(int(chance * (count * (count - 1))), count - 1)
    return [first, second + (second >= first)]


class PowerOfTwo(Baseline):
    """Score is minus the load; pods that were not drawn come behind, the least loaded first."""

    name = "power-of-two"
    reads: tuple[str, ...] = ("load",)

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Minus the load of a pod that was drawn, or that and `BEHIND`."""
        drawn = [rows[place] for place in pair(query, len(rows))]
        return 0.0 - view.load[row] - (0.0 if row in drawn else BEHIND)

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for all candidates."""
        load = view.load
        scores = [0.0 - load[row] - BEHIND for row in rows]
        for place in pair(query, len(rows)):
            scores[place] = 0.0 - load[rows[place]]
        return scores

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        load = columns.vectors().load
        candidates = np.flatnonzero(may)
        drawn = candidates[pair(query, len(candidates))]
        scores: NDArray[np.float64] = 0.0 - load - BEHIND
        scores[drawn] = 0.0 - load[drawn]
        return scores
