"""Demand history: requests per adapter in bins of five minutes of wall-clock time.

In: requests, as they come; bins of before a restart. Out: bins that are over, to be kept; sums over bins, for models.
Not here: files (see `live.history`), forecasts (see `core.forecast.models`).

Times are Unix seconds, as arguments. Bins are numbered from the epoch on, so that clocks may jump: forward, and nothing
that was counted is lost, since what is bounded is how many days are remembered and not their age; back, and what comes
is added to the bin of its time, which is then given out again. No bin is unknown that lies after the first one: where
nothing was counted, nothing was asked for (a picker that was away saw nobody, and all adapters lose alike by it).
A day is a table of bins by columns, of two bytes a count until one does not fit: 5,000 adapters take 3 MB a day.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
MOST_DAYS = 5 * 7 + 1
_HALF_LIFE = 7
"""Days after which a request counts half when it is decided who is forgotten."""
_LARGEST = 2**32 - 1
_COLUMNS_AT_ONCE = 64

Floats = NDArray[np.float64]
Counts = NDArray[np.uint16] | NDArray[np.uint32]


def bin_of(wall: Seconds) -> int:
    """Number of the bin that a time is in; bin 0 begins at the epoch."""
    return int(wall // BIN)


class History:
    """Who was asked for when.

    Adapters have columns: `columns` of a sum belong to the names of `adapters`. The bin that is open is in no sum.
    """

    __slots__ = (
        "_begin",
        "_column",
        "_days",
        "_due",
        "_end",
        "_first",
        "_free",
        "_most",
        "_most_days",
        "_names",
        "_now",
        "_open",
    )

    def __init__(self, *, most_adapters: int = MOST_ADAPTERS, most_days: int = MOST_DAYS) -> None:
        """Know nothing.

        Args:
            most_adapters: how many are remembered; the least asked for, of late, are forgotten first.
            most_days: how many days (UTC) with requests are remembered; the earliest are forgotten first.
        """
        self._most = most_adapters
        self._most_days = most_days
        self._names: list[AdapterName | None] = []
        self._column: dict[AdapterName, int] = {}
        self._free: list[int] = []
        self._days: dict[int, Counts] = {}
        self._first: int | None = None
        self._due: dict[int, dict[AdapterName, None]] = {}
        self._now = 0
        """The bin that is open, and its times."""
        self._begin: Seconds = 0.0
        self._end: Seconds = 0.0
        self._open: dict[AdapterName, int] = {}

    # -- what comes in

    def count(self, adapter: AdapterName, wall: Seconds) -> None:
        """One more request."""
        if not self._begin <= wall < self._end:
            self._turn(bin_of(wall))
        before = self._open.get(adapter)
        if before is None and len(self._open) >= 2 * self._most:
            self._open = _most_asked(self._open, self._most)
        self._open[adapter] = (before or 0) + 1

    def recall(self, bins: Iterable[DemandBin]) -> None:
        """Take over bins of before a restart; they are not given out again. One that is known is replaced."""
        by_bin: dict[int, dict[AdapterName, int]] = {}
        for each in bins:
            if each.count > 0:
                by_bin.setdefault(bin_of(each.start), {})[each.adapter] = each.count
        numbers = sorted(by_bin)
        weights: dict[AdapterName, float] = {}
        for number in numbers:
            fading = _fading(numbers[-1] // PER_DAY - number // PER_DAY)
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
        start = self._now * BIN
        return tuple(
            DemandBin(start=start, adapter=name, count=count + self._stored(self._now, name))
            for name, count in self._open.items()
        )

    # -- what models ask

    @property
    def first(self) -> int | None:
        """The earliest bin that is known; None: none is."""
        return None if self._first is None else max(self._first, PER_DAY * min(self._days))

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
        return self.sums(number, number + 1, most=most)

    def sums(self, first: int, last: int, *, most: float = inf) -> Floats:
        """Requests by column in the bins from `first` on, before `last`; of each bin and adapter `most` at most."""
        total = np.zeros(len(self._names))
        for _, part in self._parts(first, last):
            total[: part.shape[1]] += np.minimum(part, most).sum(axis=0)
        return total

    def rows(self, first: int, last: int, *, most: float = inf) -> Floats:
        """As `sums`, each bin a row."""
        rows = np.zeros((last - first, len(self._names)))
        for begin, part in self._parts(first, last):
            rows[begin : begin + part.shape[0], : part.shape[1]] = np.minimum(part, most)
        return rows

    def happened(self, number: int) -> dict[AdapterName, int]:
        """Who was asked for in a bin, and how often."""
        counts = self.counts(number).tolist()
        return {name: int(counts[column]) for name, column in self._column.items() if counts[column]}

    def _parts(self, first: int, last: int) -> Iterator[tuple[int, Counts]]:
        """What is remembered of these bins, in pieces: the row of the first, and counts by bin and column."""
        for day in range(first // PER_DAY, -(-last // PER_DAY)):
            stored = self._days.get(day)
            if stored is not None:
                begin, end = max(first, day * PER_DAY), min(last, (day + 1) * PER_DAY)
                yield begin - first, stored[begin - day * PER_DAY : end - day * PER_DAY, : len(self._names)]

    # -- bookkeeping

    def _turn(self, now: int) -> None:
        """Another bin is open from here on."""
        counted, self._open = self._open, {}
        if counted:
            self._make_room(counted, at=self._now)
            self._store(self._now, counted, add=True)
            self._due.setdefault(self._now, {}).update(dict.fromkeys(counted))
        self._now = now
        self._begin = now * BIN
        self._end = self._begin + BIN

    def _store(self, number: int, counted: Mapping[AdapterName, int], *, add: bool) -> None:
        """Add to a bin, or replace what is in it; of adapters that there is room for (see `_make_room`)."""
        known = {self._column[name]: count for name, count in counted.items() if name in self._column}
        if not known:
            return
        columns = np.fromiter(known, dtype=np.intp, count=len(known))
        new = np.fromiter(known.values(), dtype=np.float64, count=len(known))
        day, row = divmod(number, PER_DAY)
        if add:
            new += self.counts(number)[columns]
        self._table(day, largest=new.max())[row, columns] = np.minimum(new, _LARGEST)
        self._first = number if self._first is None else min(self._first, number)
        while len(self._days) > self._most_days:
            del self._days[min(self._days)]

    def _table(self, day: int, *, largest: float) -> Counts:
        """The table of a day, with a column for everybody and room for such a count."""
        table = self._days.get(day)
        wide = largest >= 2**16 or (table is not None and table.dtype == np.uint32)
        columns = len(self._names)
        if table is None or table.shape[1] < columns or (wide and table.dtype != np.uint32):
            rounded = -(-columns // _COLUMNS_AT_ONCE) * _COLUMNS_AT_ONCE
            shape = (PER_DAY, rounded)
            grown: Counts = np.zeros(shape, dtype=np.uint32) if wide else np.zeros(shape, dtype=np.uint16)
            if table is not None:
                grown[:, : table.shape[1]] = table
            self._days[day] = grown
            return grown
        return table

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
        for day in self._days:
            total += _fading(max(0, at // PER_DAY - day)) * self.sums(day * PER_DAY, (day + 1) * PER_DAY)
        return total

    def _forget(self, names: Iterable[AdapterName]) -> None:
        columns = np.array([self._column.pop(name) for name in names], dtype=np.intp)
        for table in self._days.values():
            table[:, columns[columns < table.shape[1]]] = 0
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

    def _totals(self, number: int, names: Iterable[AdapterName]) -> Iterator[DemandBin]:
        for name in names:
            count = self._stored(number, name)
            if count:
                yield DemandBin(start=number * BIN, adapter=name, count=count)

    def _stored(self, number: int, name: AdapterName) -> int:
        day, row = divmod(number, PER_DAY)
        table, column = self._days.get(day), self._column.get(name)
        return 0 if table is None or column is None or column >= table.shape[1] else int(table[row, column])


def _fading(days: int) -> float:
    """What a request still counts for, so many days later, when it is decided who is forgotten."""
    return float(0.5 ** (days / _HALF_LIFE))


def _most_asked(counted: Mapping[AdapterName, int], most: int) -> dict[AdapterName, int]:
    """Of the names, so many; in the order in which they first came among those that came equally often."""
    ranked = sorted(counted, key=lambda name: -counted[name])
    return {name: counted[name] for name in ranked[:most]}
