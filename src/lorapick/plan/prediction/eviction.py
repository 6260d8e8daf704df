"""Who is in a memory of a few slots, by how it evicts and what it is asked for: characteristic-time approximations.

In: request rates of its items, its slots, its way to evict. Out: the share of time that each item is there, which is
the chance that a request finds it, and the share that it is on its way. Not here: which memory an item is in (see
`routing`).

A cycle of an item: it is away until it is asked for, on its way for the length of a load, and there until it leaves.
With requests as a Poisson stream of rate r, loads of length s, and the chance A that it left before the next request:

    there = (1 - A) / (1 + A r s)        on its way = A r s / (1 + A r s)        sum(there + on its way) = slots

where the last one gives the time T on which A depends:

    recency    exp(-r (u + T))                 the least recently used leaves, T after its last use; it is in use for u
               exp(-r u) (1 + r T / k)^-k      the same where T varies, as an Erlang distribution of shape k
    turn       1 / (1 + r T)                   the first that came leaves (or any one, at random), whatever its use
    count      the items with the highest rates stay for ever; the others pass through the slots that are left, one for
               each pod, where each newcomer is the next to leave: `turn` with these slots

The first is Che, Tung and Wang's (2002), the third Fricker, Robert and Roberts' (2012) for FIFO and random eviction; s
is what a load takes of a slot's time.
"""

from enum import StrEnum
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.model.units import Seconds

Rates = NDArray[np.float64]
_HALVINGS = 44
_SHORTEST, _LONGEST = -30.0, 50.0
"""Logarithms of T × the highest rate, between which it is looked for."""


class Eviction(StrEnum):
    """Who leaves."""

    RECENCY = "recency"
    TURN = "turn"
    COUNT = "count"


EVICTIONS = {
    "lru": Eviction.RECENCY, "fifo": Eviction.TURN,
    "lfu": Eviction.COUNT, "window": Eviction.COUNT, "cost": Eviction.COUNT,
}  # fmt: skip
"""By `Pod.eviction`; a test holds it complete."""


class Memory(NamedTuple):
    """How a memory behaves, whatever its size."""

    eviction: Eviction = Eviction.RECENCY
    shape: float = inf
    """Variability of T; infinite: it does not vary (one cache)."""
    swap: Seconds = 0.0
    """What a load takes of its slot's time."""
    used: Seconds | Rates = 0.0
    """How long a request keeps its item from leaving; one figure, or one for each item."""
    passing: int = 1
    """Slots through which those pass that do not stay, where counts decide."""


class Held(NamedTuple):
    """Shares of time, by cache (row) and item (column)."""

    there: Rates
    coming: Rates
    """On its way: who asks for it waits, and causes no load of its own."""


def held(rates: Rates, slots: Rates, *, memory: Memory) -> Held:
    """Shares of time that items are there.

    Args:
        rates: requests per second by cache (row) and item (column), 0 or more.
        slots: items that fit into each cache; not above 0: none.
        memory: the same for all of them.
    """
    width = max(1, int((rates > 0).sum(axis=1).max(initial=0)))
    if width > 0.7 * rates.shape[1] or not isinstance(memory.used, float):
        return _held(rates, slots, memory=memory)
    # Most items are never asked for in most caches.
    columns = np.argpartition(-rates, width - 1, axis=1)[:, :width]
    packed = _held(np.take_along_axis(rates, columns, axis=1), slots, memory=memory)
    there, coming = np.zeros_like(rates), np.zeros_like(rates)
    np.put_along_axis(there, columns, packed.there, axis=1)
    np.put_along_axis(coming, columns, packed.coming, axis=1)
    return Held(there, coming)


def _held(rates: Rates, slots: Rates, *, memory: Memory) -> Held:
    if memory.eviction is Eviction.COUNT:
        return _counted(rates, slots, memory=memory)
    wanted = rates > 0
    crowded = wanted.sum(axis=1) > slots
    there = np.where(crowded[:, None], 0.0, wanted.astype(np.float64))
    coming = np.zeros_like(rates)
    rows = np.flatnonzero(crowded & (slots > 0))
    if rows.size:
        there[rows], coming[rows] = _settled(rates[rows], slots[rows], memory=memory)
    return Held(there, coming)


def _counted(rates: Rates, slots: Rates, *, memory: Memory) -> Held:
    """Those that stay, and those that pass through the rest."""
    passing = np.minimum(np.maximum(slots, 0.0), float(memory.passing))
    wanted = rates > 0
    all_fit = wanted.sum(axis=1) <= slots
    stay = np.where(all_fit, rates.shape[1], np.maximum(slots - passing, 0.0))
    place = np.argsort(np.argsort(-rates, axis=1, kind="stable"), axis=1, kind="stable")
    kept = (place < stay[:, None]) & wanted
    others = _held(np.where(kept, 0.0, rates), passing, memory=memory._replace(eviction=Eviction.TURN, used=0.0))
    return Held(np.where(kept, 1.0, others.there), others.coming)


def _settled(rates: Rates, slots: Rates, *, memory: Memory) -> Held:
    """Where there are more items than slots: with the T that fills them."""
    total = rates.sum(axis=1, keepdims=True)
    # What is in use must leave room for what is not; beyond that, the fleet is past predicting.
    used = np.minimum(memory.used, 0.5 * slots[:, None] / total)
    memory = memory._replace(used=used)
    highest = rates.max(axis=1, keepdims=True)
    low, high = np.full_like(highest, _SHORTEST), np.full_like(highest, _LONGEST)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        gone = _gone(rates, np.exp(middle) / highest, memory=memory)
        filled = (1.0 - gone / (1.0 + gone * rates * memory.swap)).sum(axis=1) >= slots
        low, high = np.where(filled[:, None], low, middle), np.where(filled[:, None], middle, high)
    gone = _gone(rates, np.exp(high) / highest, memory=memory)
    whole = 1.0 + gone * rates * memory.swap
    return Held((1.0 - gone) / whole, gone * rates * memory.swap / whole)


def _gone(rates: Rates, time: Rates, *, memory: Memory) -> Rates:
    """Chance that an item left before its next request: A."""
    if memory.eviction is Eviction.TURN:
        gone: Rates = 1.0 / (1.0 + rates * time)
    elif memory.shape == inf:
        gone = np.exp(-rates * (time + memory.used))
    else:
        gone = np.exp(-rates * memory.used - memory.shape * np.log1p(rates * time / memory.shape))
    return gone
