"""Which caches a fleet's slots are under a picking policy, and which part of each adapter's requests goes to which.

In: pods, demand, a policy. Out: caches. Not here: what is found in them (see `eviction`), homes (see `homes`).

Four kinds of policy:

    scattered   requests go anywhere: each pod is a cache that sees its part of everything
    drawn       likewise, but who runs somewhere is sent there: `gie-lora` knows of adapters that run, and of no others
    homes       an adapter's requests go to the first pods in an order of its own that are not full
    pooled      requests go to whoever holds the adapter, and after a miss to whoever is idle: all slots are one cache

A policy that is told nothing about residency but spreads by load (`gie-default`, sessions without a session) counts as
scattered.

In a pool each miss pushes somebody out of one small pod, so that the time for which an unused adapter stays varies: as
a sum of about as many waits for a miss on its pod as that has slots, and one more (`bench.prediction`
says to which fleets this was fitted). `cost` sends misses where the adapter that would leave is the least likely to be
missed; with it, the time varies no more than in one large cache.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import inf

import msgspec
import numpy as np
from numpy.typing import NDArray

from lorapick.core.placement.pins import PinPod, Told, place
from lorapick.model.pods import Pod
from lorapick.model.units import AdapterName, Ratio, Seconds
from lorapick.plan.prediction.eviction import EVICTIONS, Eviction, Rates
from lorapick.plan.prediction.homes import parts
from lorapick.plan.prediction.values import Demand, FleetShape


class Kind(StrEnum):
    """How a policy treats residency."""

    SCATTERED = "scattered"
    DRAWN = "drawn"
    HOMES = "homes"
    POOLED = "pooled"


KINDS = {
    "weighted": Kind.POOLED, "cost": Kind.POOLED, "rendezvous": Kind.HOMES, "chwbl": Kind.HOMES,
    "round-robin": Kind.SCATTERED, "random": Kind.SCATTERED, "least-loaded": Kind.SCATTERED,
    "power-of-two": Kind.SCATTERED, "session-sticky": Kind.SCATTERED, "gie-default": Kind.SCATTERED,
    "gie-lora": Kind.DRAWN,
}  # fmt: skip
"""By policy; a test holds it complete."""
_BY_PRICE = ("cost",)
"""Pooled policies that choose who leaves."""


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of requests from the round before: loads and misses keep them on their pods for longer."""

    latency: Seconds
    """Mean time that a request is on its pod."""
    busy: Ratio = 0.0
    """Share of its time that a pod spends on loads."""


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
    """See `eviction`."""
    eviction: Eviction = Eviction.RECENCY
    used: Seconds = 0.0
    """How long a request keeps its adapter from leaving."""
    drawn: Rates | None = None
    """Share of each adapter's requests that go where it runs; None: there is no such thing."""
    sharing: int = 1
    """Pods that get a part of each adapter's requests."""


def caches(fleet: FleetShape, demand: Sequence[Demand], *, traffic: Traffic) -> tuple[Cache, ...]:
    """The fleet as caches.

    Args:
        fleet: at least one pod.
        demand: what is asked for.
        traffic: how long requests are on their pods, from which loads of pods follow.

    Raises:
        ValueError: nobody knows the policy or how a pod evicts, or pods that share all adapters evict differently.
    """
    kind = KINDS.get(fleet.policy)
    if kind is None:
        raise ValueError(f"policy {fleet.policy!r} is unknown; use one of {', '.join(KINDS)}")
    rates = np.array([each.rate for each in demand], dtype=np.float64)
    has = _pinned(fleet, demand)
    if kind is Kind.POOLED:
        return (_pool(fleet, rates, has=has, latency=traffic.latency),)
    if kind is Kind.HOMES:
        members, names = tuple(pod.name for pod in fleet.pods), tuple(each.adapter for each in demand)
        shares = parts(fleet.policy, members, names=names, rates=rates, latency=traffic.latency)
        return tuple(_cache(pod, rates * part, has=row) for pod, part, row in zip(fleet.pods, shares, has, strict=True))
    drawn = -np.expm1(-rates * traffic.latency * (1.0 - traffic.busy)) if kind is Kind.DRAWN else None
    return _scattered(fleet, rates, has=has, drawn=drawn)


def eviction_of(pod: Pod) -> Eviction:
    """How a pod evicts. Raises ValueError: nobody knows."""
    found = EVICTIONS.get(pod.eviction)
    if found is None:
        raise ValueError(f"{pod.name} evicts by {pod.eviction!r}, which is unknown; use one of {', '.join(EVICTIONS)}")
    return found


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


def _pool(fleet: FleetShape, rates: Rates, *, has: NDArray[np.bool_], latency: Seconds) -> Cache:
    ways = dict.fromkeys(eviction_of(pod) for pod in fleet.pods)
    if len(ways) > 1:
        words = ", ".join(dict.fromkeys(pod.eviction for pod in fleet.pods))
        raise ValueError(
            f"pods evict by {words}, and {fleet.policy} sends requests to any of them: nobody knows which adapters "
            "settle where; check pods of one kind at a time"
        )
    anywhere = has.any(axis=0)
    pinned = int(has.sum())
    free, count = fleet.slots - pinned, len(fleet.pods)
    return Cache(
        pods=count,
        slots=free,
        pinned=pinned,
        rates=np.where(anywhere, 0.0, rates),
        answered=float(rates[anywhere].sum()),
        shape=inf if fleet.policy in _BY_PRICE else max(free, 0) / count + 1.0,
        eviction=next(iter(ways)),
        used=latency,
    )


def _scattered(fleet: FleetShape, rates: Rates, *, has: NDArray[np.bool_], drawn: Rates | None) -> tuple[Cache, ...]:
    """Each pod sees its part of everything; pods that evict alike and have the same slots and pins are alike."""
    part = rates / len(fleet.pods)
    first: dict[tuple[int, str, bytes], int] = {}
    kinds = [(pod.limits.max_loras, pod.eviction, row.tobytes()) for pod, row in zip(fleet.pods, has, strict=True)]
    for number, kind in enumerate(kinds):
        first.setdefault(kind, number)
    counts = Counter(kinds)
    return tuple(
        msgspec.structs.replace(
            _cache(fleet.pods[number], part, has=has[number]), alike=counts[kind], drawn=drawn, sharing=len(fleet.pods)
        )
        for kind, number in first.items()
    )


def _cache(pod: Pod, rates: Rates, *, has: NDArray[np.bool_]) -> Cache:
    pinned = int(has.sum())
    return Cache(
        pods=1,
        slots=pod.limits.max_loras - pinned,
        pinned=pinned,
        rates=np.where(has, 0.0, rates),
        answered=float(rates[has].sum()),
        eviction=eviction_of(pod),
    )
