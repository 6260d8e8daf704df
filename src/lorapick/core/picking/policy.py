"""What a picking policy is: a preference among the pods that the filters left.

A policy gives a score, higher is better: for one row (obvious), for some rows (a loop), for all rows (columns).
All three do the same float64 operations in the same order, so that they and a replay agree to the last bit.
A policy may weigh a pod against the others, so each call names the candidates: all rows that no filter vetoed,
in row order, never none.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.picks import Terms


class Policy(Protocol):
    """A pure preference; holds its settings, and what follows from who is in the fleet, and nothing else."""

    name: str
    coalesces: bool
    """Whether requests for an adapter that is on its way follow the pod that loads it [R3.3]."""
    waits: bool
    """Whether a request that finds no room waits at the picker; where not, it is refused."""
    keeps_sessions: bool
    """Whether a session's last pod is taken before the best one, when both hold the adapter alike [R2.3]."""
    reads: tuple[str, ...]
    """What it reads of a view that not all policies do (`load`, `members`, `scraped`); explanations keep a copy."""
    counts_in_flight: bool
    """Whether it reads `Query.in_flight`."""
    narrows: bool
    """Whether `narrow` may take candidates out; where it does not, nobody asks it."""

    def narrow(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those of the candidates `rows` that its own filters leave, in their order; only where it `narrows`."""
        ...

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Score of one of the candidates `rows`."""
        ...

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """Scores of the candidates `rows`, in their order, without a call per row."""
        ...

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Scores of all rows, a fresh array; those of rows that are no candidates (`may` is False) mean nothing."""
        ...

    def terms(self, query: Query, view: FleetView, *, row: int) -> Terms | None:
        """The parts of one pod's score, for an explanation; None when the policy has none."""
        ...

    def weights(self) -> dict[str, float]:
        """Weight of each part, for an explanation."""
        ...
