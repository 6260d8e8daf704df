"""What is left of request logs once they are counted.

In: nothing. Out: values. Not here: reading and counting (see `counting`), what follows (see `plan.pins`).

Times are seconds since 1970, in UTC.
"""

import msgspec

from lorapick.model.units import AdapterName, Seconds, Tokens


class LogAdapter(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter in the logs."""

    adapter: AdapterName
    requests: int
    """1 or more."""
    first: float
    last: float
    """Times of its first and last request."""
    peak: int
    """Requests in its busiest minute."""
    burst: float | None
    """Variance over mean of its requests per minute, over all minutes of the logs; None: they are shorter than two."""
    prompt_tokens: float | None = None
    """Mean per request; None: the logs have no such column."""
    output_tokens: float | None = None


class LogHour(msgspec.Struct, frozen=True, kw_only=True):
    """One hour of the logs, with requests."""

    start: float
    requests: int
    adapters: int
    """Distinct ones."""


class LogArrival(msgspec.Struct, frozen=True, kw_only=True):
    """One request of the sample."""

    at: Seconds
    """Since the sample's start."""
    adapter: AdapterName
    prompt_tokens: Tokens | None = None
    output_tokens: Tokens | None = None


class LogSample(msgspec.Struct, frozen=True, kw_only=True):
    """All requests of one stretch of the logs, for the simulator."""

    start: float
    length: Seconds
    arrivals: tuple[LogArrival, ...]
    """In order of time. None: more requests than a sample may have bear one and the same time, wherever one begins."""


class LogSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The logs, counted."""

    files: tuple[str, ...]
    """Files, or what else was read."""
    start: float
    end: float
    """Times of the first and last request for an adapter."""
    adapters: tuple[LogAdapter, ...]
    """Most requests first, then by name; at least one."""
    hours: tuple[LogHour, ...]
    """In order of time; only requests for adapters count."""
    sample: LogSample
    """Of the busiest hour, requests for adapters only."""
    without_adapter: int = 0
    """Requests of the base model: their adapter column is empty, or names the base model."""
    without_time: int = 0
    """Rows left out since their time is empty or cannot be read."""
    too_old: int = 0
    """Rows left out since they are older than the days asked for."""
    damaged: int = 0
    """Lines left out since they cannot be read, where that was asked for."""
    skipped: tuple[str, ...] = ()
    """Files left out, at least in part, since they cannot be read, where that was asked for."""
    columns: dict[str, str] = {}
    """What each column was taken for: `adapter`, `time`, `prompt_tokens`, `output_tokens` -> name in the files."""

    @property
    def requests(self) -> int:
        """Of all adapters."""
        return sum(each.requests for each in self.adapters)
