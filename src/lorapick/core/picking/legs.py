"""Who could prefill a request elsewhere than where it is decoded, and what that takes.

In: nothing. Out: plain values. Not here: how they are found (see `prefillers`), the choice (see `pairing`).
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.picking.places import Places
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.pods import Pod
from lorapick.model.units import Seconds, Tokens


class Leg(NamedTuple):
    """One pod that could prefill."""

    row: int
    pod: Pod
    seconds: Seconds
    """Until the KV of the prompt is there: its queue, a load of the adapter, the prompt itself."""
    price: Seconds
    """What a load does to others there; 0 without one."""


class LegRows(NamedTuple):
    """The same of all pods, by row. `total` has an infinite element more, which row -1 means: no pod."""

    places: Places
    uncached: NDArray[np.float64]
    """Tokens of the prompt that are not cached on each row."""
    wait: NDArray[np.float64]
    """Until the adapter is there (see `pairing.load_costs`)."""
    price: NDArray[np.float64]
    seconds: NDArray[np.float64]
    """Of rows that cannot prefill it means nothing."""
    total: NDArray[np.float64]
    """Seconds + price."""
    best: NDArray[np.intp]
    """Row of the best leg by place, a look-up of `places`; -1: none there."""
    rivals: bool
    """Whether a leg that is nearer may be better than the best of all."""

    def leg(self, row: int) -> Leg:
        """One of them as a value."""
        pod = self.places.pods[row]
        assert pod is not None
        return Leg(row, pod, float(self.seconds[row]), float(self.price[row]))


class BestByPlace(Mapping[str, Leg]):
    """The best leg of each zone or node, by name, made when somebody asks."""

    __slots__ = ("_codes", "_rows")

    def __init__(self, rows: LegRows, codes: Mapping[str, int]) -> None:
        self._rows, self._codes = rows, codes

    def __getitem__(self, place: str) -> Leg:
        row = int(self._rows.best[self._codes[place]])
        if row < 0:
            raise KeyError(place)
        return self._rows.leg(row)

    def __iter__(self) -> Iterator[str]:
        return (place for place, code in self._codes.items() if self._rows.best[code] >= 0)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Legs(NamedTuple):
    """The pods that could prefill one request, the best of each place, and what goes into the choice."""

    settings: DisaggregationSettings
    tokens: Tokens
    """Of the prompt; an estimate where nobody counted them."""
    per_token: Seconds
    """Prefill of one token that is not cached."""
    best: Leg
    by_zone: Mapping[str, Leg]
    by_node: Mapping[str, Leg]
    rows: LegRows | None = None
    """All at once, where many pods were looked at."""
