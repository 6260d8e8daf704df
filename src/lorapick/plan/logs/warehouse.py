"""Logs that a warehouse has counted.

In: three files of CSV with results of the statements. Out: a `LogSummary`, and the statements' text. Not here: the view
of requests that the statements want; their text says how to make it.
"""

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from lorapick.plan.logs.options import LogError, LogOptions
from lorapick.plan.logs.queries import COLUMNS, STATEMENTS, Statement, whole
from lorapick.plan.logs.results import AdapterRow, HourRow, Results, SampleRow
from lorapick.plan.logs.values import LogSummary

Convert: TypeAlias = Callable[[str], Any]
_NOTHING = {"", "null", "\\n", "none"}
"""How warehouses write that there is no value; `\\N` among them."""
_MOST_LINES = 2_000_000
_LAST_TIME = 253_402_300_800.0
"""The year 10000, in seconds since 1970."""
_LARGEST = 1e18


class _Line(NamedTuple):
    """Where something is wrong."""

    path: Path
    number: int

    def require(self, right: bool, wrong: str) -> None:
        if not right:
            raise LogError(f"{self.path}:{self.number}: {wrong}")


def sql_text(options: LogOptions | None = None) -> str:
    """Statements for a warehouse, with words on how to use them."""
    options = options or LogOptions()
    return whole(days=math.ceil(options.days), sample=options.sample)


def read_counted(folder: str | Path) -> LogSummary:
    """Results of the statements: `adapters.csv`, `hours.csv` and `sample.csv` in a folder.

    Raises:
        LogError: one is missing, is no result of its statement, or they are not of the same logs; with file and line.
    """
    place = Path(folder)
    results = Results()
    results.add_adapters(_adapters(place / "adapters.csv"))
    results.add_hours(_hours(place / "hours.csv"))
    sample = _sample(place / "sample.csv")
    summary = results.summary(sample, files=[str(place / f"{name}.csv") for name in STATEMENTS])
    _check_together(place, summary)
    return summary


def _check_together(place: Path, summary: LogSummary) -> None:
    hours = sum(hour.requests for hour in summary.hours)
    if hours != summary.requests:
        raise LogError(
            f"{place}: adapters.csv has {summary.requests:,} requests, hours.csv {hours:,}: "
            "they are not of the same logs; run all three statements again"
        )
    names = {each.adapter for each in summary.adapters}
    unknown = next((each.adapter for each in summary.sample.arrivals if each.adapter not in names), None)
    if unknown is not None:
        raise LogError(f"{place / 'sample.csv'}: adapter {unknown!r} is not in adapters.csv: run all three again")


# -- three files


def _adapters(path: Path) -> list[AdapterRow]:
    found: list[AdapterRow] = []
    names: set[str] = set()
    for line, values in _rows(path, "adapters"):
        row = AdapterRow(*values)
        # The base model may come twice: as an empty text and as NULL.
        line.require(not row.adapter or row.adapter not in names, f"adapter {row.adapter!r} comes twice")
        if row.request_count:
            line.require(None not in (row.first_seconds, row.last_seconds), "no first_seconds or last_seconds")
            first, last = row.first_seconds or 0.0, row.last_seconds or 0.0
            line.require(first <= last, "first_seconds is after last_seconds")
            if row.adapter:
                peak, squares = row.peak_minute or 0, row.squares or 0.0
                line.require(1 <= peak <= row.request_count, f"peak_minute {peak:,} of {row.request_count:,}")
                line.require(peak**2 <= squares <= peak * row.request_count, "squares do not fit peak_minute")
        found.append(row)
        names.add(row.adapter or "")
    return found


def _hours(path: Path) -> list[HourRow]:
    found: dict[float, HourRow] = {}
    for line, values in _rows(path, "hours"):
        row = HourRow(*values)
        line.require(row.hour_start % 3600 == 0, f"hour_start {row.hour_start:g} is no whole hour")
        line.require(row.hour_start not in found, f"hour {row.hour_start:g} comes twice")
        line.require(1 <= row.adapter_count <= row.request_count, "more adapters than requests, or none")
        found[row.hour_start] = row
    return list(found.values())


