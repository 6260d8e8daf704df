"""Which adapter the same client calls after which, counted as calls come.

In: calls, each with whose it is (a session, else a tenant or fairness id). Out: pairs of adapters with support,
confidence and lift. Not here: what follows from them (see `Groups` beside this).

A run is an unbroken row of calls of one client for one adapter; a run that begins within `WINDOW` of the last call of
the client's run before is a transition. Both are counted at the time at which the first of the two runs began, and fade
alike, so a confidence (transitions / runs of the first) is never above 1.

A pair counts as learnt when it was seen often enough, is likely enough, and is likelier after this adapter than after
others: who is merely popular follows everybody. Bounded: clients by last use; of each adapter the followers seen most;
of too many adapters those called most. What is forgotten makes figures lower, never higher.
"""

from collections import OrderedDict
from collections.abc import Iterable
from math import exp
from typing import NamedTuple, TypeAlias

import xxhash

from lorapick.model.units import AdapterName, Ratio, Seconds

WINDOW: Seconds = 60.0
"""A follower is called within this of the last call of the one before."""
MEMORY: Seconds = 6 * 3600.0
"""Time after which a transition counts for 1/e of what it did."""
SUPPORT = 20.0
"""Transitions, faded, from which on a pair counts."""
CONFIDENCE: Ratio = 0.3
LIFT = 2.0
"""Times likelier after this adapter than after others."""
MOST_CLIENTS = 50_000
MOST_ADAPTERS = 10_000
MOST_FOLLOWERS = 32
"""Followers remembered per adapter; the less frequent half goes when there are more."""
_LONGEST_KEY = 64
"""Letters; longer keys are kept as their hash."""
_STEPS = 10_000
"""Steps in which weights grow e-fold."""
_RESCALE = 50.0
"""Memories after which weights, which grow with time instead of having all others shrink, are made small again."""
_LARGEST = 700.0
"""Memories whose weight a float still holds."""


class Transition(NamedTuple):
    """One adapter after another."""

    first: AdapterName
    then: AdapterName
    support: float
    """Times seen, faded."""
    confidence: Ratio
    """Share of the runs of `first` after which `then` was next, in time."""
    lift: float
    """Confidence as a multiple of that after other adapters; infinite when it was never seen there."""


class _Seen:
    """What was counted of one adapter; weights."""

    __slots__ = ("adapter", "arrivals", "followers", "runs")

    def __init__(self, adapter: AdapterName) -> None:
        self.adapter = adapter
        self.runs = 0.0
        self.arrivals = 0.0
        """Transitions to it."""
        self.followers: dict[AdapterName, float] = {}


_Client: TypeAlias = tuple[_Seen, float, Seconds]
"""The run that a client is in: its adapter, its weight, the time of its last call."""


