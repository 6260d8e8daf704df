"""Which caches a fleet's slots are under a picking policy, and which part of each adapter's requests goes to which.

In: pods, demand, a policy. Out: caches. Not here: what is hit in them (see `lru`).

Three kinds of policy:

    scattered   requests go anywhere: each pod is an LRU cache that sees its part of everything
    homes       an adapter's requests go to the first pods in an order of its own that are not full
    pooled      requests go to whoever holds the adapter, and after a miss to whoever is idle: all slots are one cache

A policy that is told nothing about residency but spreads by load (`gie-default`, sessions without a session) counts as
scattered. `gie-lora` does too: it knows of adapters that run, not of those that are idle in a slot, so that it hits
more often than is said here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from math import ceil, inf

import msgspec
import numpy as np
from numpy.typing import NDArray

from lorapick.core.picking.chwbl import clockwise
from lorapick.core.picking.hashing import LOAD_FACTOR
from lorapick.core.picking.rendezvous import FEW, by_weight
from lorapick.core.placement.pins import PinPod, Told, place
from lorapick.model.units import AdapterName, PodName
from lorapick.plan.prediction.lru import Rates
from lorapick.plan.prediction.values import Demand, FleetShape

DISPERSION = 0.5
"""Variance of the number of requests on a pod: mean + this × mean². Fitted to five simulated fleets of `rendezvous`;
those of the benchmark are others."""
NEVER = 1e-6
"""A chance below which something is taken never to happen."""
_ROUNDS = 12
"""At most; full pods are as full as in the round before sooner."""
ALIKE = 1e-6
"""Difference of two chances that makes none."""


class Kind(StrEnum):
    """How a policy treats residency."""

    SCATTERED = "scattered"
    HOMES = "homes"
    POOLED = "pooled"


KINDS = {
    "weighted": Kind.POOLED, "cost": Kind.POOLED, "rendezvous": Kind.HOMES, "chwbl": Kind.HOMES,
    "round-robin": Kind.SCATTERED, "random": Kind.SCATTERED, "least-loaded": Kind.SCATTERED,
    "power-of-two": Kind.SCATTERED, "session-sticky": Kind.SCATTERED, "gie-default": Kind.SCATTERED,
    "gie-lora": Kind.SCATTERED,
}  # fmt: skip
"""By policy; a test holds it complete."""


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """Slots that adapters share, and what is asked of them."""

    pods: int
    alike: int = 1
    """Caches that are like this one, itself included; all figures are of one."""
    slots: int
    """Without those of pins."""
    pinned: int
    """Slots of pins."""
    rates: Rates
    """Requests per second of each adapter, in the order of the demand; those that a pin answers are left out."""
    answered: float
    """Requests per second that pins answer."""
    shape: float = inf
    """See `lru`."""


def caches(fleet: FleetShape, demand: Sequence[Demand], *, latency: float) -> tuple[Cache, ...]:
    """The fleet as caches.

    Args:
        fleet: at least one pod.
        demand: what is asked for.
        latency: mean seconds that a request is on its pod, from which loads of pods follow.

    Raises:
        ValueError: nobody knows the policy.
    """
    kind = KINDS.get(fleet.policy)
    if kind is None:
        raise ValueError(f"policy {fleet.policy!r} is unknown; use one of {', '.join(KINDS)}")
    rates = np.array([each.rate for each in demand], dtype=np.float64)
    held = _pinned(fleet, demand)
    if kind is Kind.POOLED:
        return (_pool(fleet, rates, held=held),)
    if kind is Kind.SCATTERED:
        return _scattered(fleet, rates, held=held)
    parts = _homes(fleet, demand, rates=rates, latency=latency)
    return tuple(
        _cache(pod.limits.max_loras, rates * part, held=has)
        for pod, part, has in zip(fleet.pods, parts, held, strict=True)
    )


def _pinned(fleet: FleetShape, demand: Sequence[Demand]) -> NDArray[np.bool_]:
    """Which pod (row) holds a pin of which adapter (column), as the picker places them."""
    pins = {each.adapter: each.pin for each in demand if each.pin is not None}
    pods = [PinPod(row, pod, pod.limits.max_loras) for row, pod in enumerate(fleet.pods)]
    nobody: Mapping[AdapterName, list[int]] = {name: [] for name in pins}
    placed = place(pins, pods, told=Told(lambda _name, _pod: None, nobody, {}))
    held = np.zeros((len(pods), len(demand)), dtype=np.bool_)
    for column, each in enumerate(demand):
        for row in placed.rows.get(each.adapter, ()):
            held[row, column] = True
    return held


def _pool(fleet: FleetShape, rates: Rates, *, held: NDArray[np.bool_]) -> Cache:
    anywhere = held.any(axis=0)
    pinned = int(held.sum())
    free = fleet.slots - pinned
    return Cache(
        pods=len(fleet.pods),
        slots=free,
        pinned=pinned,
        rates=np.where(anywhere, 0.0, rates),
        answered=float(rates[anywhere].sum()),
        shape=max(free / len(fleet.pods), 0.5),
    )


def _scattered(fleet: FleetShape, rates: Rates, *, held: NDArray[np.bool_]) -> tuple[Cache, ...]:
    """Each pod sees its part of everything; pods with the same slots and pins are alike."""
    part = rates / len(fleet.pods)
    kinds = Counter((pod.limits.max_loras, has.tobytes()) for pod, has in zip(fleet.pods, held, strict=True))
    return tuple(
        msgspec.structs.replace(_cache(slots, part, held=np.frombuffer(has, dtype=np.bool_)), alike=count)
        for (slots, has), count in kinds.items()
    )


def _cache(slots: int, rates: Rates, *, held: NDArray[np.bool_]) -> Cache:
    pinned = int(held.sum())
    return Cache(
        pods=1,
        slots=slots - pinned,
        pinned=pinned,
        rates=np.where(held, 0.0, rates),
        answered=float(rates[held].sum()),
    )


def _homes(fleet: FleetShape, demand: Sequence[Demand], *, rates: Rates, latency: float) -> Rates:
    """Part of each adapter's requests (column) that each pod (row) gets."""
    members = tuple(pod.name for pod in fleet.pods)
    ranked = np.array([_order(fleet.policy, members, name=each.adapter) for each in demand], dtype=np.intp)
    total = float(rates.sum()) * latency
    few = 1.0 if fleet.policy == "chwbl" else FEW
    full = ceil(max(few, LOAD_FACTOR * (total + 1.0) / len(members)))
    wanted = _wanted(rates * latency, full, most=1 if fleet.policy == "chwbl" else len(members))
    busy = np.zeros(len(members))
    parts = _spilled(ranked, wanted, busy=busy)
    for _ in range(_ROUNDS):
        before = busy
        busy = np.array([_at_least(full, load) for load in (parts @ rates * latency).tolist()])
        if np.abs(busy - before).max() < ALIKE:
            break
        parts = 0.5 * (parts + _spilled(ranked, wanted, busy=busy))
    return np.where(parts < NEVER, 0.0, parts)


