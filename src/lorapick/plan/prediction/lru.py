"""Hit ratio of one LRU cache whose loads take no time.

In: request rates of its items, its size. Out: the share of each item's requests that hit. Not here: how that is found,
and other ways to evict (see `eviction`).
"""

from math import inf

import numpy as np

from lorapick.plan.prediction.eviction import Memory, Rates, held


def hits(rates: Rates, slots: float, *, shape: float = inf) -> Rates:
    """Chance that a request for each item finds it.

    Args:
        rates: requests per second of each item, 0 or more.
        slots: items that fit; not above 0: none.
        shape: variability of the time for which an unused item stays; infinite: it does not vary (one cache).
    """
    found: Rates = held(rates[None, :], np.array([float(slots)]), memory=Memory(shape=shape)).there[0]
    return found
