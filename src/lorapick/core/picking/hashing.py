"""Orders of pods that a key gives, whatever pods are busy with: what consistent and rendezvous hashing share.

In: a key (an adapter's name), the names of the pods. Out: the place of each pod in that key's order, 0 first.
Names decide, not rows, so that a key keeps its order over restarts of the picker and between several pickers.
Not here: load (see the policies).
"""

import math
from array import array
from collections.abc import Callable, Sequence

import xxhash

from lorapick.model.units import PodName

Members = tuple[PodName | None, ...]
"""Name of each row's pod; None: a freed row, which comes after all pods."""

LOAD_FACTOR = 1.25
"""How far above the mean a pod's load may be: 1 + ε of consistent hashing with bounded loads (arXiv:1608.01350)."""
_MOST_KEYS = 2048
"""Orders remembered (16 MB of them for a thousand pods); one more, and all are made anew."""


def bound(total: float, *, pods: int) -> float:
    """Load at which a pod is full, when `pods` candidates have `total` requests and one more comes.

    Some candidate is always below: the least busy has at most the mean, rounded down.
    """
    return float(math.ceil(LOAD_FACTOR * (total + 1.0) / pods))


def digest(text: str, *, seed: int = 0) -> int:
    """64 bits of a name."""
    return xxhash.xxh64_intdigest(text.encode(), seed)


def places(ranked: Sequence[int]) -> "array[float]":
    """Place of each row in an order of rows; doubles, like the columns."""
    place = array("d", bytes(8 * len(ranked)))
    for index, row in enumerate(ranked):
        place[row] = float(index)
    return place


class Orders:
    """Places by key, remembered as long as the same pods are there."""

    __slots__ = ("_known", "_make", "_members")

    def __init__(self, make: Callable[[str, Members], "array[float]"]) -> None:
        """`make` gives the place of each row for a key; a pure function."""
        self._make = make
        self._members: Members = ()
        self._known: dict[str, array[float]] = {}

    def of(self, key: str, members: Members) -> "array[float]":
        """Place of each row in the order of `key`."""
        if members is not self._members:
            self._members, self._known = members, {}
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KEYS:
                self._known.clear()
            known = self._known[key] = self._make(key, members)
        return known
