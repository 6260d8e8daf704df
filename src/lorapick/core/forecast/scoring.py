"""How good forecasts were: every model is scored every day on what happened.

In: models, and at each bin's edge the time and the number of slots. Out: a `Report`: scores of the last 14 days, and by
how much each model was worse than the day's best (its regret in hindsight).
Not here: which model is used, and what comes of it in slots, where engines evict by themselves.

A model is asked before the bin begins and scored after it is over: on its counts, and on the adapters that it would
have held, which are as many of its highest as there are slots.
"""

from collections.abc import Mapping, Sequence

import msgspec

from lorapick.core.forecast.history import BIN, PER_DAY, History, bin_of
from lorapick.core.forecast.models import Forecast
from lorapick.model.units import AdapterName, Ratio, Seconds

DAYS = 14
"""Days that a report tells of."""
_DAY: Seconds = PER_DAY * BIN


class DayScore(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one day (UTC)."""

    day: Seconds
    """Unix time at which it began."""
    model: str
    bins: int
    """Bins of that day that were scored."""
    requests: int
    error: float | None
    """Mean absolute error of the requests of an adapter in a bin, over those asked for or expected; None: none was."""
    held: Ratio | None
    """Share of the requests that fell on adapters that it would have held; None: there was no request."""
    cold_per_1000: float | None
    """Adapters asked for in a bin that it would not have held, each once, per 1,000 requests."""
    regret: float | None
    """Cold starts per 1,000 requests above those of the day's best model."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Scores by day, the earliest first, and model, in the order in which they were named."""

    days: tuple[DayScore, ...] = ()


class _Expected(msgspec.Struct):
    """What a model said before a bin."""

    counts: dict[AdapterName, float]
    held: dict[AdapterName, None]


class _Tally(msgspec.Struct):
    """What came of it, summed over a day."""

    bins: int = 0
    requests: int = 0
    held: int = 0
    cold: int = 0
    off: float = 0.0
    pairs: int = 0
    """Of an adapter and a bin."""

    def add(self, expected: _Expected, happened: Mapping[AdapterName, int]) -> None:
        self.bins += 1
        self.requests += sum(happened.values())
        self.held += sum(count for name, count in happened.items() if name in expected.held)
        self.cold += sum(name not in expected.held for name in happened)
        either = dict.fromkeys([*(name for name, count in expected.counts.items() if count > 0), *happened])
        self.off += sum(abs(expected.counts.get(name, 0.0) - happened.get(name, 0)) for name in either)
        self.pairs += len(either)


class Scorer:
    """Asks all models at each bin's edge, and remembers how they did."""

    def __init__(self, models: Sequence[Forecast], history: History) -> None:
        self._models = models
        self._history = history
        self._asked: int | None = None
        """The last bin that the models were asked about."""
        self._expected: list[_Expected] = []
        self._days: dict[int, list[_Tally]] = {}

    def turn(self, wall: Seconds, *, slots: int, most: float = 1.0) -> None:
        """Score the bin that is over, and ask about the one that is open; at least once per bin.

        A bin in the middle of which the first call comes is not scored.

        Args:
            wall: Unix time, after `History.close` was given it.
            slots: how many adapters may be held.
            most: see `Forecast.rates`.
        """
        number = bin_of(wall)
        asked = self._asked
        if asked == number:
            return
        if asked is not None and asked < number:
            self._score(asked)
        self._asked = number
        self._expected = (
            [] if asked is None else [self._ask(each, number, slots=slots, most=most) for each in self._models]
        )

    def _ask(self, model: Forecast, number: int, *, slots: int, most: float) -> _Expected:
        start = number * BIN
        counts = {name: rate * BIN for name, rate in model.rates(start).items()}
        worth = {name: rate for name, rate in model.rates(start, most=most).items() if rate > 0}
        ranked = sorted(worth, key=lambda name: (-worth[name], name))
        return _Expected(counts=counts, held=dict.fromkeys(ranked[:slots]))

    def report(self) -> Report:
        """Scores of the last days, today's so far among them."""
        return Report(days=tuple(score for day in sorted(self._days) for score in self._of_day(day)))

    def _score(self, number: int) -> None:
        if not self._expected:
            return
        happened = self._history.happened(number)
        tallies = self._days.setdefault(number // PER_DAY, [_Tally() for _ in self._models])
        for tally, expected in zip(tallies, self._expected, strict=True):
            tally.add(expected, happened)
        while len(self._days) > DAYS:
            del self._days[min(self._days)]

    def _of_day(self, day: int) -> list[DayScore]:
        tallies = self._days[day]
        best = min(tally.cold for tally in tallies)
        return [
            DayScore(
                day=day * _DAY,
                model=model.name,
                bins=tally.bins,
                requests=tally.requests,
                error=tally.off / tally.pairs if tally.pairs else None,
                held=tally.held / tally.requests if tally.requests else None,
                cold_per_1000=1000 * tally.cold / tally.requests if tally.requests else None,
                regret=1000 * (tally.cold - best) / tally.requests if tally.requests else None,
            )
            for model, tally in zip(self._models, tallies, strict=True)
        ]
