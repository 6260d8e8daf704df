"""Demand history: requests per adapter in bins of five minutes of wall-clock time.

In: requests, as they come; bins of before a restart. Out: bins that are over, to be kept; sums over bins, for models.
Not here: files (see `live.history`), forecasts (see `core.forecast.models`).

Times are Unix seconds, as arguments. Bins are numbered from the epoch on, so that clocks may jump: forward, and nothing
that was counted is lost, since what is bounded is how many bins are remembered and not their age; back, and what comes
is added to the bin of its time, which is then given out again. No bin is unknown that lies after the first one: where
nothing was counted, nothing was asked for (a picker that was away saw nobody, and all adapters lose alike by it).
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from lorapick.model.placement import DemandBin
from lorapick.model.units import AdapterName, Seconds

BIN: Seconds = 300.0
PER_HOUR = 12
PER_DAY = 288
PER_WEEK = 2016
MOST_ADAPTERS = 5_000
MOST_BINS = 5 * PER_WEEK
_HALF_LIFE = PER_WEEK
"""Bins after which a request counts half when it is decided who is forgotten."""
_LARGEST = 2**32 - 1

Floats = NDArray[np.float64]
Counts = NDArray[np.uint16] | NDArray[np.uint32]


def bin_of(wall: Seconds) -> int:
    """Number of the bin that a time is in; bin 0 begins at the epoch."""
    return int(wall // BIN)


class History:
    """Who was asked for when.

    Adapters have columns: `columns` of a sum belong to the names of `adapters`. The bin that is open is in no sum.
    """

    __slots__ = ("_bins", "_column", "_due", "_first", "_free", "_most", "_most_bins", "_names", "_now", "_open")

    def __init__(self, *, most_adapters: int = MOST_ADAPTERS, most_bins: int = MOST_BINS) -> None:
        """Know nothing.

        Args:
            most_adapters: how many are remembered; the least asked for, of late, are forgotten first.
            most_bins: how many bins with requests are remembered; the earliest are forgotten first.
        """
        self._most = most_adapters
        self._most_bins = most_bins
        self._names: list[AdapterName | None] = []
        self._column: dict[AdapterName, int] = {}
        self._free: list[int] = []
        self._bins: dict[int, Counts] = {}
        self._first: int | None = None
        self._due: dict[int, dict[AdapterName, None]] = {}
        self._now = 0
        self._open: dict[AdapterName, int] = {}

    # -- what comes in

    def count(self, adapter: AdapterName, wall: Seconds) -> None:
        """One more request."""
        now = int(wall // BIN)
        if now != self._now:
            self._turn(now)
        counted = self._open
        counted[adapter] = counted.get(adapter, 0) + 1
        if len(counted) > 2 * self._most:
            self._open = _most_asked(counted, self._most)

    def recall(self, bins: Iterable[DemandBin]) -> None:
        """Take over bins of before a restart; they are not given out again. One that is known is replaced."""
        by_bin: dict[int, dict[AdapterName, int]] = {}
        for each in bins:
            if each.count > 0:
                by_bin.setdefault(bin_of(each.start), {})[each.adapter] = each.count
        numbers = sorted(by_bin)[-self._most_bins :]
        weights: dict[AdapterName, float] = {}
        for number in numbers:
            fading = _fading(numbers[-1] - number)
            for name, count in by_bin[number].items():
                weights[name] = weights.get(name, 0.0) + count * fading
        self._make_room(weights, at=numbers[-1] if numbers else 0)
        for number in numbers:
            self._store(number, by_bin[number], add=False)

    def close(self, wall: Seconds) -> tuple[DemandBin, ...]:
        """Bins that are over, each once; again with its new totals when the clock went back into it."""
        if self._now < bin_of(wall):
            self._turn(bin_of(wall))
        given = [each for number, names in sorted(self._due.items()) for each in self._totals(number, names)]
        self._due = {}
        return tuple(given)

    def so_far(self) -> tuple[DemandBin, ...]:
        """The open bin, with what is counted in it until now: to be kept at the end of a run."""
        stored, start = self._bins.get(self._now), self._now * BIN
        return tuple(
            DemandBin(start=start, adapter=name, count=count + self._at(stored, name))
            for name, count in self._open.items()
        )

    # -- what models ask

    @property
    def first(self) -> int | None:
        """The earliest bin that is remembered; None: none is."""
        return self._first

    @property
    def adapters(self) -> Mapping[AdapterName, int]:
        """Columns of the adapters that are remembered."""
        return self._column

    @property
    def columns(self) -> int:
        """Length of every sum."""
        return len(self._names)

    @property
    def names(self) -> Sequence[AdapterName | None]:
        """Whose the columns are; None: nobody's now."""
        return self._names

    def counts(self, number: int, *, most: float = inf) -> Floats:
        """Requests by column in one bin, of each adapter `most` at most."""
        wide = np.zeros(len(self._names))
        stored = self._bins.get(number)
        if stored is not None:
            wide[: len(stored)] = stored if most == inf else np.minimum(stored, most)
        return wide

    def sums(self, first: int, last: int, *, most: float = inf) -> Floats:
        """Requests by column in the bins from `first` on, before `last`; of each bin and adapter `most` at most."""
        total = np.zeros(len(self._names))
        for number in range(first, last):
            stored = self._bins.get(number)
            if stored is not None:
                total[: len(stored)] += stored if most == inf else np.minimum(stored, most)
        return total

    def happened(self, number: int) -> dict[AdapterName, int]:
        """Who was asked for in a bin, and how often."""
        counts = self._bins.get(number)
        if counts is None:
            return {}
        return {name: int(counts[column]) for name, column in self._column.items() if self._at(counts, name)}

    # -- bookkeeping

    def _turn(self, now: int) -> None:
        """Another bin is open from here on."""
        counted, self._open = self._open, {}
        if counted:
            self._make_room(counted, at=self._now)
            self._store(self._now, counted, add=True)
            self._due.setdefault(self._now, {}).update(dict.fromkeys(counted))
        self._now = now

    def _store(self, number: int, counted: Mapping[AdapterName, int], *, add: bool) -> None:
        """Add to a bin, or replace what is in it; of adapters that there is room for (see `_make_room`)."""
        known = {self._column[name]: count for name, count in counted.items() if name in self._column}
        if not known:
            return
        columns = np.fromiter(known, dtype=np.intp, count=len(known))
        new = np.fromiter(known.values(), dtype=np.float64, count=len(known))
        wide = np.zeros(len(self._names))
        stored = self._bins.get(number)
        if stored is not None:
            wide[: len(stored)] = stored
        wide[columns] = wide[columns] + new if add else new
        self._bins[number] = _narrow(wide)
        while len(self._bins) > self._most_bins:
            del self._bins[min(self._bins)]
        self._first = min(self._bins)

    def _make_room(self, coming: Mapping[AdapterName, float], *, at: int) -> None:
        """Give columns to names that are new, and take them from those that are asked for less than they are."""
        new = [name for name in coming if name not in self._column]
        if len(self._column) + len(new) > self._most:
            weights = self._weights(at)
            ranked = [(-weights[column] - coming.get(name, 0.0), name) for name, column in self._column.items()]
            ranked += [(-coming[name], name) for name in new]
            gone = dict.fromkeys(name for _, name in sorted(ranked)[self._most :])
            self._forget([name for name in self._column if name in gone])
            new = [name for name in new if name not in gone]
        for name in new:
            self._give_column(name)

    def _weights(self, at: int) -> Floats:
        """Requests of all time by column; the longer before a bin, the less they count."""
        total = np.zeros(len(self._names))
        for number, counts in self._bins.items():
            total[: len(counts)] += counts * _fading(max(0, at - number))
        return total

    def _forget(self, names: Iterable[AdapterName]) -> None:
        columns = np.array([self._column.pop(name) for name in names], dtype=np.intp)
        for counts in self._bins.values():
            counts[columns[columns < len(counts)]] = 0
        for column in columns.tolist():
            self._names[column] = None
            self._free.append(column)

    def _give_column(self, name: AdapterName) -> None:
        if self._free:
            column = self._free.pop()
            self._names[column] = name
        else:
            column = len(self._names)
            self._names.append(name)
        self._column[name] = column

    def _totals(self, number: int, names: Iterable[AdapterName]) -> Iterable[DemandBin]:
        stored = self._bins.get(number)
        for name in names:
            count = self._at(stored, name)
            if count:
                yield DemandBin(start=number * BIN, adapter=name, count=count)

    def _at(self, counts: Counts | None, name: AdapterName) -> int:
        column = self._column.get(name)
        return int(counts[column]) if counts is not None and column is not None and column < len(counts) else 0


def _fading(bins: int) -> float:
    """What a request still counts for, so many bins later, when it is decided who is forgotten."""
    return float(0.5 ** (bins / _HALF_LIFE))


def _narrow(counts: Floats) -> Counts:
    """As few bytes as the largest count needs."""
    capped = np.minimum(counts, _LARGEST)
    return capped.astype(np.uint16) if capped.max(initial=0.0) < 2**16 else capped.astype(np.uint32)


def _most_asked(counted: Mapping[AdapterName, int], most: int) -> dict[AdapterName, int]:
    """Of the names, so many; in the order in which they first came among those that came equally often."""
    ranked = sorted(counted, key=lambda name: -counted[name])
    return {name: counted[name] for name in ranked[:most]}
