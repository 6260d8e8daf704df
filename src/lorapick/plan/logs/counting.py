"""Logs of requests, counted.

In: files, options. Out: a `LogSummary`. Not here: what a file is (see `staging`), the statements (see `queries.sql`),
what follows from it (see `plan.pins`).

All rows are first brought into one narrow table on disk; then the statements run over one stretch of whole hours after
the other, each with so few rows that groups by adapter and minute fit into memory whatever the logs are like, and their
results are put together. All numbers are exact.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from lorapick.model.units import Ratio
from lorapick.plan.logs.database import Database, opened
from lorapick.plan.logs.found import find_files
from lorapick.plan.logs.options import LogError, LogOptions
from lorapick.plan.logs.queries import Statement, statement
from lorapick.plan.logs.results import AdapterRow, HourRow, Results, SampleRow
from lorapick.plan.logs.staging import stage
from lorapick.plan.logs.values import LogSummary

ROWS_AT_ONCE = 2_000_000
"""On average, in a stretch of time."""
MOST_STRETCHES = 500
"""Each reads the times of all rows."""
_HOUR = 3600.0
_DAY = 86_400.0
_READING: Ratio = 0.6
"""Share of the work that is reading."""


def count_logs(
    patterns: Sequence[str], *, options: LogOptions | None = None, progress: Callable[[Ratio], None] | None = None
) -> LogSummary:
    """Count the requests in files, in all files below directories, and in what matches patterns.

    `progress` is told the share that is done, from time to time.

    Raises:
        LogError: no such file, a damaged one, one without a column of adapters or times, nothing to count; or DuckDB is
            not installed.
    """
    options = options or LogOptions()
    tell = progress or (lambda _share: None)
    files = find_files(patterns)
    with opened(files, options=options) as database:
        staged = stage(files, database, options=options, progress=lambda share: tell(_READING * share))
        counting = _Counting(database, options)
        summary = counting.summary(
            [file.name for file in files], progress=lambda share: tell(_READING + (1 - _READING) * share)
        )
    return msgspec.structs.replace(
        summary, columns=staged.columns, damaged=summary.damaged + staged.damaged, skipped=staged.skipped
    )


class _Counting:
    """Runs the statements over the table `staged`."""

    def __init__(self, database: Database, options: LogOptions) -> None:
        self._database = database
        self._options = options

    def summary(self, files: Sequence[str], *, progress: Callable[[Ratio], None]) -> LogSummary:
        rows, damaged, oldest, newest = self._database.run(
            "SELECT count(*), count(*) FILTER (damaged), min(time_seconds), max(time_seconds) FROM staged"
        )[0]
        if newest is None:
            raise LogError(f"{files[0]}{' and all others' if len(files) > 1 else ''}: no rows")
        since = max(oldest, newest - self._options.days * _DAY)
        results = Results()
        stretches = list(_stretches(since, newest, rows=rows))
        for number, (begin, end) in enumerate(stretches):
            self._look_at(begin, end)
            results.add_adapters(AdapterRow(*row) for row in self._run("adapters"))
            results.add_hours(HourRow(*row) for row in self._run("hours"))
            progress((number + 1) / len(stretches))
        summary = results.summary(self._sample(results, since=since), files=files)
        timed, new = self._database.run(
            f"SELECT count(time_seconds), count(*) FILTER (time_seconds >= {since!r}) FROM staged"  # noqa: S608 - a number
        )[0]
        return msgspec.structs.replace(
            summary, without_time=rows - timed - damaged, too_old=timed - new, damaged=damaged
        )

    def _sample(self, results: Results, *, since: float) -> list[SampleRow]:
        busiest = results.busiest()
        if busiest is None:
            return []
        self._look_at(max(since, busiest.start), busiest.start + _HOUR)
        return [SampleRow(*row) for row in self._run("sample")]

    def _look_at(self, begin: float, end: float) -> None:
        """Let the statements see the requests of a time."""
        self._database.run(
            "CREATE OR REPLACE VIEW requests AS SELECT adapter, time_seconds, prompt_tokens, output_tokens FROM staged "  # noqa: S608 - numbers
            f"WHERE time_seconds >= {begin!r} AND time_seconds < {end!r}"
        )

    def _run(self, name: Statement) -> list[tuple[Any, ...]]:
        return self._database.run(statement(name, sample=self._options.sample))


def _stretches(since: float, newest: float, *, rows: int) -> Iterator[tuple[float, float]]:
    """Times that end with whole hours, all of them together from `since` on, beyond `newest`."""
    first, last = math.floor(since / _HOUR), math.floor(newest / _HOUR)
    many = min(math.ceil(rows / ROWS_AT_ONCE), MOST_STRETCHES)
    step = math.ceil((last - first + 1) / many)
    for hour in range(first, last + 1, step):
        yield max(since, hour * _HOUR), (hour + step) * _HOUR