@lru_cache(maxsize=65_536)
def _order(policy: str, members: tuple[PodName, ...], *, name: AdapterName) -> NDArray[np.intp]:
    """Pods (rows) in an adapter's own order; a search asks for the same ones many times."""
    order = clockwise if policy == "chwbl" else by_weight
    return np.argsort(np.frombuffer(order(name, members)))


def _wanted(loads: Rates, full: int, *, most: int) -> Rates:
    """Chance (adapter, r - 1) that an adapter with so many requests in flight on average may use r pods."""
    tails = np.zeros((len(loads), most))
    for row, load in enumerate(loads.tolist()):
        for replicas in range(most):
            tails[row, replicas] = _at_least(full * replicas, load)
            if tails[row, replicas] < NEVER:
                break
    exactly: Rates = tails - np.append(tails[:, 1:], np.zeros((len(loads), 1)), axis=1)
    return exactly


def _spilled(ranked: NDArray[np.intp], wanted: Rates, *, busy: Rates) -> Rates:
    """Requests go evenly to those of the first r pods that are not full, or to the first behind them that is not."""
    count, pods = ranked.shape
    free = 1.0 - busy[ranked]
    parts = np.zeros((count, pods))
    for replicas in range(1, wanted.shape[1] + 1):
        # Few adapters are ever asked for so much that they may use many pods.
        rows = np.flatnonzero(wanted[:, replicas - 1] >= NEVER)
        inside, outside = free[rows, :replicas], free[rows, replicas:]
        none = np.prod(1.0 - inside, axis=1, keepdims=True)
        shares = inside / np.maximum(inside.sum(axis=1, keepdims=True), 1e-12) * (1.0 - none)
        behind = np.cumprod(np.hstack([none, 1.0 - outside]), axis=1)
        both = np.hstack([shares, behind[:, :-1] * outside])
        both += (1.0 - both.sum(axis=1, keepdims=True)) / pods
        # Each (adapter, pod) stands in `ranked` once, so that nothing is added twice to one element.
        parts[rows[:, None], ranked[rows]] += wanted[rows, replicas - 1, None] * both
    return parts.T


def _at_least(count: int, mean: float) -> float:
    """Chance that `count` or more are there when `mean` are on average; negative binomial.

    Numbers vary more than Poisson's, since requests that wait for one load are there together.
    """
    if count <= 0 or mean <= 0:
        return float(count <= 0)
    size = 1.0 / DISPERSION
    stay = mean / (size + mean)
    term = below = float((1.0 - stay) ** size)
    for number in range(1, count):
        term *= stay * (number - 1 + size) / number
        below += term
    return max(0.0, 1.0 - below)
