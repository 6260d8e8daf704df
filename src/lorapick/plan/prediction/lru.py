"""Hit ratio of one LRU cache, by the characteristic-time approximation (Che, Tung and Wang 2002).

In: request rates of its items, its size. Out: the share of each item's requests that hit. Not here: which cache an
item is in (see `routing`).

An item stays for a time T after its last request, where T is such that the expected number of items fills the cache:

    sum_i h_i = C        h_i = 1 - exp(-rate_i T)

Arrivals are Poisson, so h_i is both the chance that a request hits and the share of time that the item is there. In a
large cache T hardly varies. Where items of a fleet live in many small LRU caches, and each miss goes to any of them, T
is a sum of about as many waits for a miss as a pod has slots; with an Erlang distribution of that shape

    h_i = 1 - (1 + rate_i T / shape)^-shape

which takes off one to three points at 4 and 2 slots per pod, and leads to Che's formula for many.
"""

from math import inf

import numpy as np
from numpy.typing import NDArray

Rates = NDArray[np.float64]
_HALVINGS = 200
CLOSE = 1e-10
"""Part of T that is not looked for."""


def hits(rates: Rates, slots: float, *, shape: float = inf) -> Rates:
    """Chance that a request for each item finds it.

    Args:
        rates: requests per second of each item, 0 or more.
        slots: items that fit; not above 0: none.
        shape: variability of T; infinite: it does not vary (one cache).
    """
    wanted = rates > 0
    if slots <= 0:
        return np.zeros(len(rates))
    if wanted.sum() <= slots:
        return wanted.astype(np.float64)
    # Scaled by the largest rate, T is found to full precision whatever the unit of time.
    scaled = rates / rates.max()
    low, high = 0.0, 1.0
    while _held(scaled, high, shape=shape).sum() < slots and high < 1e300:
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if high - low <= CLOSE * high:
            break
        low, high = (middle, high) if _held(scaled, middle, shape=shape).sum() < slots else (low, middle)
    return _held(scaled, high, shape=shape)


def _held(rates: Rates, time: float, *, shape: float) -> Rates:
    if shape == inf:
        held: Rates = -np.expm1(-rates * time)
    else:
        held = -np.expm1(-shape * np.log1p(rates * time / shape))
    return held
