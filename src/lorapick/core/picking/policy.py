"""What a picking policy is: a preference among the pods that the filters left.

A policy gives a score, higher is better: for one row (obvious), for some rows (a loop), for all rows (columns).
All three do the same float64 operations in the same order, so that they and a replay agree to the last bit.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.picks import Terms


class Policy(Protocol):
    """A pure preference; holds its settings and nothing else."""

    name: str
    coalesces: bool
    """Whether requests for an adapter that is on its way follow the pod that loads it [R3.3]."""

    def score(self, query: Query, view: FleetView, *, row: int) -> float:
        """Score of one pod."""
        ...

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """Scores of some rows, in their order, without a call per row."""
        ...

    def scores(self, query: Query, columns: PodColumns) -> NDArray[np.float64]:
        """Scores of all rows, vetoed ones included; a fresh array."""
        ...

    def terms(self, query: Query, view: FleetView, *, row: int) -> Terms | None:
        """The parts of one pod's score, for an explanation; None when the policy has none."""
        ...

    def weights(self) -> dict[str, float]:
        """Weight of each part, for an explanation."""
        ...
