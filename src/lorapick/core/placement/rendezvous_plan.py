"""Placement by rendezvous hashing with bounded slots: top pods of each adapter's order, the next where one is full.

In: a problem. Out: which pods each adapter should be on. Replicas take their slots by importance. Copies that are there
stay, of those that find a slot; so a pod that leaves moves only its own, and one more replica adds a pod and keeps the
rest. Without `keep` the hash alone decides, as in NVIDIA Dynamo's `hrw`: nothing to remember, and more moves when slots
are short.

The order is that of the picking policy `rendezvous`, so that requests and placement agree on who comes first.
Not here: costs (see `flow`).
"""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from lorapick.core.picking.rendezvous import by_weight
from lorapick.core.placement.importance import HELD, by_importance
from lorapick.core.placement.plans import Placed, fits
from lorapick.model.placement import PlacedAdapter, PlacementProblem
from lorapick.model.units import AdapterName, PodName

_MOST_ORDERS = 4096
"""Orders remembered; four bytes for each pod each."""


@lru_cache(maxsize=_MOST_ORDERS)
def by_hash(adapter: AdapterName, pods: tuple[PodName, ...]) -> tuple[int, ...]:
    """Rows of `pods` in the adapter's order, the preferred one first."""
    places = by_weight(adapter, pods)
    return tuple(sorted(range(len(pods)), key=places.__getitem__))


class _Slots:
    """Pods in order of their names, and what is free there while a plan is made."""

    def __init__(self, problem: PlacementProblem) -> None:
        self._pods = sorted(problem.pods, key=lambda pod: pod.pod)
        self._names = tuple(pod.pod for pod in self._pods)
        self._row = {name: row for row, name in enumerate(self._names)}
        self._free = [max(0, pod.slots) for pod in self._pods]
        self.count = sum(self._free)

    def held(self, adapter: PlacedAdapter) -> Iterator[int]:
        """Pods that hold it, the preferred one first."""
        rows = {self._row[pod] for pod in adapter.now_on if pod in self._row}
        return (row for row in by_hash(adapter.adapter, self._names) if row in rows)

    def preferred(self, adapter: PlacedAdapter) -> Iterator[int]:
        """All pods, the preferred one first."""
        return iter(by_hash(adapter.adapter, self._names))

    def take(self, adapter: PlacedAdapter, row: int) -> bool:
        """One slot of the pod; False: it has none, or cannot serve the adapter."""
        if self._free[row] == 0 or not fits(adapter, self._pods[row]):
            return False
        self._free[row] -= 1
        return True

    def named(self, rows: list[int]) -> tuple[PodName, ...]:
        """Their names, in order."""
        return tuple(self._names[row] for row in sorted(rows))


def by_rendezvous(problem: PlacementProblem, *, keep: bool = True) -> Placed:
    """Pods of each adapter."""
    slots = _Slots(problem)
    taken: list[list[int]] = [[] for _ in problem.adapters]
    order = by_importance(problem.adapters, held=HELD if keep else 1.0)
    if keep:
        first = Counter(order[: slots.count])
        for row, upto in sorted(first.items()):
            adapter = problem.adapters[row]
            _fill(adapter, taken[row], slots=slots, among=slots.held(adapter), upto=upto)
    ways = [slots.preferred(adapter) for adapter in problem.adapters]
    reached: Counter[int] = Counter()
    for row in order:
        reached[row] += 1
        _fill(problem.adapters[row], taken[row], slots=slots, among=ways[row], upto=reached[row])
    return {adapter.adapter: slots.named(rows) for adapter, rows in zip(problem.adapters, taken, strict=True)}


def _fill(adapter: PlacedAdapter, rows: list[int], *, slots: _Slots, among: Iterator[int], upto: int) -> None:
    while len(rows) < upto:
        row = next(among, None)
        if row is None:
            return
        if row not in rows and slots.take(adapter, row):
            rows.append(row)
