"""Cron expressions of five fields as sets of numbers.

In: text such as `45 8 * * mon-fri`. Out: `Cron`; or `CronError` that names the field.
Not here: time zones, and when the next time comes.
"""

import re
from typing import NamedTuple

import msgspec


class CronError(ValueError):
    """Text that is no cron expression; the message names the field and its range."""


class Cron(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers that each field stands for."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday; 7 is read as 0."""
    any_day: bool
    """Day of month begins with `*`."""
    any_weekday: bool
    """Day of week begins with `*`."""

    @property
    def both_days(self) -> bool:
        """Whether day of month and weekday must both be right; else either is enough, as in Vixie cron."""
        return self.any_day or self.any_weekday


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: dict[str, int]


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field("day of week", 0, 7, WEEKDAYS),
)
_LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/([0-9]{1,2}))?", re.ASCII)


def parse_cron(text: str) -> Cron:
    """Read minute, hour, day of month, month, day of week: numbers, names, `*`, lists, ranges, steps.

    Raises:
        CronError: not five fields, a field that is malformed or out of range, or a day that no such month has.
    """
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise CronError(f"a cron expression has 5 fields (minute hour day month weekday), this has {len(parts)}")
    minutes, hours, days, months, weekdays = (_numbers(part, field) for part, field in zip(parts, _FIELDS, strict=True))
    cron = Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        any_day=parts[2].startswith("*"),
        any_weekday=parts[4].startswith("*"),
    )
    if cron.both_days and all(min(days) > _LONGEST_MONTH[month - 1] for month in sorted(months)):
        raise CronError(f'no month of "{parts[3]}" has a day {min(days)}, so it would never come')
    return cron


def _numbers(text: str, field: _Field) -> frozenset[int]:
    numbers: set[int] = set()
    for part in text.lower().split(","):
        match = _PART.fullmatch(part)
        if match is None:
            some = f'numbers from {field.low} to {field.high}, "*", "a-b", "*/n" or a list'
            raise CronError(f'"{part}" is no {field.name}; write {some}')
        star, first, last, step = match.group(1, 2, 3, 4)
        start = field.low if star else _number(first, field)
        # "5/15" means from 5 on; "5" alone means 5.
        end = _number(last, field) if last else start if first and not step else field.high
        if start > end or step == "0" or step == "00":
            raise CronError(f'"{part}" is no {field.name}: a range rises and a step is at least 1')
        numbers.update(range(start, end + 1, int(step or 1)))
    return frozenset(numbers)


def _number(text: str, field: _Field) -> int:
    value = field.names.get(text)
    if value is None and text.isdigit() and len(text) <= 2:
        value = int(text)
    if value is None or not field.low <= value <= field.high:
        known = f" or {'/'.join(field.names)}" if field.names else ""
        raise CronError(f'"{text}" is no {field.name}; write a number from {field.low} to {field.high}{known}')
    return value
