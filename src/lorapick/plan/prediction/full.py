"""How many requests are in flight, and how many pods are full then, under consistent hashing with bounded loads.

In: the number of pods, the mean number of requests in flight. Out: a few sizes of the crowd, each with its chance and
the share of pods that are full. Not here: who goes where (see `homes`).

With N requests in flight a pod is full at b(N) = ceil(1.25 (N + 1) / pods). Requests come to pods that are not full,
and leave from any, as many as are on it. For the mean number X_j(N) of pods with j requests, when the mean of N is M:

    (M + N) X(N) = N X(N - 1) with one more on a pod below b(N - 1)  +  M X(N + 1) with one less on a pod

which is solved by going round. N varies more than Poisson's: each pod adds mean + `DISPERSION` × mean² to its variance.
"""

from functools import lru_cache
from math import ceil, exp, lgamma, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.picking.hashing import LOAD_FACTOR
from lorapick.plan.prediction.eviction import Rates

DISPERSION = 2.0
"""Fitted to six simulated fleets of `chwbl`; those of the benchmark are others. In the simulator 0.3 to 0.6 were
counted; the rest stands for that requests for one adapter go on to the same pods together."""
_GROUPS = 10
"""Sizes of the crowd that are told apart, at most."""
_STEP = 0.04
"""Means are rounded to such steps of their logarithm, so that a search asks for the same ones again."""
_SWEEPS = 300
_CLOSE = 2e-4


class Crowd(NamedTuple):
    """So many requests in flight."""

    chance: float
    bound: float
    """Requests at which a pod is full."""
    share: float
    """Of the pods that are full."""

    def full(self, shares: Rates) -> Rates:
        """Chance of each pod to be full, when `shares` of the load are theirs: odds grow with share^bound."""
        if self.share <= 0.0 or self.share >= 1.0:
            return np.full(len(shares), min(max(self.share, 0.0), 1.0))
        odds = np.exp(self.bound * np.log(np.maximum(shares, 1e-12) * len(shares) / max(shares.sum(), 1e-12)))
        low, high = -40.0, 40.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            weighed = exp(middle) * odds
            low, high = (middle, high) if (weighed / (1.0 + weighed)).mean() < self.share else (low, middle)
        weighed = exp(high) * odds
        found: Rates = weighed / (1.0 + weighed)
        return found


def crowds(pods: int, mean: float) -> tuple[Crowd, ...]:
    """Sizes of the crowd when `mean` requests are in flight on average; their chances add up to 1."""
    if mean <= 0.0:
        return (Crowd(1.0, 1.0, 0.0),)
    return _crowds(pods, round(log(mean) / _STEP))


@lru_cache(maxsize=1024)
def _crowds(pods: int, steps: int) -> tuple[Crowd, ...]:
    mean = exp(_STEP * steps)
    spread = mean + DISPERSION / pods * mean * mean
    most = int(mean + 5.0 * spread**0.5) + 4
    chances = _chances(mean, spread, most=most)
    bounds = np.array([ceil(LOAD_FACTOR * (number + 1) / pods) for number in range(most + 1)])
    share = _full(pods, mean, bounds=bounds)
    # Neighbours are put together until each group has its part of the chances.
    group = np.minimum((np.cumsum(chances) - 0.5 * chances) * _GROUPS, _GROUPS - 1).astype(np.intp)
    found = []
    for number in dict.fromkeys(group.tolist()):
        mine = group == number
        weight = chances[mine]
        total = float(weight.sum())
        found.append(
            Crowd(total, float((weight * bounds[mine]).sum()) / total, float((weight * share[mine]).sum()) / total)
        )
    return tuple(found)


def _chances(mean: float, spread: float, *, most: int) -> Rates:
    """Of 0 to `most` requests in flight; negative binomial."""
    size = mean * mean / (spread - mean)
    stay = mean / (size + mean)
    numbers = np.arange(most + 1)
    ways = np.array([lgamma(size + number) - lgamma(number + 1) for number in range(most + 1)]) - lgamma(size)
    found: Rates = np.exp(ways + size * log(1.0 - stay) + numbers * log(stay))
    found /= found.sum()
    return found


def _full(pods: int, mean: float, *, bounds: NDArray[np.int_]) -> Rates:
    """Share of the pods that are full, by the number of requests in flight."""
    numbers = np.arange(len(bounds))[:, None]
    loads = np.arange(int(bounds[-1]) + 3)[None, :]
    counts = np.maximum(0.0, 1.0 - np.abs(loads - numbers / pods)) * pods
    below = loads < np.minimum(bounds[:, None], loads.shape[1] - 1)
    come = np.where(numbers > 0, numbers, 0.0) / (mean + numbers)
    come[-1] = 1.0
    for _ in range(_SWEEPS):
        before = counts
        up = np.where(below, counts, 0.0)
        up /= np.maximum(up.sum(axis=1, keepdims=True), 1e-12)
        more = counts - up
        more[:, 1:] += up[:, :-1]
        down = counts * loads / np.maximum(numbers, 1)
        less = counts - down
        less[:, :-1] += down[:, 1:]
        counts = (1.0 - come) * np.vstack([less[1:], less[-1:]]) + come * np.vstack([more[:1], more[:-1]])
        if np.abs(counts - before).max() < _CLOSE:
            break
    found: Rates = np.where(loads >= bounds[:, None], counts, 0.0).sum(axis=1) / pods
    return np.clip(found, 0.0, 1.0)
