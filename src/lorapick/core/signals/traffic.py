"""How often each adapter was asked for over the last hours, and when for the first time.

In: arrivals, one call each. Out: `TrafficTable`, a value that does not change. Not here: what the counts mean (see
`core.signals.shifts`), rates of the last minutes (see `core.signals.tracker`).

Time is cut into bins of five minutes that begin with the first request. Memory is bounded by the number of names that
are counted one by one; requests for others are counted together.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lorapick.model.units import AdapterName, Seconds

BIN: Seconds = 300.0
"""Length of a bin."""
MOST_BINS = 144
"""Bins that are kept, the present one included: twelve hours, so that what began in the morning is seen all day."""
MOST_NAMES = 2_000
"""Adapters that are counted one by one at a time; a name that is in no kept bin any more makes room."""
MOST_KNOWN = 20_000
"""Names of which it is known when they were first asked for; the one that was so first is forgotten."""


class TrafficBin(NamedTuple):
    """Requests of one bin."""

    start: Seconds
    seconds: Seconds
    """Its length; of the present bin, what has passed of it."""
    counts: Mapping[AdapterName, int]
    """Names that were not asked for are left out."""
    others: int = 0
    """Requests for adapters beyond `MOST_NAMES`."""


class TrafficTable(NamedTuple):
    """All of it at one instant."""

    now: Seconds
    bins: tuple[TrafficBin, ...] = ()
    """Oldest first, without gaps; the last one is the present one."""
    first_seen: Mapping[AdapterName, Seconds] = {}
    """First request since the picker started, of every name in the bins; minus infinity: it was known before."""


class TrafficBins:
    """Counts that grow with each request."""

    __slots__ = ("_bins", "_counts", "_ends", "_first", "_in_bins", "_others", "_start", "begun")

    def __init__(self) -> None:
        self.begun: Seconds | None = None
        """When the first request came; None: there was none."""
        self._bins: deque[tuple[Seconds, dict[AdapterName, int], int]] = deque()
        """Those that are over: start, counts, others."""
        self._counts: dict[AdapterName, int] = {}
        self._others = 0
        self._start: Seconds = 0.0
        self._ends: Seconds = float("-inf")
        self._in_bins: dict[AdapterName, int] = {}
        """In how many bins a name is, the present one included."""
        self._first: dict[AdapterName, Seconds] = {}

    def arrived(self, name: AdapterName, now: Seconds) -> None:
        """One request for an adapter."""
        if now >= self._ends:
            self._roll(now)
        counts = self._counts
        count = counts.get(name)
        if count is None:
            self._enter(name, now)
        else:
            counts[name] = count + 1

    def known(self, names: Iterable[AdapterName]) -> None:
        """They were asked for in earlier times, so they are not new when they come."""
        for name in names:
            if len(self._first) < MOST_KNOWN:
                self._first[name] = float("-inf")

    def first(self, name: AdapterName) -> Seconds | None:
        """First request since the picker started; minus infinity: it was known before. None: there was none."""
        return self._first.get(name)

    def _enter(self, name: AdapterName, now: Seconds) -> None:
        """Its first request in this bin."""
        if name not in self._first:
            if len(self._first) >= MOST_KNOWN:
                del self._first[next(iter(self._first))]
            self._first[name] = now
        bins = self._in_bins.get(name, 0)
        if not bins and len(self._in_bins) >= MOST_NAMES:
            self._others += 1
            return
        self._in_bins[name] = bins + 1
        self._counts[name] = 1

    def _roll(self, now: Seconds) -> None:
        """Begin the bin that `now` is in."""
        if self.begun is None:
            self.begun = self._start = now
            self._ends = now + BIN
            return
        if now - self._start >= MOST_BINS * BIN:  # everything is too old
            self._bins.clear()
            self._in_bins.clear()
            self._counts, self._others = {}, 0
            self._start += (now - self._start) // BIN * BIN
            self._ends = self._start + BIN
            return
        while now >= self._ends:
            self._bins.append((self._start, self._counts, self._others))
            self._counts, self._others = {}, 0
            self._start, self._ends = self._ends, self._ends + BIN
            if len(self._bins) >= MOST_BINS:
                self._leave(self._bins.popleft()[1])

    def _leave(self, counts: Mapping[AdapterName, int]) -> None:
        for name in counts:
            self._in_bins[name] -= 1
            if not self._in_bins[name]:
                del self._in_bins[name]

    def table(self, now: Seconds) -> TrafficTable:
        """All counts, as of `now`."""
        if self.begun is None:
            return TrafficTable(now)
        if now >= self._ends:
            self._roll(now)
        bins = [TrafficBin(start, BIN, counts, others) for start, counts, others in self._bins]
        bins.append(TrafficBin(self._start, now - self._start, dict(self._counts), self._others))
        first = {name: self._first.get(name, bins[0].start) for name in self._in_bins}
        return TrafficTable(now, tuple(bins), first)
