"""A histogram with logarithmic bins: percentiles of any number of values in constant memory.

In: values in seconds. Out: counts, means, percentiles with at most 1 % relative error. Not here: time windows.
"""

import math
from collections.abc import Iterable
from math import floor, log

from lorapick.model.units import Ratio, Seconds

_PER_FACTOR = 116
"""Bins for each factor of ten: neighbours differ by 2 %, so the middle of a bin is within 1 % of its values."""
_SCALE = _PER_FACTOR / math.log(10.0)
_SMALLEST = 1e-6


class Histogram:
    """Counts by bin; exact count, sum, minimum and maximum."""

    __slots__ = ("bins", "count", "largest", "smallest", "total")

    def __init__(self) -> None:
        self.bins: dict[int, int] = {}
        self.count = 0
        self.total = 0.0
        self.smallest = math.inf
        self.largest = -math.inf

    def add(self, value: Seconds) -> None:
        """Count one value; negative ones are a bug of the caller."""
        assert value >= 0.0, value
        self.count += 1
        self.total += value
        if value < self.smallest:
            self.smallest = value
        if value > self.largest:
            self.largest = value
        index, bins = floor(log(value) * _SCALE) if value > _SMALLEST else _ZERO, self.bins
        bins[index] = bins.get(index, 0) + 1

    def merge(self, others: Iterable["Histogram"]) -> "Histogram":
        """This and others together, as a new histogram."""
        made = Histogram()
        for each in (self, *others):
            made.count += each.count
            made.total += each.total
            made.smallest = min(made.smallest, each.smallest)
            made.largest = max(made.largest, each.largest)
            for index, count in each.bins.items():
                made.bins[index] = made.bins.get(index, 0) + count
        return made

    @property
    def mean(self) -> Seconds | None:
        """None: no values."""
        return self.total / self.count if self.count else None

    def quantile(self, share: Ratio) -> Seconds | None:
        """Value below which `share` of the values lie; None: no values."""
        if not self.count:
            return None
        wanted = share * self.count
        seen = 0
        for index in sorted(self.bins):
            seen += self.bins[index]
            if seen >= wanted:
                middle = 0.0 if index == _ZERO else math.exp((index + 0.5) / _SCALE)
                return min(max(middle, self.smallest), self.largest)
        return self.largest


_ZERO = floor(math.log(_SMALLEST) * _SCALE) - 2
"""Below the bin of any value that is larger, however it is rounded."""
