"""Who is asked for how often, and how often a cache of the most recent misses.

In: a number of adapters, an exponent; shares of requests. Out: shares. Not here: the approximation
(`plan.prediction.lru`), fleets and routing.
"""

from collections.abc import Sequence

import numpy as np

from lorapick.plan.prediction.lru import hits


def zipf(count: int, exponent: float) -> tuple[float, ...]:
    """Shares of `count` adapters, most wanted first; exponent 0: all alike. They sum to 1."""
    weights = np.arange(1, count + 1, dtype=float) ** -exponent
    return tuple((weights / weights.sum()).tolist())


def lru_misses(popularity: Sequence[float], slots: int) -> tuple[float, ...]:
    """Share of all requests that miss, by adapter: requests are independent, the least recently used leaves.

    `popularity` need not sum to 1: what is missing goes elsewhere.
    """
    shares = np.asarray(popularity, dtype=float)
    return tuple((shares * (1.0 - hits(shares, slots))).tolist())
