"""How bursty the requests of each adapter come, and how many: two numbers from one counter.

In: each arrival. Out: the index of dispersion of counts, variance over mean of the requests in windows of a few
seconds: 1 for a Poisson process, more for bursts, less for a clock. Windows should be about as long as a request is in
the system: what evens out within one does no harm. Mean and variance forget with `memory` windows.

An arrival costs one lookup and one addition; once per window and adapter a few multiplications more. Quiet windows
cost nothing: they are made up for when the next request comes or somebody asks.
Not here: what follows from it (`replicas`).
"""

import math
from collections.abc import Iterable

from lorapick.model.units import AdapterName, Seconds

WINDOW: Seconds = 5.0
MEMORY = 60.0
"""Windows: five minutes."""
_PRIOR = 10.0
"""Windows' worth of belief in a Poisson process, so that the first few windows mean little."""
_MOST_ADAPTERS = 10_000
_MOST_BURST = 1_000.0

_END, _COUNT, _WEIGHT, _SUM, _SQUARES = range(5)
"""Of one adapter: when its window ends, arrivals in it; of the windows before: weights, weighted counts and squares."""


class Burstiness:
    """Counts arrivals by adapter. Bounded: beyond `most_adapters`, half go, those quiet for longest."""

    def __init__(
        self, *, window: Seconds = WINDOW, memory: float = MEMORY, most_adapters: int = _MOST_ADAPTERS
    ) -> None:
        self._window = window
        self._keep = math.exp(-1.0 / memory)
        self._most_adapters = most_adapters
        self._of: dict[AdapterName, list[float]] = {}

    def __len__(self) -> int:
        return len(self._of)

    def names(self) -> list[AdapterName]:
        """Adapters that are remembered."""
        return [*self._of]

    def happened(self, adapter: AdapterName, now: Seconds) -> None:
        """One arrival; `now` never goes back by more than a window."""
        counts = self._of.get(adapter)
        if counts is not None and now < counts[_END]:
            counts[_COUNT] += 1.0
        else:
            self._begin(adapter, counts, now=now)

    def burst(self, adapter: AdapterName, now: Seconds) -> float:
        """Variance over mean, drawn towards 1 while little is known; 1 for one that nobody asked for."""
        _, weight, total, squares = self._until(adapter, now)
        if total <= 0.0 or weight <= 1.0:
            return 1.0
        mean = total / weight
        # Of n values the mean square distance from their own mean is (n - 1) / n of the variance.
        spread = max(0.0, squares / weight - mean * mean) * weight / (weight - 1.0)
        return min(_MOST_BURST, (spread / mean * weight + _PRIOR) / (weight + _PRIOR))

    def rate(self, adapter: AdapterName, now: Seconds) -> float:
        """Requests per second over the memory, the current window included as far as it is over."""
        begun, weight, total, _ = self._until(adapter, now)
        counts = self._of.get(adapter)
        if counts is None:
            return 0.0
        part = min(1.0, max(0.0, begun / self._window))
        return (total + counts[_COUNT] * (now < counts[_END])) / (max(weight + part, 1.0) * self._window)

    def forget(self, adapters: Iterable[AdapterName]) -> None:
        """They are retired."""
        for adapter in adapters:
            self._of.pop(adapter, None)

    def _until(self, adapter: AdapterName, now: Seconds) -> tuple[Seconds, float, float, float]:
        """Time since the current window began, and weights, counts and squares of all windows before it."""
        counts = self._of.get(adapter)
        if counts is None:
            return 0.0, 0.0, 0.0, 0.0
        if now >= counts[_END]:
            ended = self._ended(counts, now)
            return (now - counts[_END]) % self._window, ended[_WEIGHT], ended[_SUM], ended[_SQUARES]
        return now - counts[_END] + self._window, counts[_WEIGHT], counts[_SUM], counts[_SQUARES]

    def _begin(self, adapter: AdapterName, counts: list[float] | None, *, now: Seconds) -> None:
        if counts is not None:
            self._of[adapter] = self._ended(counts, now)
            return
        if len(self._of) >= self._most_adapters:
            self._drop_half()
        self._of[adapter] = [now + self._window, 1.0, 0.0, 0.0, 0.0]

    def _ended(self, counts: list[float], now: Seconds) -> list[float]:
        """The window of `now`, with one arrival, after the last one and the quiet ones between."""
        quiet = int((now - counts[_END]) // self._window)
        keep = self._keep**quiet
        of_quiet = (1.0 - keep) / (1.0 - self._keep)
        last = counts[_COUNT]
        return [
            counts[_END] + (quiet + 1) * self._window,
            1.0,
            (counts[_WEIGHT] * self._keep + 1.0) * keep + of_quiet,
            (counts[_SUM] * self._keep + last) * keep,
            (counts[_SQUARES] * self._keep + last * last) * keep,
        ]

    def _drop_half(self) -> None:
        by_age = sorted(self._of, key=lambda adapter: self._of[adapter][_END])
        for adapter in by_age[: max(1, len(by_age) // 2)]:
            del self._of[adapter]
