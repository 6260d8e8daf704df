"""Counts of one arm of a trial, and of what would have been.

In: how requests left. Out: counts that only grow, their copies and differences. Not here: ratios, intervals and
verdicts (see `core.arms_report`), which arm a request is in (see `core.arms`).
"""

from bisect import bisect_left
from collections import Counter
from typing import Self

from lorapick.model.requests import Outcome
from lorapick.model.units import Seconds

UNKNOWN, BASE = "unknown", "base"
"""In place of a tier: nobody said which pod had it; it was for the base model."""
COARSE: tuple[Seconds, ...] = (
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0,
)  # fmt: skip
"""Bounds of durations in metrics; each is one of `EDGES`."""
STEP = 1.05
"""From one bound to the next: quantiles are right within 5 %."""


def _edges() -> tuple[Seconds, ...]:
    fine = [0.001 * STEP**power for power in range(300)]
    return tuple(sorted({*COARSE, *fine}))


EDGES = _edges()
"""Bounds of durations, from 1 ms to half an hour."""


class Durations:
    """A histogram fine enough for quantiles."""

    __slots__ = ("buckets", "count", "total")

    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()
        """Durations by the place in `EDGES` of the first bound that is not below them."""
        self.count = 0
        self.total: Seconds = 0.0

    def add(self, seconds: Seconds) -> None:
        """One more."""
        self.buckets[bisect_left(EDGES, seconds)] += 1
        self.count += 1
        self.total += seconds

    def less(self, other: "Durations") -> "Durations":
        """What came after `other` was copied."""
        rest = Durations()
        rest.buckets = self.buckets - other.buckets
        rest.count, rest.total = self.count - other.count, self.total - other.total
        return rest

    def at(self, rank: int) -> Seconds:
        """The `rank`-th smallest, from 1: the bound of its bucket, which it is not above. Needs one at least."""
        return EDGES[min(self._place(rank), len(EDGES) - 1)]

    def over(self, rank: int) -> Seconds:
        """The other bound of its bucket, which it is above."""
        place = self._place(rank)
        return EDGES[place - 1] if place else 0.0

    def _place(self, rank: int) -> int:
        seen, place = 0, 0
        for place in sorted(self.buckets):
            seen += self.buckets[place]
            if seen >= rank:
                break
        return place

    def cumulative(self) -> list[tuple[Seconds, int]]:
        """Durations not above each of `COARSE`."""
        below = [(EDGES[place] if place < len(EDGES) else float("inf"), n) for place, n in self.buckets.items()]
        return [(bound, sum(n for edge, n in below if edge <= bound)) for bound in COARSE]


class ArmTally:
    """How the requests of one arm left."""

    __slots__ = (
        "adapter_requests", "arrivals", "by_tier", "errors", "hits", "latency", "loads", "outcomes", "swap_seconds",
        "ttft",
    )  # fmt: skip

    def __init__(self) -> None:
        self.arrivals = 0
        """Less `outcomes`: in flight."""
        self.outcomes: Counter[Outcome] = Counter()
        self.errors = 0
        self.by_tier: Counter[str] = Counter()
        self.hits = 0
        self.adapter_requests = 0
        self.loads = 0
        self.swap_seconds: Seconds = 0.0
        self.latency = Durations()
        self.ttft = Durations()

    @property
    def ended(self) -> int:
        """Requests that left."""
        return sum(self.outcomes.values())

    def less(self, other: "ArmTally") -> "ArmTally":
        """What came after `other` was copied."""
        rest = ArmTally()
        for name in ("arrivals", "errors", "hits", "adapter_requests", "loads", "swap_seconds"):
            setattr(rest, name, getattr(self, name) - getattr(other, name))
        rest.outcomes, rest.by_tier = self.outcomes - other.outcomes, self.by_tier - other.by_tier
        rest.latency, rest.ttft = self.latency.less(other.latency), self.ttft.less(other.ttft)
        return rest

    def copy(self) -> Self:
        """As it is now."""
        copied = self.less(type(self)())
        assert isinstance(copied, type(self))
        return copied


class WouldTally:
    """What would have become of the observed arm's requests."""

    __slots__ = ("adapter_requests", "agreed", "by_result", "compared", "hits")

    def __init__(self) -> None:
        self.by_result: Counter[str] = Counter()
        """One for each decision."""
        self.hits = 0
        self.adapter_requests = 0
        self.compared = 0
        self.agreed = 0

    def less(self, other: "WouldTally") -> "WouldTally":
        """What came after `other` was copied."""
        rest = WouldTally()
        rest.by_result = self.by_result - other.by_result
        for name in ("hits", "adapter_requests", "compared", "agreed"):
            setattr(rest, name, getattr(self, name) - getattr(other, name))
        return rest

    def copy(self) -> "WouldTally":
        """As it is now."""
        return self.less(WouldTally())
