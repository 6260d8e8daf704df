"""When local clocks show what a cron expression asks for, as moments in Unix time.

In: cron fields, an IANA time zone, wall-clock times (Unix seconds). Out: the firings before and after a time.
Not here: what the time is (nothing in core reads a clock), and what is to be loaded then.

A firing is the first moment at which the local clock shows its minute, or has jumped over it:
- A minute that does not exist, since clocks go forward over it, fires at the jump. Several of them fire once.
- A minute that exists twice, since clocks go back, fires the first time. `0 * * * *` has no second 02:00 that day.
So a firing never falls out, and never comes twice. Times before 1970 and after 9950 have no firings.
"""

import re
from bisect import bisect_left, bisect_right
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from lorapick.core.placement.cron import WEEKDAYS, Cron
from lorapick.model.units import Seconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
END: Seconds = (datetime(9950, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()
"""Unix time from which on there are no firings."""
_RAREST = timedelta(days=366 * 41)
"""29 February on a given weekday comes every 28 years, over a year like 2100 after 40."""
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES
_WEEK_TIME = re.compile(r"([a-z]{3})\s+(\d{1,2}):(\d\d)", re.ASCII | re.IGNORECASE)


class CalendarError(ValueError):
    """A time zone or a time of the week that there is not; the message says what there is."""


class Firings:
    """The firings of one cron expression in one time zone."""

    __slots__ = ("_cron", "_hours", "_minutes", "_zone")

    def __init__(self, cron: Cron, timezone: str) -> None:
        """Look the zone up.

        Raises:
            CalendarError: this machine's time zone database does not have it.
        """
        self._cron = cron
        self._zone = _zone(timezone)
        self._hours = sorted(cron.hours)
        self._minutes = sorted(cron.minutes)

    def after(self, wall: Seconds) -> Seconds | None:
        """The first firing later than `wall`; None when there is none."""
        if not 0 <= wall < END:
            return None
        shown = _latest_shown(wall, self._zone)
        day: date | None = shown.date()
        time = self._later_time(shown.hour, shown.minute) if self._on(shown.date()) else None
        if time is None:
            time = self._hours[0], self._minutes[0]
            day = self._day(shown.date() + _DAY, _DAY, limit=shown.date() + _RAREST)
        return self._moment(day, time)

    def last(self, wall: Seconds, *, within: Seconds) -> Seconds | None:
        """The latest firing not later than `wall` and less than `within` seconds before it; None: there is none."""
        if not 0 <= wall < END:
            return None
        shown = _latest_shown(wall, self._zone)
        day: date | None = shown.date()
        time = self._earlier_time(shown.hour, shown.minute) if self._on(shown.date()) else None
        if time is None:
            time = self._hours[-1], self._minutes[-1]
            since = _local(max(0.0, wall - within), self._zone).date() - _DAY
            day = self._day(shown.date() - _DAY, -_DAY, limit=since)
        moment = self._moment(day, time)
        return moment if moment is not None and wall - moment < within else None

    def shown(self, moment: Seconds) -> datetime:
        """What the local clock shows, for who prints it."""
        return _local(moment, self._zone)

    def _on(self, day: date) -> bool:
        cron = self._cron
        if day.month not in cron.months:
            return False
        fits_day, fits_weekday = day.day in cron.days, day.isoweekday() % 7 in cron.weekdays
        return (fits_day and fits_weekday) if cron.both_days else (fits_day or fits_weekday)

    def _day(self, first: date, step: timedelta, *, limit: date) -> date | None:
        """The first day that matches, from `first` on, forward or backward, up to `limit`."""
        day, forward = first, step > timedelta(0)
        while day <= limit if forward else day >= limit:
            if self._on(day):
                return day
            if day.month not in self._cron.months:
                day = _month_end(day) if forward else day.replace(day=1)
            day += step
        return None

    def _moment(self, day: date | None, time: tuple[int, int]) -> Seconds | None:
        if day is None:
            return None
        return _moment(datetime(day.year, day.month, day.day, *time), self._zone)

    def _later_time(self, hour: int, minute: int) -> tuple[int, int] | None:
        if hour in self._cron.hours and minute < self._minutes[-1]:
            return hour, self._minutes[bisect_right(self._minutes, minute)]
        at = bisect_right(self._hours, hour)
        return (self._hours[at], self._minutes[0]) if at < len(self._hours) else None

    def _earlier_time(self, hour: int, minute: int) -> tuple[int, int] | None:
        """The latest time of a day that is not after this one."""
        if hour in self._cron.hours and minute >= self._minutes[0]:
            return hour, self._minutes[bisect_right(self._minutes, minute) - 1]
        at = bisect_left(self._hours, hour)
        return (self._hours[at - 1], self._minutes[-1]) if at else None


def next_firings(firings: Firings, after: Seconds, *, count: int) -> list[Seconds]:
    """The first `count` firings later than `after`; fewer when there are no more."""
    found: list[Seconds] = []
    moment = firings.after(after)
    while moment is not None and len(found) < count:
        found.append(moment)
        moment = firings.after(moment)
    return found


class ClockChange(NamedTuple):
    """A local clock that is put forward or back."""

    at: Seconds
    before: timedelta
    """Offset from UTC until then."""
    after: timedelta


def clock_changes(timezone: str, *, after: Seconds, until: Seconds) -> list[ClockChange]:
    """When clocks of a zone are put forward or back, of `after` < t <= `until`.

    Raises:
        CalendarError: this machine's time zone database does not have the zone.
    """
    zone = _zone(timezone)
    found = []
    start = int(max(0.0, after))
    while start < min(until, END):
        end = int(min(start + 86_400, until, END))
        before, later = _offset(start, zone), _offset(end, zone)
        if before != later:
            found.append(ClockChange(_change(start, end, zone=zone), before, later))
        start = max(end, start + 1)
    return found


def week_minute(text: str) -> int:
    """Minutes from Sunday 00:00 to a time of the week such as `fri 18:00`.

    Raises:
        CalendarError: it is no such time.
    """
    match = _WEEK_TIME.fullmatch(text.strip())
    day = WEEKDAYS.get(match[1].lower()) if match else None
    if match is None or day is None or int(match[2]) > 23 or int(match[3]) > 59:
        raise CalendarError(f'"{text}" is no time of the week; write for example "fri 18:00" ({"/".join(WEEKDAYS)})')
    return day * _DAY_MINUTES + int(match[2]) * 60 + int(match[3])


def is_weekend(wall: Seconds, *, timezone: str, start: int, end: int) -> bool:
    """Whether local clocks are between `start` and `end` (exclusive), both as of `week_minute`; equal ones: never.

    Raises:
        CalendarError: this machine's time zone database does not have the zone.
    """
    if not 0 <= wall < END:
        return False
    shown = _latest_shown(wall, _zone(timezone))
    now = shown.isoweekday() % 7 * _DAY_MINUTES + shown.hour * 60 + shown.minute
    return (now - start) % _WEEK_MINUTES < (end - start) % _WEEK_MINUTES


# -- clocks


def _zone(timezone: str) -> ZoneInfo:
    try:
        return ZoneInfo(timezone)
    except (OSError, ValueError, LookupError):
        raise CalendarError(
            f'no time zone "{timezone}" in the IANA database of this machine; write for example "America/Mexico_City"'
        ) from None


def _local(wall: Seconds, zone: ZoneInfo) -> datetime:
    return (_EPOCH + timedelta(seconds=int(wall))).astimezone(zone)


def _offset(wall: Seconds, zone: ZoneInfo) -> timedelta:
    return _local(wall, zone).utcoffset() or timedelta(0)


def _unix(local: datetime) -> int:
    return int((local - _EPOCH).total_seconds())


def _latest_shown(wall: Seconds, zone: ZoneInfo) -> datetime:
    """The latest minute that the local clock has shown until now: while it repeats an hour, the end of the first."""
    local = _local(wall, zone)
    if not local.fold:
        return local
    change = _change(_unix(local.replace(fold=0)), int(wall), zone=zone)
    return _local(change - 1, zone)


def _moment(local: datetime, zone: ZoneInfo) -> Seconds:
    """The first moment at which the zone's clock shows `local` or more."""
    # Of two moments, fold=0 is the first. In a gap it reckons with the offset before, and comes out after the jump.
    first = _unix(local.replace(tzinfo=zone))
    if _local(first, zone).replace(tzinfo=None) == local:
        return float(first)
    return float(_change(_unix(local.replace(tzinfo=zone, fold=1)), first, zone=zone))


def _change(low: int, high: int, *, zone: ZoneInfo) -> int:
    """The moment, of `low` < t <= `high`, from which on the offset is that of `high`."""
    after = _offset(high, zone)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset(middle, zone) == after else (middle, high)
    return high


def _month_end(day: date) -> date:
    return (day.replace(day=28) + 4 * _DAY).replace(day=1) - _DAY
