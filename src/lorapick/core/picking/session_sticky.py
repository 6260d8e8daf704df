"""Session-sticky: a session stays on the pod that served it last, as long as that may serve; others are spread.

As load balancers with cookies do: the first request of a session, and any request without one, goes to the least
loaded pod; when the session's pod may not serve, the session moves for good. Sessions are those of `Request.session`,
one for each model name that they ask for.
"""

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.picking.baseline import BEHIND, Baseline
from lorapick.core.picking.query import FleetView, Query


class SessionSticky(Baseline):
    """Score is minus the load; all but the session's pod come behind it."""

    name = "session-sticky"
    reads: tuple[str, ...] = ("load",)

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Minus the load, and `BEHIND` if another candidate is the session's pod."""
        behind = query.session_row in rows and row != query.session_row
        return 0.0 - view.load[row] - (BEHIND if behind else 0.0)

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for all candidates."""
        load, session = view.load, query.session_row
        if session not in rows:
            return [0.0 - load[row] for row in rows]
        return [0.0 - load[row] - (0.0 if row == session else BEHIND) for row in rows]

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        load, session = columns.vectors().load, query.session_row
        scores: NDArray[np.float64] = 0.0 - load
        if session >= 0 and may[session]:
            scores -= BEHIND
            scores[session] = 0.0 - load[session]
        return scores
