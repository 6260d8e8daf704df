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
"""Chosen with the six fleets of `bench.prediction.FITTED` and the eight of its grid in view. In the simulator 0.3 to
0.6 were counted; the rest stands for what requests of one moment have in common, which the form does not know."""
_GROUPS = 10
"""Sizes of the crowd that are told apart, at most."""
_STEP = 0.05
"""Means are rounded to such steps of their logarithm, so that a search asks for the same ones again."""
_STEEP = 40.0
"""Largest logarithm of odds that is looked for."""
_HALVINGS = 28
LARGE = 60.0
"""Requests in flight on average, beyond which the bound is taken at their mean (see `overflow`)."""
_COUNTED = 500.0
"""Bound beyond which a pod is full for just what it cannot take."""
_SWEEPS = 150
_CLOSE = 3e-5


def overflow(pods: int, mean: float, *, offered: Rates) -> Rates:
    """Chance of each pod to be full in a large crowd, when `offered` places on it are asked for: Erlang's formula."""
    bound = float(ceil(LOAD_FACTOR * (mean + 1.0) / pods))
    some = np.maximum(offered, 1e-9)
    if bound > _COUNTED:
        return np.maximum(0.0, 1.0 - bound / some)
    chance: Rates = np.ones_like(some)
    for place in range(1, int(bound) + 1):
        chance = some * chance / (place + some * chance)
    return chance


class Crowds(NamedTuple):
    """Numbers of requests in flight, as a few groups."""

    chances: Rates
    bounds: Rates
    """Requests at which a pod is full."""
    shares: Rates
    """Of the pods that are full."""


def full_chances(crowds: Crowds, load: Rates) -> Rates:
    """Chance of each pod (column) to be full in each crowd (row), when pods have such loads.

    Odds grow with the load to the power of the bound, as in a queue that is cut off there.
    """
    some = np.clip(crowds.shares, 1e-9, 1.0 - 1e-9)[:, None]
    odds = crowds.bounds[:, None] * np.log(np.maximum(load, 1e-12) / max(float(load.mean()), 1e-12))[None, :]
    low, high = np.full_like(some, -_STEEP), np.full_like(some, _STEEP)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        few = _logistic(middle + odds).mean(axis=1, keepdims=True) < some
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    return _logistic(high + odds)


def _logistic(odds: Rates) -> Rates:
    found: Rates = 0.5 + 0.5 * np.tanh(0.5 * odds)
    return found


@lru_cache(maxsize=1)
def _nobody() -> Crowds:
    return Crowds(np.ones(1), np.ones(1), np.zeros(1))


def crowds(pods: int, mean: float) -> Crowds:
    """When `mean` requests are in flight on average; chances add up to 1."""
    return _nobody() if mean < _NOBODY else _crowds(pods, round(log(mean) / _STEP))


_NOBODY = 1e-12
"""Requests in flight below which a pod is never full; beneath, the spread of so small a mean is no longer above it."""


@lru_cache(maxsize=1024)
def _crowds(pods: int, steps: int) -> Crowds:
    mean = exp(_STEP * steps)
    spread = mean + DISPERSION / pods * mean * mean
    most = int(mean + 5.0 * spread**0.5) + 4
    chances = _chances(mean, spread, most=most)
    bounds = np.ceil(LOAD_FACTOR * (np.arange(most + 1) + 1) / pods)
    share = _full(pods, mean, bounds=bounds)
    # Neighbours are put together until each group has its part of the chances.
    group = np.minimum((np.cumsum(chances) - 0.5 * chances) * _GROUPS, _GROUPS - 1).astype(np.intp)
    weights: Rates = np.bincount(group, weights=chances).astype(np.float64)
    some = weights > 0
    weights = weights[some]
    return Crowds(
        weights,
        np.bincount(group, weights=chances * bounds)[some] / weights,
        np.bincount(group, weights=chances * share)[some] / weights,
    )


def _chances(mean: float, spread: float, *, most: int) -> Rates:
    """Of 0 to `most` requests in flight; negative binomial."""
    size = mean * mean / (spread - mean)
    stay = mean / (size + mean)
    numbers = np.arange(most + 1)
    ways = np.array([lgamma(size + number) - lgamma(number + 1) for number in range(most + 1)]) - lgamma(size)
    found: Rates = np.exp(ways + size * log(1.0 - stay) + numbers * log(stay))
    found /= found.sum()
    return found


def _full(pods: int, mean: float, *, bounds: Rates) -> Rates:
    """Share of the pods that are full, by the number of requests in flight."""
    numbers = np.arange(len(bounds))[:, None]
    loads = np.arange(int(bounds[-1]) + 3)[None, :]
    counts = _cut_off(pods, loads=loads, bounds=bounds)
    below = loads < np.minimum(bounds[:, None], loads.shape[1] - 1)
    part = loads / np.maximum(numbers, 1)
    # Who is met with N in flight has just come, or somebody else has just left.
    come = numbers / (mean + numbers)
    come[-1] = 1.0
    for _ in range(_SWEEPS):
        new = come * np.roll(_one_more(counts, below), 1, axis=0)
        new += (1.0 - come) * np.roll(_one_less(counts, part), -1, axis=0)
        change, counts = np.abs(new - counts).max(), new
        if change < _CLOSE * pods:
            break
    found: Rates = np.where(loads >= bounds[:, None], counts, 0.0).sum(axis=1) / pods
    return np.clip(found, 0.0, 1.0)


def _one_more(counts: Rates, below: NDArray[np.bool_]) -> Rates:
    """On one of the pods that are not full, each as likely."""
    moved = np.where(below, counts, 0.0)
    moved /= np.maximum(moved.sum(axis=1, keepdims=True), 1e-12)
    found = counts - moved
    found[:, 1:] += moved[:, :-1]
    return found


def _one_less(counts: Rates, part: Rates) -> Rates:
    """On a pod, in proportion to what is on it."""
    moved = counts * part
    found = counts - moved
    found[:, :-1] += moved[:, 1:]
    return found


def _cut_off(pods: int, *, loads: NDArray[np.int_], bounds: Rates) -> Rates:
    """Pods by load if the bound had always been this one: Poisson, cut off there. To begin with."""
    may = loads <= bounds[:, None]
    wanted = np.minimum(np.arange(len(bounds)) / pods, bounds - 1e-6)[:, None]
    ways = np.array([lgamma(load + 1.0) for load in loads[0].tolist()])
    low, high = np.full_like(wanted, -_STEEP), np.full_like(wanted, _STEEP)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        few = (loads * _normed(loads * middle - ways, may)).sum(axis=1, keepdims=True) < wanted
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    return pods * _normed(loads * high - ways, may)


def _normed(logarithms: Rates, may: NDArray[np.bool_]) -> Rates:
    found = np.where(
        may,
        np.exp(np.where(may, logarithms - logarithms.max(axis=1, keepdims=True, where=may, initial=-1e9), 0.0)),
        0.0,
    )
    shares: Rates = found / found.sum(axis=1, keepdims=True)
    return shares
