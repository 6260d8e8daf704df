"""Which part of each adapter's requests goes to which pod, under policies that give adapters homes.

In: the names of pods and adapters, rates, how long requests stay. Out: parts, by pod (row) and adapter (column).
Not here: what is found there (see `eviction`).

Both policies walk an adapter's own order of pods until they meet one that is not full; what is full depends on the
requests in flight. So parts give loads, loads give the chance that a pod is full, and that gives parts: a fixed point.

    rendezvous  a pod is full at a number of requests that is taken at its mean; those on a pod are negative binomial
    chwbl       a pod is full at 1.25 × the mean, rounded up, which is 1 or 2 in a fleet that is not busy. So the bound
                is taken at each number of requests in flight, and loads are what arrivals below a bound, and departures
                from anywhere, leave
"""

from functools import lru_cache
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.picking.chwbl import points
from lorapick.core.picking.hashing import LOAD_FACTOR, digest
from lorapick.core.picking.rendezvous import FEW
from lorapick.model.units import AdapterName, PodName, Seconds
from lorapick.plan.prediction.eviction import Rates
from lorapick.plan.prediction.full import LARGE, crowds, full_chances, overflow

DISPERSION = 0.5
"""Variance of the number of requests on a pod: mean + this × mean², since requests that wait for one load are there
together. Fitted to five simulated fleets of `rendezvous`; those of the benchmark are others."""
NEVER = 1e-6
"""A chance below which something is taken never to happen."""
RARE = 1e-4
"""The same for numbers of replicas."""
FAR = 1e-5
"""The same for pods far down an order."""
_ROUNDS = 20
"""At most; full pods are as full as in the round before sooner."""
ALIKE = 2e-5
"""Difference of two chances that makes none."""
CLOSE = 2e-3
"""Relative difference of two loads that makes none."""
Order = NDArray[np.intp]
"""Pods (rows of the fleet) in the order of each adapter (row)."""


def parts(
    policy: str,
    members: tuple[PodName, ...],
    *,
    names: tuple[AdapterName, ...],
    rates: Rates,
    latency: Seconds,
) -> Rates:
    """Part of each adapter's requests (column) that each pod (row) gets.

    Args:
        policy: `rendezvous` or `chwbl`.
        members: names of the pods.
        names: of the adapters.
        rates: their requests per second.
        latency: mean seconds that a request is on its pod.
    """
    flying = rates * latency
    order = orders(policy, members, names=names)
    found = _bounded(order, flying) if policy == "chwbl" else _replicated(order, flying)
    return np.where(found < NEVER, 0.0, found)


# -- orders


@lru_cache(maxsize=64)
def orders(policy: str, members: tuple[PodName, ...], *, names: tuple[AdapterName, ...]) -> Order:
    """The same orders as the picker's, for all adapters at once."""
    distance = _walks if policy == "chwbl" else _weights
    columns = np.stack([distance(pod, names) for pod in members], axis=1)
    return np.argsort(columns, axis=1, kind="stable")


@lru_cache(maxsize=4)
def _keys(names: tuple[AdapterName, ...]) -> tuple[int, ...]:
    return tuple(digest(name) for name in names)


@lru_cache(maxsize=1024)
def _weights(pod: PodName, names: tuple[AdapterName, ...]) -> NDArray[np.uint64]:
    """Of one pod; the highest weight comes first, so they are turned round."""
    return ~np.array([digest(pod, seed=key) for key in _keys(names)], dtype=np.uint64)


@lru_cache(maxsize=1024)
def _walks(pod: PodName, names: tuple[AdapterName, ...]) -> NDArray[np.uint64]:
    """How far it is from each adapter round the ring to the next point of a pod."""
    ring, keys = np.sort(points(pod)), np.array(_keys(names), dtype=np.uint64)
    found: NDArray[np.uint64] = ring[np.searchsorted(ring, keys) % len(ring)] - keys
    return found


# -- rendezvous


def _replicated(order: Order, flying: Rates) -> Rates:
    pods = order.shape[1]
    full = ceil(max(FEW, LOAD_FACTOR * (float(flying.sum()) + 1.0) / pods))
    wanted = _wanted(flying, full, most=pods)
    busy = np.zeros(pods)
    found = _spilled(order, wanted, busy=busy)
    for _ in range(_ROUNDS):
        before = busy
        busy = at_least(full, found @ flying)
        if np.abs(busy - before).max() < ALIKE:
            break
        found = 0.5 * (found + _spilled(order, wanted, busy=busy))
    return found


