"""Rendezvous hashing with as many replicas as the load of an adapter needs, least loaded among them.

Each pod has a rank for each adapter, by a hash of both names (highest random weight): when a pod leaves, only the
adapters it was a replica of move. An adapter may use its first r pods:

    full = max(4, ceil(1.25 × mean load of the candidates, this request counted))
    r    = ceil((own requests in flight for it + 1) / full)

that is as many as it takes so that this adapter alone fills no pod beyond the bound of consistent hashing with bounded
loads: one while it is rare or the fleet idle, more as its share grows, and the first ones always among them. The
bound has a floor, since a batch of a few requests costs a pod little and one more replica costs a load. Inside the set
the least loaded pod wins, equals by rank. When all r pods are full, the set grows pod by pod until one is not. For a
base model every pod is a replica: least loaded.

NVIDIA Dynamo ranks adapters this way and gives each replicas by its share of estimated load, from a controller that
looks every 3 seconds. Here the share is that of the requests in flight at the decision; requests of other pickers for
the adapter are not seen.
"""

import math
from array import array

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import PodColumns
from lorapick.core.picking.baseline import BEHIND, Baseline
from lorapick.core.picking.hashing import Members, Orders, bound, digest, places
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.settings import PickingSettings

FEW = 4.0
"""A pod with fewer requests is never full."""
_STEP = 2.0**-20
"""What a place in the order weighs beside one request of load: nothing, unless loads are equal."""


def by_weight(key: str, members: Members) -> "array[float]":
    """Place of each pod by its hash with `key`, highest first."""
    seed = digest(key)
    rows = [row for row, pod in enumerate(members) if pod is not None]
    rows.sort(key=lambda row: digest(members[row] or "", seed=seed), reverse=True)
    return places([*rows, *(row for row, pod in enumerate(members) if pod is None)])


def replicas(in_flight: int, loads: list[float]) -> int:
    """How many of the candidates, whose `loads` come in the adapter's order, it may use."""
    full = max(FEW, bound(sum(loads), pods=len(loads)))
    wanted = min(len(loads), math.ceil((in_flight + 1) / full))
    if min(loads[:wanted]) < full:
        return wanted
    return next((place for place, load in enumerate(loads, start=1) if load < full), len(loads))


class Rendezvous(Baseline):
    """Score inside the set is minus the load, outside minus the place in the adapter's order, behind those inside."""

    name = "rendezvous"
    reads: tuple[str, ...] = ("load", "members")
    counts_in_flight = True

    def __init__(self, settings: PickingSettings) -> None:
        super().__init__(settings)
        self._orders = Orders(by_weight)

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Minus the load, and of pods outside the set minus the place and `BEHIND`."""
        if query.adapter is None:
            return 0.0 - view.load[row]
        place = self._orders.of(query.adapter, view.members)
        ranked = sorted(rows, key=lambda other: place[other])
        chosen = ranked[: replicas(query.in_flight, [view.load[other] for other in ranked])]
        if row in chosen:
            return 0.0 - view.load[row] - place[row] * _STEP
        return 0.0 - place[row] - BEHIND

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for all candidates."""
        load = view.load
        if query.adapter is None:
            return [0.0 - load[row] for row in rows]
        place = self._orders.of(query.adapter, view.members)
        ranked = sorted(rows, key=place.__getitem__)
        count = replicas(query.in_flight, [load[row] for row in ranked])
        last = place[ranked[count - 1]]
        return [
            0.0 - load[row] - place[row] * _STEP if place[row] <= last else 0.0 - place[row] - BEHIND for row in rows
        ]

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        load = columns.vectors().load
        if query.adapter is None:
            return 0.0 - load
        place = np.frombuffer(self._orders.of(query.adapter, columns.members))
        rows = np.flatnonzero(may)
        ranked = rows[place[rows].argsort()]
        count = replicas(query.in_flight, load[ranked].tolist())
        inside = place <= place[ranked[count - 1]]
        return np.where(inside, 0.0 - load - place * _STEP, 0.0 - place - BEHIND)
