"""Who is asked for how often, and how often a cache of the most recent misses.

In: a number of adapters, an exponent; shares of requests. Out: shares. Not here: fleets and routing.

The approximation is Che's: an entry leaves a cache of C a fixed time T after its last use, with T such that C entries
are in it on average. See Fricker, Robert, Roberts: A versatile and accurate approximation for LRU cache performance.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_HALVINGS = 200
"""Enough to find T to the last bit that a float has."""
_LONGEST = 1e300


def zipf(count: int, exponent: float) -> tuple[float, ...]:
    """Shares of `count` adapters, most wanted first; exponent 0: all alike. They sum to 1."""
    weights = np.arange(1, count + 1, dtype=float) ** -exponent
    return tuple((weights / weights.sum()).tolist())


def lru_misses(popularity: Sequence[float], slots: int) -> tuple[float, ...]:
    """Share of all requests that miss, by adapter: requests are independent, the least recently used leaves.

    `popularity` need not sum to 1: what is missing goes elsewhere.
    """
    if slots <= 0:
        return tuple(popularity)
    if slots >= len(popularity):
        return tuple(0.0 for _ in popularity)
    shares = np.asarray(popularity)
    return tuple((shares * np.exp(-shares * _characteristic_time(shares, slots))).tolist())


def _characteristic_time(shares: NDArray[np.float64], slots: int) -> float:
    """Requests after which an entry that nobody asked for leaves."""

    def held(life: float) -> float:
        return float(-np.expm1(-shares * life).sum())

    low, high = 0.0, 1.0
    while held(high) < slots and high < _LONGEST:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if held(middle) < slots else (low, middle)
    return high
