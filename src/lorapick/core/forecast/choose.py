"""Whom to hold in slots during the coming bin, given a forecast.

In: rates and chances of a forecast, who is resident, how many slots there are. Out: a `Choice`.
Not here: on which pod (placement), whether a load is allowed (the guard).

What counts is cold starts: an adapter that is not held and is asked for costs one, and is loaded then; until others
need its slot, further requests are free. So of one bin only as many of its requests count as times it could be thrown
out meanwhile: `Turnover.most`, one when slots suffice and all when they do not. Ranked by plain rates, a burst of
hundreds in one bin of the last hour would outbid an adapter that is asked for once in each.
"""

from collections.abc import Iterable, Mapping

import msgspec

from lorapick.core.forecast.history import BIN
from lorapick.model.units import AdapterName

MARGIN = 0.3
"""Who is resident counts for so much more than it is forecast: a load must be worth it."""
FIRM = 0.9
"""Chance of a request in the bin from which on an adapter does not give way to one that is not chosen."""
FREE = 2
"""Slots whose adapters may give way whatever their chance: who is not chosen is served too."""
LEAST = 0.01
"""Requests per bin below which nobody is loaded ahead; who is resident may stay."""
_TURNOVER_FADES = 12.0
"""Bins."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to hold, best first."""

    hold: tuple[AdapterName, ...]
    """Distinct adapters, at most as many as slots; load those that are absent, the best first."""
    firm: int
    """So many of the first stay for the whole bin; the rest may give way to whoever is asked for."""

    @property
    def touches(self) -> tuple[AdapterName, ...]:
        """In the order in which an engine that evicts the least recently used is to see them: the best last."""
        return self.hold[::-1]


def choose(
    rates: Mapping[AdapterName, float],
    chances: Mapping[AdapterName, float],
    *,
    residents: Iterable[AdapterName],
    slots: int,
) -> Choice:
    """The adapters to hold in the coming bin.

    Args:
        rates: requests per second, counted up to `Turnover.most` per bin; see `Forecast.rates`.
        chances: of at least one request in the bin.
        residents: adapters in slots now, of those that may be placed here (no pins); in any order.
        slots: how many distinct adapters may be held (no slots of pins, no second replicas).
    """
    held = dict.fromkeys(residents)
    worth = {
        name: rate * (1.0 + MARGIN) if name in held else rate
        for name, rate in rates.items()
        if (rate > 0.0 if name in held else rate * BIN >= LEAST)
    }
    best = sorted(worth, key=lambda name: (-worth[name], name))[: max(0, slots)]
    firm = [name for name in best[: max(0, slots - FREE)] if chances.get(name, 0.0) >= FIRM]
    rest = [name for name in best if name not in dict.fromkeys(firm)]
    return Choice(hold=(*firm, *rest), firm=len(firm))


class Turnover:
    """How many times in one bin an adapter may be loaded and thrown out again: loads per slot that is not firm."""

    __slots__ = ("_bins", "_firm", "_loads", "_now")

    def __init__(self) -> None:
        self._now = 0
        self._loads = 0.0
        self._bins = 0.0
        self._firm = 0

    def loaded(self) -> None:
        """Some pod loaded something."""
        self._now += 1

    def turn(self, *, firm: int) -> None:
        """A bin is over; so many are firm in the next."""
        fade = 1.0 - 1.0 / _TURNOVER_FADES
        self._loads = self._loads * fade + self._now
        self._bins = self._bins * fade + 1.0
        self._now = 0
        self._firm = firm

    def most(self, slots: int) -> float:
        """Requests of one adapter in one bin that matter; at least 1."""
        if not self._bins:
            return 1.0
        return max(1.0, self._loads / self._bins / max(1, slots - self._firm))
