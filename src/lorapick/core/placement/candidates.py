"""Pairs of adapter and pod that a flow may use.

In: adapters, and pods in order of their names. Out: columns, one row for each pair: the first pods of the adapter's
order by hash that can serve it, with some of each zone, and all that hold it, have it in host memory, or hold whom it
follows. Not here: what a pair costs (`costs`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.placement.plans import fits
from lorapick.core.placement.rendezvous_plan import by_hash
from lorapick.model.placement import PlacedAdapter, PodRoom
from lorapick.model.units import AdapterName, PodName

Leaders = Mapping[AdapterName, tuple[PodName, ...]]
"""Pods of each adapter that others follow."""

FEWEST = 16
"""Pods of an adapter's order that are looked at, as in NVIDIA Dynamo's `candidate_m`; all, when there are no more."""
_SPARE = 8
"""That many more than it wants replicas, at least."""
_OF_EACH_ZONE = 2


class Pairs(NamedTuple):
    """Columns of equal length, ordered by adapter, then by place."""

    adapter: NDArray[np.int64]
    """Row of the problem."""
    pod: NDArray[np.int64]
    """Row of the pods in order of their names."""
    place: NDArray[np.int64]
    """In the adapter's order by hash, 0 first."""
    held: NDArray[np.bool_]
    warm: NDArray[np.bool_]
    """In host memory only."""
    near: NDArray[np.bool_]
    """Its leader is here; of a leader: it is where its followers look for it. True where nobody is followed."""


class _Pool:
    """Pods in order of their names, looked up by what adapters need."""

    def __init__(self, pods: Sequence[PodRoom]) -> None:
        self.names = tuple(pod.pod for pod in pods)
        self._row = {name: row for row, name in enumerate(self.names)}
        self._pods = pods
        self._fit: dict[tuple[str, int | None], frozenset[int]] = {}
        zones: dict[str | None, None] = dict.fromkeys(pod.zone for pod in pods if pod.zone is not None)
        self._zones = zones if len(zones) > 1 else {}

    def fitting(self, adapter: PlacedAdapter) -> frozenset[int]:
        """Rows that can serve it."""
        key = (adapter.base_model, adapter.rank)
        known = self._fit.get(key)
        if known is None:
            known = self._fit[key] = frozenset(row for row, pod in enumerate(self._pods) if fits(adapter, pod))
        return known

    def chosen(self, adapter: PlacedAdapter, *, extra: Iterable[PodName], all_of_them: bool) -> list[tuple[int, int]]:
        """Place and row of each pod to look at, by place."""
        may = self.fitting(adapter)
        order = by_hash(adapter.adapter, self.names)
        if all_of_them or len(may) <= self._most(adapter):
            return [(place, row) for place, row in enumerate(order) if row in may]
        found = self._first(order, may, most=self._most(adapter))
        for row in (self._row[name] for name in extra if name in self._row):
            if row in may and row not in found:
                found[row] = order.index(row)
        return sorted((place, row) for row, place in found.items())

    def _most(self, adapter: PlacedAdapter) -> int:
        return max(FEWEST, adapter.replicas + _SPARE)

    def _first(self, order: Sequence[int], may: frozenset[int], *, most: int) -> dict[int, int]:
        """Places of the first rows that fit, and of the first of each zone."""
        found: dict[int, int] = {}
        lacking = dict.fromkeys(self._zones, _OF_EACH_ZONE)
        for place, row in enumerate(order):
            if len(found) >= most and not lacking:
                break
            zone = self._pods[row].zone
            if row in may and (len(found) < most or zone in lacking):
                found[row] = place
                if zone in lacking:
                    lacking[zone] -= 1
                    if not lacking[zone]:
                        del lacking[zone]
        return found


def candidates(
    adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom], *, leaders: Leaders, wide: Collection[AdapterName] = ()
) -> Pairs:
    """Pairs to choose from; for adapters in `wide` all pods that can serve them."""
    pool = _Pool(pods)
    rows: list[tuple[int, int, int, bool, bool, bool]] = []
    for index, adapter in enumerate(adapters):
        if adapter.replicas <= 0:
            continue
        beside = leaders.get(adapter.follows or adapter.adapter, ())
        extra = (*adapter.now_on, *adapter.warm_on, *beside)
        for place, row in pool.chosen(adapter, extra=extra, all_of_them=adapter.adapter in wide):
            name = pool.names[row]
            held = name in adapter.now_on
            rows.append((index, row, place, held, not held and name in adapter.warm_on, not beside or name in beside))
    table = np.array(rows, dtype=np.int64).reshape(-1, 6)
    whole = [np.ascontiguousarray(table[:, column]) for column in range(3)]
    marks = [table[:, column] > 0 for column in range(3, 6)]
    return Pairs(whole[0], whole[1], whole[2], held=marks[0], warm=marks[1], near=marks[2])
