"""How much each adapter is asked for, with bursts damped, in a fixed amount of memory.

In: the adapter of each request. Out: a rate per adapter, for those in memory and those that are not. Not here: what a
rate is worth (see `core.retention.cost_aware`).

Time is cut into spans, 60 to a window. An adapter's rate is the geometric mean over past spans of (1 + its requests in
the span), minus 1, where a span counts less the older it is (1/e after half a window). Even traffic has its true rate
this way; Poisson traffic nearly so at several requests per span, three quarters of it at one. A batch of 200 requests
in one span has log(201) = 5.3 to spread over all spans, where a request alone in its span has log(2) = 0.7: the batch
counts like eight of those.

The logarithms are summed in a count-min sketch (Cormode and Muthukrishnan 2005) with conservative updates: four cells
per adapter, the lowest counts. It never says too little; it says too much for an adapter that shares each of its four
cells with others. So the history of adapters that were asked for once costs nothing to keep, as in TinyLFU (Einziger,
Friedman and Manes 2017), and a name returns with what it had. Only requests of the present span are kept by name.
"""

from functools import lru_cache
from math import exp, expm1, log1p

import xxhash

from lorapick.model.units import AdapterName, Seconds

SPANS_PER_WINDOW = 60
ROWS = 4
WIDTH = 2048
"""Cells of a row. Of 300 names one in 3,000 shares all of its four cells, of 1,000 one in 45."""
_LARGEST_UNIT = 1e150


@lru_cache(maxsize=8192)
def cells_of(adapter: AdapterName) -> tuple[int, ...]:
    """The cells of a name, one in each row."""
    digest = xxhash.xxh64_intdigest(adapter.encode())
    return tuple(row * WIDTH + (digest >> 16 * row) % WIDTH for row in range(ROWS))


class Demand:
    """Rates by adapter."""

    __slots__ = ("_cells", "_fades", "_lately", "_newest", "_number", "_span", "_unit")

    def __init__(self, window: Seconds) -> None:
        """`window` of the settings: how long ago is long ago."""
        self._span = window / SPANS_PER_WINDOW
        self._fades = 2.0 / SPANS_PER_WINDOW
        """How much a span loses per span, as an exponent."""
        self._newest = -expm1(-self._fades)
        """Share of the present span in the mean of all."""
        self._number = 0
        """Of the present span."""
        self._lately: dict[AdapterName, int] = {}
        """Requests of the present span."""
        self._cells = [0.0] * (ROWS * WIDTH)
        self._unit = 1.0
        """What 1 in the present span is in a cell. It grows, instead of all cells fading."""

    def add(self, adapter: AdapterName, now: Seconds) -> None:
        """One request."""
        self._move_to(now)
        self._lately[adapter] = self._lately.get(adapter, 0) + 1

    def rate(self, adapter: AdapterName, now: Seconds) -> float:
        """Requests per second, bursts damped; 0 or more."""
        self._move_to(now)
        cells = self._cells
        past = min([cells[cell] for cell in cells_of(adapter)]) / self._unit
        summed = past + log1p(self._lately.get(adapter, 0))
        return expm1(self._newest * summed) / self._span

    def _move_to(self, now: Seconds) -> None:
        """Begin the span of `now`, if it is another one."""
        number = int(now // self._span)
        if number <= self._number:
            return
        for adapter, count in self._lately.items():
            self._store(adapter, log1p(count) * self._unit)
        self._lately.clear()
        self._grow(exp(min(self._fades * (number - self._number), 300.0)))
        self._number = number

    def _store(self, adapter: AdapterName, amount: float) -> None:
        cells, mine = self._cells, cells_of(adapter)
        total = amount + min([cells[cell] for cell in mine])
        for cell in mine:
            # Whoever shares this cell and has more made it larger; that is no reason to add to it.
            if cells[cell] < total:
                cells[cell] = total

    def _grow(self, factor: float) -> None:
        self._unit *= factor
        if self._unit > _LARGEST_UNIT:
            self._cells = [value / self._unit for value in self._cells]
            self._unit = 1.0
