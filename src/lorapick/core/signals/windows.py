"""Counts and quantiles of the last while.

In: what happened, with its time. Out: how often, or how long, within a window that slides. Not here: what is counted
(see `core.signals.tracker`).

Both keep a few bins, so a window is exact to one bin: it reaches back by the window and at most one bin more. An
addition costs one comparison; bins are dropped when somebody reads or a new one begins.
"""

from collections import deque
from collections.abc import Iterable
from math import exp, log

from lorapick.model.units import Ratio, Seconds

BINS = 12
"""In a window."""
STEP = 0.05
"""Logarithm of the ratio of two neighbouring bounds: a quantile is right within 2.5 %."""
LEAST: Seconds = 1e-4
"""What is shorter counts as this."""
_PER_STEP = 1.0 / STEP
_BASE = log(LEAST)


class Sliding:
    """How often something happened within the last `window` seconds."""

    __slots__ = ("_bins", "_current", "_size", "_sum", "window")

    def __init__(self, window: Seconds) -> None:
        self.window = window
        self._size = window / BINS
        self._bins: deque[tuple[int, int]] = deque()
        """Number of a bin and its count, oldest first; without the current one."""
        self._current = (-1, 0)
        self._sum = 0

    def add(self, now: Seconds, count: int = 1) -> None:
        """Count."""
        number = int(now / self._size)
        current, so_far = self._current
        if number != current:
            if so_far:
                self._bins.append(self._current)
            so_far = 0
            self._drop(number)
        self._current = (number, so_far + count)
        self._sum += count

    def total(self, now: Seconds) -> int:
        """Count within the window."""
        number = int(now / self._size)
        self._drop(number)
        current, so_far = self._current
        if so_far and number - current > BINS:
            self._sum -= so_far
            self._current = (current, 0)
        return self._sum

    def spread(self, now: Seconds) -> int:
        """In how many of the window's bins something happened."""
        return 0 if not self.total(now) else len(self._bins) + (self._current[1] > 0)

    def _drop(self, number: int) -> None:
        bins = self._bins
        while bins and number - bins[0][0] > BINS:
            self._sum -= bins.popleft()[1]


class Durations:
    """How long things took that ended within the last `window` seconds."""

    __slots__ = ("_bins", "_size", "window")

    def __init__(self, window: Seconds) -> None:
        self.window = window
        self._size = window / BINS
        self._bins: deque[tuple[int, dict[int, int]]] = deque()
        """Number of a bin, and its counts by logarithm; oldest first."""

    def add(self, seconds: Seconds, *, now: Seconds) -> None:
        """Take note of one."""
        number = int(now / self._size)
        if not self._bins or self._bins[-1][0] != number:
            self._drop(number)
            self._bins.append((number, {}))
        place = int((log(max(LEAST, seconds)) - _BASE) * _PER_STEP)
        counts = self._bins[-1][1]
        counts[place] = counts.get(place, 0) + 1

    def _drop(self, number: int) -> None:
        while self._bins and number - self._bins[0][0] > BINS:
            self._bins.popleft()

    def merged(self, now: Seconds) -> dict[int, int]:
        """Counts by logarithm within the window; to be handed to `quantile`, with others' if need be."""
        self._drop(int(now / self._size))
        return merge(counts for _, counts in self._bins)

    def count(self, now: Seconds) -> int:
        """How many there were within the window."""
        self._drop(int(now / self._size))
        return sum(sum(counts.values()) for _, counts in self._bins)

    def quantile(self, share: Ratio, *, now: Seconds) -> Seconds | None:
        """The value below which this share of them is; None: there were none."""
        return quantile(self.merged(now), share)


def _place(seconds: Seconds) -> int:
    return int((log(max(LEAST, seconds)) - _BASE) * _PER_STEP)


def above(counts: dict[int, int], seconds: Seconds) -> int:
    """How many of what was counted took longer, to one step."""
    place = _place(seconds)
    return sum(count for each, count in counts.items() if each > place)


def merge(parts: Iterable[dict[int, int]]) -> dict[int, int]:
    """Sum counts by logarithm."""
    found: dict[int, int] = {}
    for counts in parts:
        for place, count in counts.items():
            found[place] = found.get(place, 0) + count
    return found


def quantile(counts: dict[int, int], share: Ratio) -> Seconds | None:
    """The value below which this share of what was counted is; None: nothing was."""
    left = share * sum(counts.values())
    if not counts:
        return None
    place = 0
    for place in sorted(counts):
        left -= counts[place]
        if left <= 0:
            break
    return exp(_BASE + (place + 0.5) * STEP)