def _sample(path: Path) -> list[SampleRow]:
    found: list[SampleRow] = []
    for line, values in _rows(path, "sample"):
        row = SampleRow(*values)
        line.require(bool(row.adapter), "no adapter")
        line.require(row.from_seconds <= row.time_seconds < row.until_seconds, "time is not in the stretch")
        same = not found or (row.from_seconds, row.until_seconds) == (found[0].from_seconds, found[0].until_seconds)
        line.require(same, "from_seconds and until_seconds differ from those of the line before")
        found.append(row)
    return found


# -- CSV


def _rows(path: Path, name: Statement) -> Iterator[tuple[_Line, list[Any]]]:
    """Values in the order of the statement's columns, whatever their order in the file is."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            order = _order(path, next(reader, []), wanted=COLUMNS[name])
            for row in reader:
                line = _Line(path, reader.line_num)
                line.require(line.number <= _MOST_LINES, f"more than {_MOST_LINES:,} lines")
                if row:
                    yield line, _values(line, row, order=order)
    except UnicodeDecodeError as error:
        raise LogError(f"{path}: no UTF-8 text: {error.reason}") from None
    except csv.Error as error:
        raise LogError(f"{path}:{reader.line_num}: {error}") from None
    except FileNotFoundError:
        raise LogError(f"{path}: is missing; save the result of the statement {name!r} there (--sql)") from None
    except OSError as error:
        raise LogError(f"{path}: {error.strerror or error}") from None


def _order(path: Path, header: Sequence[str], *, wanted: Sequence[str]) -> Mapping[str, int]:
    order = {column.strip().casefold(): place for place, column in enumerate(header)}
    if sorted(order) != sorted(wanted) or len(order) != len(header):
        raise LogError(f"{path}:1: columns are {', '.join(header) or 'missing'}; should be {', '.join(wanted)}")
    return {column: order[column] for column in wanted}


def _values(line: _Line, row: Sequence[str], *, order: Mapping[str, int]) -> list[Any]:
    line.require(len(row) == len(order), f"{len(row)} values instead of {len(order)}")
    found = []
    for column, place in order.items():
        try:
            found.append(_CONVERSIONS[column](row[place]))
        except ValueError as error:
            raise LogError(f"{line.path}:{line.number}: {column}: {error}") from None
    return found


# -- values


def _number(text: str) -> float:
    value = float(text)
    if not 0 <= value <= _LARGEST:
        raise ValueError(f"{text!r} is not between 0 and {_LARGEST:g}")
    return value


def _count(text: str) -> int:
    """Whole numbers, that some write as 12.0 or 1.2E1."""
    value = int(text) if text.strip().isdecimal() else _number(text)
    if value != int(value) or value > _LARGEST:
        raise ValueError(f"{text!r} is no count")
    return int(value)


def _time(text: str) -> float:
    value = _number(text)
    if value >= _LAST_TIME:
        raise ValueError(f"{text!r} is beyond the year 9999: seconds are wanted")
    return value


def _or_nothing(convert: Convert) -> Convert:
    return lambda text: None if text.strip().casefold() in _NOTHING else convert(text)


_CONVERSIONS: dict[str, Convert] = {
    "adapter": str,
    "request_count": _count,
    "without_time": _count,
    "first_seconds": _or_nothing(_time),
    "last_seconds": _or_nothing(_time),
    "peak_minute": _or_nothing(_count),
    "squares": _or_nothing(_number),
    "prompt_count": _count,
    "prompt_sum": _or_nothing(_number),
    "output_count": _count,
    "output_sum": _or_nothing(_number),
    "hour_start": _time,
    "adapter_count": _count,
    "time_seconds": _time,
    "prompt_tokens": _or_nothing(_count),
    "output_tokens": _or_nothing(_count),
    "from_seconds": _time,
    "until_seconds": _time,
}
