"""Cron expressions of five fields as sets of numbers.

In: text such as `45 8 * * mon-fri`. Out: `Cron`; or `CronError` that names the field.
Not here: time zones, and when the next time comes.
"""

import re

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
    """Day of month is `*`: then only the weekday decides. When neither is `*`, either is enough, as in Vixie cron."""
    any_weekday: bool


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of week", 0, 7, {name: number for number, name in enumerate(_DAYS)}),
)  # fmt: skip
_PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/([0-9]{1,2}))?", re.ASCII)


def parse_cron(text: str) -> Cron:
    """Read minute, hour, day of month, month, day of week: numbers, names, `*`, lists, ranges, steps.

    Raises:
        CronError: not five fields, or a field that is malformed or out of range.
    """
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise CronError(f"a cron expression has 5 fields (minute hour day month weekday), this has {len(parts)}")
    sets = [_field(part, *field) for part, field in zip(parts, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = sets
    return Cron(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        any_day=parts[2].startswith("*"),
        any_weekday=parts[4].startswith("*"),
    )


def _field(text: str, name: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    numbers: set[int] = set()
    for part in text.lower().split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise CronError(f'"{part}" is no {name}; write numbers from {low} to {high}, "*", "a-b", "*/n" or a list')
        star, first, last, step = match.groups()
        start = low if star else _number(first, name, low, high, names)
        # "5/15" means from 5 on; "5" alone means 5.
        end = _number(last, name, low, high, names) if last else start if first and not step else high
        if start > end or step == "0" or step == "00":
            raise CronError(f'"{part}" is no {name}: a range rises and a step is at least 1')
        numbers.update(range(start, end + 1, int(step or 1)))
    return frozenset(numbers)


def _number(text: str, name: str, low: int, high: int, names: dict[str, int]) -> int:
    value = names.get(text)
    if value is None and text.isdigit() and len(text) <= 2:
        value = int(text)
    if value is None or not low <= value <= high:
        known = f" or {'/'.join(names)}" if names else ""
        raise CronError(f'"{text}" is no {name}; write a number from {low} to {high}{known}')
    return value