def _wanted(flying: Rates, full: int, *, most: int) -> Rates:
    """Chance (adapter, r - 1) that an adapter with so many requests in flight on average may use r pods."""
    tails = at_least(full * np.arange(most + 1), flying[:, None])
    tails[:, -1] = 0.0
    exactly: Rates = tails[:, :-1] - tails[:, 1:]
    return exactly


def _spilled(order: Order, wanted: Rates, *, busy: Rates) -> Rates:
    """Requests go evenly to those of the first r pods that are not full, or to the first behind them that is not."""
    count, pods = order.shape
    found = np.zeros((pods, count))
    reach = _reach(busy)
    for replicas in np.flatnonzero((wanted >= RARE).any(axis=0)) + 1:
        rows = np.flatnonzero(wanted[:, replicas - 1] >= RARE)
        near = order[rows, : replicas + reach]
        free = 1.0 - busy[near]
        inside, outside = free[:, :replicas], free[:, replicas:]
        none = np.prod(1.0 - inside, axis=1, keepdims=True)
        shares = inside / np.maximum(inside.sum(axis=1, keepdims=True), 1e-12) * (1.0 - none)
        behind = np.cumprod(np.hstack([none, 1.0 - outside]), axis=1)
        both = np.hstack([shares, behind[:, :-1] * outside])
        both += (1.0 - both.sum(axis=1, keepdims=True)) / both.shape[1]
        # Each (adapter, pod) stands in `near` once, so that nothing is added twice to one element.
        found[near, rows[:, None]] += wanted[rows, replicas - 1, None] * both
    found /= found.sum(axis=0)
    return found


def at_least(count: NDArray[np.int_] | int, mean: Rates) -> Rates:
    """Chance that `count` or more are there when `mean` are on average: negative binomial, its size being 2."""
    stay = mean / (1.0 / DISPERSION + mean)
    # The sum has this closed form for a size of 2, which is 1 / DISPERSION.
    tail: Rates = stay**count * (1.0 + count * (1.0 - stay))
    return tail


def _reach(busy: Rates) -> int:
    """Pods behind which nobody has to look, but for a chance of `FAR`."""
    worst = float(busy.max())
    if worst <= 0.0:
        return 1
    return len(busy) if worst >= 1.0 else max(1, min(len(busy), ceil(log(FAR) / log(worst))))


# -- consistent hashing with bounded loads


def _bounded(order: Order, flying: Rates) -> Rates:
    pods, total = order.shape[1], float(flying.sum())
    if total > LARGE:
        return _overflowing(order, flying)
    levels = crowds(pods, total)
    # Everybody at home, to begin with.
    shares: Rates = np.bincount(order[:, 0], weights=flying, minlength=pods).astype(np.float64)
    for _ in range(_ROUNDS):
        found = _below_bounds(order, levels.chances, full=full_chances(levels, shares)).taken
        new = found @ flying
        change = np.abs(new - shares).max() / max(new.mean(), 1e-12)
        shares = 0.5 * (shares + new)
        if change < CLOSE:
            break
    return found


def _overflowing(order: Order, flying: Rates) -> Rates:
    """Parts in a large crowd, whose bound does not change: what is offered to a pod and finds it full goes on."""
    pods = order.shape[1]
    full = np.zeros(pods)
    for _ in range(_ROUNDS):
        found = _below_bounds(order, np.ones(1), full=full[None, :])
        new = overflow(pods, float(flying.sum()), offered=found.offered @ flying)
        change = np.abs(new - full).max()
        full = 0.5 * (full + new)
        if change < CLOSE:
            break
    return found.taken


class _Found(NamedTuple):
    taken: Rates
    """Part of each adapter's requests (column) that each pod (row) gets."""
    offered: Rates
    """Those that come by."""


def _below_bounds(order: Order, chances: Rates, *, full: Rates) -> _Found:
    """Requests go to the first pod that is not full; `full` by crowd (row) and pod (column)."""
    count, pods = order.shape
    columns = np.arange(count)
    taken, offered = np.zeros((pods, count)), np.zeros((pods, count))
    # Chance of a crowd (row) in which all pods up to here are full for an adapter (column).
    behind = np.repeat(chances[:, None], count, axis=1)
    here = behind.sum(axis=0)
    for place in range(pods):
        behind = behind * full[:, order[:, place]]
        left = behind.sum(axis=0)
        taken[order[:, place], columns] = here - left
        offered[order[:, place], columns] = here
        here = left
        if here.max() < FAR:
            break
    # Somebody is always below the bound.
    return _Found(taken + here / pods, offered)
