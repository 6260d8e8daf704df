"""What caches load and miss, from what is asked of them.

In: caches, times. Out: loads and missing requests per second of each. Not here: who is where (see `eviction`).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lorapick.model.units import Seconds
from lorapick.plan.prediction.eviction import Memory, Rates, held
from lorapick.plan.prediction.routing import Cache


class Flow(NamedTuple):
    """Of one cache."""

    cache: Cache
    loads: float
    """Per second."""
    missed: float
    """Requests per second that do not find their adapter. Who asks for one that is on its way misses too, and causes no
    load of its own."""


def flows(found: Sequence[Cache], *, swap: Seconds) -> tuple[Flow, ...]:
    """Loads and misses of each cache; `swap` is what a load keeps its requests waiting."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, cache in enumerate(found):
        # Caches that differ in sizes and rates only are reckoned together.
        alike = number if cache.drawn is not None else (cache.eviction, cache.shape, cache.used, cache.pods)
        groups.setdefault((alike,), []).append(number)
    told: dict[int, Flow] = {}
    for numbers in groups.values():
        mine = [found[number] for number in numbers]
        loads, missed = _drawn(mine[0], swap=swap) if mine[0].drawn is not None else _asked(mine, swap=swap)
        for number, cache, load, miss in zip(numbers, mine, loads.tolist(), missed.tolist(), strict=True):
            told[number] = Flow(cache, load, miss)
    return tuple(told[number] for number in range(len(found)))


def _asked(mine: Sequence[Cache], *, swap: Seconds) -> tuple[Rates, Rates]:
    first = mine[0]
    rates, slots = np.stack([cache.rates for cache in mine]), np.array([float(cache.slots) for cache in mine])
    memory = Memory(first.eviction, first.shape, swap, used=first.used, passing=first.pods)
    there, coming = held(rates, slots, memory=memory)
    away = np.maximum(1.0 - there - coming, 0.0)
    return (rates * away).sum(axis=1), (rates * (1.0 - there)).sum(axis=1)


def _drawn(cache: Cache, *, swap: Seconds) -> tuple[Rates, Rates]:
    """Where an adapter runs, further requests for it come and keep it running; others fall on any pod.

    A busy period ends when for the length of a request no other came: (e^(rate × latency) - 1) / rate long, on average.
    """
    assert cache.drawn is not None, "nobody is drawn anywhere"
    rates = cache.rates[None, :]
    of_fleet = rates * cache.sharing
    falling = rates * (1.0 - cache.drawn)
    asked = rates > 0
    running = np.where(asked, cache.drawn / np.maximum(1.0 - cache.drawn, 1e-9) / np.where(asked, of_fleet, 1.0), 0.0)
    memory = Memory(cache.eviction, cache.shape, swap, used=running, passing=cache.pods)
    there = held(falling, np.array([float(cache.slots)]), memory=memory).there
    away = (1.0 - there) / (1.0 + there * falling * swap)
    # Who falls on a pod does so while the adapter runs nowhere, so that only the idle part of its stay helps.
    idle = np.minimum(away * np.exp(np.minimum(falling * running, 700.0)), 1.0)
    loads = falling * idle / (1.0 + idle * of_fleet * swap)
    missed = np.minimum(loads * (1.0 + of_fleet * swap), rates)
    return loads.sum(axis=1), missed.sum(axis=1)