class Transitions:
    """Counts of runs and of transitions between adapters."""

    __slots__ = ("_adapters", "_clients", "_grow_at", "_memory", "_now", "_runs", "_start", "_weight", "_window")

    def __init__(self, *, window: Seconds = WINDOW, memory: Seconds = MEMORY) -> None:
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        """By key, last use last."""
        self._adapters: dict[AdapterName, _Seen] = {}
        self._runs = 0.0
        """Of all adapters."""
        self._weight = 1.0
        """Of a run that begins now."""
        self._start: Seconds = 0.0
        """Time at which a run weighs 1; later ones weigh more."""
        self._grow_at: Seconds = float("-inf")
        """Time from which on the weight is another."""
        self._now: Seconds = 0.0
        self._window = window
        self._memory = memory

    def called(self, adapter: AdapterName, key: str, *, now: Seconds) -> None:
        """One request for an adapter by one client; `now` is never less than before.

        A request that does not say whose it is should not be counted: strangers in a row are no sequence.
        """
        # Called for every request, so what would be small functions stands in one.
        self._now = now
        if now >= self._grow_at:
            self._grow(now)
        if len(key) > _LONGEST_KEY:
            key = xxhash.xxh3_128_hexdigest(key.encode("utf-8", "surrogatepass"))
        clients = self._clients
        client = clients.get(key)
        before, its_weight = None, 0.0
        if client is not None:
            clients.move_to_end(key)
            if now - client[2] <= self._window:
                before, its_weight, _ = client
                if before.adapter == adapter:
                    clients[key] = (before, its_weight, now)
                    return
        elif len(clients) >= MOST_CLIENTS:
            clients.popitem(last=False)
        weight = self._weight
        seen = self._adapters.get(adapter) or self._new(adapter)
        seen.runs += weight
        self._runs += weight
        clients[key] = (seen, weight, now)
        if before is not None:
            seen.arrivals += its_weight
            followers = before.followers
            followers[adapter] = followers.get(adapter, 0.0) + its_weight
            if len(followers) > MOST_FOLLOWERS:
                _keep_half(followers)

    def followers(self, adapter: AdapterName) -> list[Transition]:
        """Learnt followers of an adapter, most confident first."""
        seen = self._adapters.get(adapter)
        if seen is None or self._faded(seen.runs) < SUPPORT:
            return []
        enough = SUPPORT * self._weight
        found = [self._transition(seen, then) for then, times in seen.followers.items() if times >= enough]
        return _surest(each for each in found if each.confidence >= CONFIDENCE and each.lift >= LIFT)

    def measured(self, first: AdapterName, then: AdapterName) -> Transition | None:
        """What was seen of one pair, however little; None: nothing is remembered."""
        seen = self._adapters.get(first)
        return self._transition(seen, then) if seen is not None and then in seen.followers else None

    def all(self) -> list[Transition]:
        """All learnt pairs, most confident first."""
        return _surest(each for adapter in self._adapters for each in self.followers(adapter))

    def sizes(self) -> tuple[int, int, int]:
        """Clients, adapters and pairs that are remembered."""
        return len(self._clients), len(self._adapters), sum(len(each.followers) for each in self._adapters.values())

    def _new(self, adapter: AdapterName) -> _Seen:
        if len(self._adapters) >= MOST_ADAPTERS:
            self._forget()
        seen = self._adapters[adapter] = _Seen(adapter)
        return seen

    def _forget(self) -> None:
        """The half of the adapters with the fewest runs."""
        ranked = sorted(self._adapters, key=lambda name: self._adapters[name].runs)
        for name in ranked[: len(ranked) // 2]:
            del self._adapters[name]
        # As followers they go too: one that is seen again would look as if nobody else had led to it.
        for seen in self._adapters.values():
            seen.followers = {name: times for name, times in seen.followers.items() if name in self._adapters}

    def _transition(self, seen: _Seen, then: AdapterName) -> Transition:
        times = seen.followers[then]
        confidence = min(1.0, times / seen.runs)
        follower = self._adapters[then]
        others = self._runs - seen.runs - follower.runs
        elsewhere = follower.arrivals - times
        # Sums of floats in another order may be off by a little, so what should be 0 counts as 0.
        never = others <= 1e-9 * self._runs or elsewhere <= 1e-9 * times
        lift = float("inf") if never else confidence / min(1.0, elsewhere / others)
        return Transition(seen.adapter, then, self._faded(times), confidence, lift)

    def _faded(self, weight: float) -> float:
        return weight / self._weight

    def _grow(self, now: Seconds) -> None:
        """Let the weight be that of now, for a while; when it has grown large, begin with 1 again."""
        grown = (now - self._start) / self._memory
        if grown > _RESCALE:
            self._rescale(exp(-min(grown, _LARGEST)))
            self._start, grown = now, 0.0
        self._weight = exp(grown)
        self._grow_at = now + self._memory / _STEPS

    def _rescale(self, by: float) -> None:
        self._runs *= by
        for seen in self._adapters.values():
            seen.runs *= by
            seen.arrivals *= by
            for name in seen.followers:
                seen.followers[name] *= by
        for key, (seen, weight, last) in self._clients.items():
            self._clients[key] = (seen, weight * by, last)


def _keep_half(followers: dict[AdapterName, float]) -> None:
    # sorted keeps the order of equals: of those, the ones seen first go.
    for name in sorted(followers, key=followers.__getitem__)[: MOST_FOLLOWERS // 2]:
        del followers[name]


def _surest(found: Iterable[Transition]) -> list[Transition]:
    return sorted(found, key=lambda each: (-each.confidence, -each.support, each.first, each.then))
