"""Forecasts of how often each adapter is asked for in one bin.

In: a history; the wall-clock time at which a bin begins. Out: requests per second, and the chance of any request.
Not here: the blend of them (see `core.forecast.blend`), whom to load for it (see `core.forecast.choose`).

A forecast for a bin uses bins before it only, whenever it is asked for. Nothing known is None, or left out.
"""

from abc import ABC, abstractmethod
from math import inf
from typing import Protocol

from lorapick.core.forecast.history import BIN, PER_DAY, PER_HOUR, Floats, History, bin_of
from lorapick.core.forecast.looks import knows, last_bins, same_times, same_week
from lorapick.model.units import AdapterName, Seconds

_DAYS_WEIGH = 1.0
"""For how many weeks the same time of earlier days counts beside the same time of earlier weeks."""


class Forecast(Protocol):
    """Who will be asked for."""

    name: str

    def rate(self, adapter: AdapterName, start: Seconds) -> float | None:
        """Requests per second in the bin that begins then; None: nothing is known of that adapter, or of any time."""
        ...

    def rates(self, start: Seconds, *, most: float = inf) -> dict[AdapterName, float]:
        """`rate` of all adapters that are known.

        Args:
            start: Unix time at which the bin begins.
            most: requests of one adapter in one bin that matter; further ones of the same bin find it loaded already
                (see `core.forecast.choose`). Yardsticks count all that come, whatever this says.
        """
        ...

    def chances(self, start: Seconds) -> dict[AdapterName, float]:
        """Chance of at least one request in that bin, of all adapters that are known."""
        ...


class Columns(ABC):
    """A forecast that is an array over the columns of a history."""

    def __init__(self, history: History, *, every: bool) -> None:
        self._history = history
        self._every = every

    def rate(self, adapter: AdapterName, start: Seconds) -> float | None:
        """See `Forecast`."""
        return self.rates(start).get(adapter)

    def rates(self, start: Seconds, *, most: float = inf) -> dict[AdapterName, float]:
        """See `Forecast`."""
        return self._named(bin_of(start), most=inf if self._every else most, per=BIN)

    def chances(self, start: Seconds) -> dict[AdapterName, float]:
        """See `Forecast`."""
        return self._named(bin_of(start), most=1.0, per=1.0)

    def _named(self, number: int, *, most: float, per: float) -> dict[AdapterName, float]:
        if not knows(self._history, number):
            return {}
        values = (self._expected(number, most=most) / per).tolist()
        return {name: values[column] for name, column in self._history.adapters.items()}

    @abstractmethod
    def _expected(self, number: int, *, most: float) -> Floats:
        """Requests in a bin by column, `most` of each adapter at most; some bin before it is known."""
        ...


class LastHour(Columns):
    """As in the last hour. The yardstick: what anybody would do without a forecast."""

    name = "last_hour"

    def __init__(self, history: History, *, every: bool = True) -> None:
        """Over a history.

        Args:
            history: what is known; it may grow.
            every: whether all requests count; if not, `most` of each bin.
        """
        super().__init__(history, every=every)

    def _expected(self, number: int, *, most: float) -> Floats:
        return last_bins(self._history, number, bins=PER_HOUR, most=most)


class Seasonal(Columns):
    """As at the same hour of earlier weeks, smoothed over a quarter of an hour to each side.

    With few weeks, the same time of earlier days counts too (as one week more); with none, it is all there is, and on
    the first day the last 24 hours are.
    """

    name = "seasonal"

    def __init__(self, history: History, *, every: bool = True) -> None:
        """Over a history: see `LastHour`."""
        super().__init__(history, every=every)

    def _expected(self, number: int, *, most: float) -> Floats:
        days = same_times(self._history, number, most=most)
        if days is None:
            return last_bins(self._history, number, bins=PER_DAY, most=most)
        week = same_week(self._history, number, most=most)
        if week is None:
            return days[0]
        mean, weeks = week
        return (weeks * mean + _DAYS_WEIGH * days[0]) / (weeks + _DAYS_WEIGH)


class Perfect(Columns):
    """What will happen. For yardsticks only: it is given a history of the future."""

    name = "perfect"

    def __init__(self, future: History, *, every: bool = False) -> None:
        """Over a history that has the bins already that are asked for."""
        super().__init__(future, every=every)

    def _expected(self, number: int, *, most: float) -> Floats:
        return self._history.counts(number, most=most)
