"""Consistent hashing with bounded loads: an adapter has one home on a ring of pods, and spills clockwise when busy.

Each pod has 256 points on a ring of 2^64; a request starts at its key's point and takes the first pod clockwise whose
load is below ceil(1.25 × mean load of the candidates, this request counted) (Mirrokni, Thorup, Zadimoghaddam,
arXiv:1608.01350). Factor and points are those of KubeAI's `PrefixHash`, which hashes adapter and prefix together.
Here the key of an adapter's request is the adapter alone: hashing the prefix too would spread each adapter over all
pods, which is sound where every pod holds every adapter (KubeAI) and thrash where it is loaded on demand. A request for
a base model has nothing but its prefix: its first block, or else its id, is the key.

Two differences to KubeAI (`internal/loadbalancer/balance_chwbl.go`): the bound is rounded up, as in the paper, so that
an idle fleet is not "full"; and mean and bound are over pods that may serve, so that some pod is always below it.
"""

from array import array
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.picking.baseline import BEHIND, Baseline
from lorapick.core.picking.hashing import Members, Orders, bound, digest, places
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.settings import PickingSettings
from lorapick.model.units import PodName

POINTS = 256
"""Points of each pod on the ring, also called virtual nodes."""


@lru_cache(maxsize=4096)
def points(pod: PodName) -> NDArray[np.uint64]:
    """Where a pod is on the ring."""
    return np.array([digest(f"{pod}#{point}") for point in range(POINTS)], dtype=np.uint64)


@lru_cache(maxsize=4)
def _ring(members: Members) -> tuple[list[int], NDArray[np.uint64]]:
    rows = [row for row, pod in enumerate(members) if pod is not None]
    return rows, np.stack([points(pod) for pod in members if pod is not None])


def clockwise(key: str, members: Members) -> "array[float]":
    """Place of each pod when one walks the ring from `key` and counts a pod where it is met first."""
    rows, ring = _ring(members)
    # Unsigned numbers wrap, as the ring does: this is how far to walk to each pod's nearest point.
    walks = (ring - np.uint64(digest(key))).min(axis=1)
    met = [rows[index] for index in walks.argsort(kind="stable").tolist()]
    return places([*met, *(row for row, pod in enumerate(members) if pod is None)])


class Chwbl(Baseline):
    """Score is minus the place on the way round the ring; pods at the bound come behind all others."""

    name = "chwbl"
    reads: tuple[str, ...] = ("load", "members")

    def __init__(self, settings: PickingSettings) -> None:
        super().__init__(settings)
        self._orders = Orders(clockwise)

    def _places(self, query: Query, view: FleetView) -> "array[float]":
        if query.adapter is not None:
            return self._orders.of(query.adapter, view.members)
        key = query.request_id if query.first_block is None else str(query.first_block)
        return clockwise(f"base model {key}", view.members)

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Minus the pods that come before it on the ring, and `BEHIND` if it is full."""
        full = bound(sum(view.load[other] for other in rows), pods=len(rows))
        return 0.0 - self._places(query, view)[row] - (BEHIND if view.load[row] >= full else 0.0)

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for all candidates."""
        place, load = self._places(query, view), view.load
        full = bound(sum([load[row] for row in rows]), pods=len(rows))
        return [0.0 - place[row] - (0.0 if load[row] < full else BEHIND) for row in rows]

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        place, load = np.frombuffer(self._places(query, columns)), columns.vectors().load
        full = bound(float(load[may].sum()), pods=int(may.sum()))
        return 0.0 - place - np.where(load < full, 0.0, BEHIND)
