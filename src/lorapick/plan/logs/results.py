"""What the statements of `queries.sql` answered, made into a summary.

In: rows, from one run of the statements or from several over parts of the time. Out: a `LogSummary`. Not here: where
rows come from.

Parts begin and end with whole hours, so that numbers of minutes and hours can be put together exactly.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lorapick.model.units import AdapterName, Seconds, Tokens
from lorapick.plan.logs.options import LogError
from lorapick.plan.logs.values import LogAdapter, LogArrival, LogHour, LogSample, LogSummary

MOST_ADAPTERS = 100_000
"""More names than that are no adapters, but numbers of requests or of users."""


class AdapterRow(NamedTuple):
    """Of the statement `adapters`."""

    adapter: AdapterName | None
    """None or empty: the base model."""
    request_count: int
    without_time: int
    first_seconds: float | None
    """None: it has no requests with a time; so with the rest."""
    last_seconds: float | None
    peak_minute: int | None
    squares: float | None
    """Sum, over minutes, of the square of its requests."""
    prompt_count: int
    """Requests with a number of prompt tokens."""
    prompt_sum: float | None
    output_count: int
    output_sum: float | None


class HourRow(NamedTuple):
    """Of the statement `hours`."""

    hour_start: float
    request_count: int
    adapter_count: int


class SampleRow(NamedTuple):
    """Of the statement `sample`."""

    time_seconds: float
    adapter: AdapterName
    prompt_tokens: Tokens | None
    output_tokens: Tokens | None
    from_seconds: float
    """Of the stretch; the same in all rows."""
    until_seconds: float


class Results:
    """Results of the statements, part by part."""

    def __init__(self) -> None:
        self.without_adapter = 0
        self.without_time = 0
        self.hours: list[LogHour] = []
        self._adapters: dict[AdapterName, AdapterRow] = {}

    def add_adapters(self, rows: Iterable[AdapterRow]) -> None:
        """Rows of one part, in which no adapter comes twice.

        Raises:
            LogError: there are more than `MOST_ADAPTERS`.
        """
        for row in rows:
            self.without_time += row.without_time
            if not row.adapter:
                self.without_adapter += row.request_count
            elif row.request_count:
                known = self._adapters.get(row.adapter)
                self._adapters[row.adapter] = row if known is None else _together(known, row)
        if len(self._adapters) > MOST_ADAPTERS:
            some = ", ".join(list(self._adapters)[:3])
            raise LogError(
                f"more than {MOST_ADAPTERS:,} different adapters ({some}, ...): these look like names of requests or "
                "users; say which column has adapters (--adapter-column)"
            )

    def add_hours(self, rows: Iterable[HourRow]) -> None:
        """Rows of one part."""
        self.hours += [LogHour(start=start, requests=requests, adapters=adapters) for start, requests, adapters in rows]

    def busiest(self) -> LogHour | None:
        """The first hour with the most requests; None: no adapter was asked for."""
        return min(self.hours, key=lambda hour: (-hour.requests, hour.start), default=None)

    def summary(self, sample: Sequence[SampleRow], *, files: Sequence[str]) -> LogSummary:
        """All of it.

        Raises:
            LogError: no adapter was asked for.
        """
        if not self._adapters:
            raise LogError(
                f"no request for an adapter: {self.without_adapter:,} are for the base model and {self.without_time:,} "
                "rows have no time; is it the right column of adapters (--adapter-column)?"
            )
        start, end = _times(self._adapters)
        minutes = math.floor(end / 60) - math.floor(start / 60) + 1
        adapters = [_adapter(name, row, minutes=minutes) for name, row in self._adapters.items()]
        return LogSummary(
            files=tuple(files),
            start=start,
            end=end,
            adapters=tuple(sorted(adapters, key=lambda each: (-each.requests, each.adapter))),
            hours=tuple(sorted(self.hours, key=lambda hour: hour.start)),
            sample=_sample(sample, start=start, end=end),
            without_adapter=self.without_adapter,
            without_time=self.without_time,
        )


def _together(one: AdapterRow, other: AdapterRow) -> AdapterRow:
    return AdapterRow(
        adapter=one.adapter,
        request_count=one.request_count + other.request_count,
        without_time=0,
        first_seconds=min(one.first_seconds or 0.0, other.first_seconds or 0.0),
        last_seconds=max(one.last_seconds or 0.0, other.last_seconds or 0.0),
        peak_minute=max(one.peak_minute or 0, other.peak_minute or 0),
        squares=(one.squares or 0) + (other.squares or 0),
        prompt_count=one.prompt_count + other.prompt_count,
        prompt_sum=(one.prompt_sum or 0) + (other.prompt_sum or 0),
        output_count=one.output_count + other.output_count,
        output_sum=(one.output_sum or 0) + (other.output_sum or 0),
    )


def _times(adapters: Mapping[AdapterName, AdapterRow]) -> tuple[float, float]:
    firsts = [row.first_seconds for row in adapters.values() if row.first_seconds is not None]
    lasts = [row.last_seconds for row in adapters.values() if row.last_seconds is not None]
    return min(firsts), max(lasts)


def _adapter(name: AdapterName, row: AdapterRow, *, minutes: int) -> LogAdapter:
    return LogAdapter(
        adapter=name,
        requests=row.request_count,
        first=row.first_seconds or 0.0,
        last=row.last_seconds or 0.0,
        peak=row.peak_minute or 0,
        burst=_burst(row, minutes=minutes),
        prompt_tokens=_mean(row.prompt_sum, row.prompt_count),
        output_tokens=_mean(row.output_sum, row.output_count),
    )


def _burst(row: AdapterRow, *, minutes: int) -> float | None:
    """Variance over mean of requests per minute; (squares / minutes - mean²) / mean, which is this."""
    if minutes < 2:
        return None
    return max(0.0, float(row.squares or 0) / row.request_count - row.request_count / minutes)


def _mean(total: float | None, count: int) -> float | None:
    return float(total or 0) / count if count else None


def _sample(rows: Sequence[SampleRow], *, start: float, end: float) -> LogSample:
    """The stretch, less what of it is before the logs begin and after they end, by whole seconds."""
    if not rows:
        return LogSample(start=start, length=0.0, arrivals=())
    begin = max(rows[0].from_seconds, float(math.floor(start)))
    until = min(rows[0].until_seconds, math.floor(end) + 1.0)
    arrivals = [_arrival(row, begin=begin) for row in rows]
    arrivals.sort(key=lambda each: (each.at, each.adapter, each.prompt_tokens or 0, each.output_tokens or 0))
    return LogSample(start=begin, length=until - begin, arrivals=tuple(arrivals))


def _arrival(row: SampleRow, *, begin: Seconds) -> LogArrival:
    return LogArrival(
        at=row.time_seconds - begin,
        adapter=row.adapter,
        prompt_tokens=row.prompt_tokens,
        output_tokens=row.output_tokens,
    )
