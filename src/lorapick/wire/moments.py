"""Points in time as people write them.

In: text such as `14:00` or `2026-11-30T14:00+01:00`, and for times without a zone or a date the moment that is now.
Out: Unix time; or `MomentError`, which says what is unclear and how to write it. Not here: clocks.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from lorapick.model.units import Seconds

_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
HINT = "write a time of day (14:00), or a date and time (2026-11-30T14:00), with a zone (+01:00) if it is not local"


FIRST_YEAR, LAST_YEAR = 1970, 9998
"""What the calendar and Unix time have in common, with room for zones."""


class MomentError(ValueError):
    """The text names no moment, or more than one."""


class Window(NamedTuple):
    """From when until when."""

    since: Seconds
    until: Seconds
    note: str = ""
    """What whoever asked should know of it: its end was yet to come."""


def parse_moment(text: str, *, now: datetime | None = None, zone: tzinfo | None = None) -> Seconds:
    """One moment.

    Args:
        text: a time of day, or a date with a time.
        now: with it, a time of day is the last such time, and times without a zone are local. None: both are refused.
        zone: what is local; None: the machine's zone.

    Raises:
        MomentError: unclear.
    """
    text = text.strip()
    of_day = _TIME.fullmatch(text)
    if of_day is not None:
        if now is None:
            raise MomentError(f"{text!r} has no date and no zone; write 2026-11-30T14:00+01:00, or Unix time")
        hour, minute, second = (int(part or 0) for part in of_day.groups())
        return _last(hour, minute, second=second, now=now, zone=zone, text=text)
    if not _ISO.fullmatch(text):
        raise MomentError(f"{text[:40]!r} is no time; {HINT}")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise MomentError(f"{text!r} is no time ({error}); {HINT}") from None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise MomentError(f"{text!r} is out of range: years go from {FIRST_YEAR} to {LAST_YEAR}")
    if moment.tzinfo is not None:
        return moment.timestamp()
    if now is None:
        raise MomentError(f"{text!r} has no zone; add one, such as {text}{'T00:00' if len(text) == 10 else ''}+01:00")
    return _local(moment, zone, text=text)


def parse_window(since: str | None, until: str | None, *, now: datetime, zone: tzinfo | None = None) -> Window:
    """From when until when: without a begin an hour, without an end until now.

    With a begin, a time of day as the end is the first one after it, so `23:00` to `01:00` is over midnight. An end
    that is yet to come is taken as now, and `note` says so.

    Raises:
        MomentError: a time is unclear, or the window is empty or yet to come.
    """
    present = now.timestamp()
    begin = None if since is None else parse_moment(since, now=now, zone=zone)
    end = present if until is None else _end(until, begin=begin, now=now, zone=zone)
    if begin is None:
        begin = min(end, present) - 3600.0
    if begin >= end:
        raise MomentError(
            f"from {since or 'an hour before'} to {until or 'now'} is no window: it ends before it begins"
        )
    if begin >= present:
        raise MomentError(f"from {since} to {until} is yet to come")
    note = f"--to {until} is yet to come; this is up to now" if end > present else ""
    return Window(begin, min(end, present), note)


def _end(text: str, *, begin: Seconds | None, now: datetime, zone: tzinfo | None) -> Seconds:
    of_day = _TIME.fullmatch(text.strip())
    if of_day is None or begin is None:
        return parse_moment(text, now=now, zone=zone)
    hour, minute, second = (int(part or 0) for part in of_day.groups())
    local = datetime.fromtimestamp(begin, UTC).astimezone(zone).replace(tzinfo=None)
    moment = local.replace(hour=hour, minute=minute, second=second, microsecond=0)
    if moment == local:
        raise MomentError(f"to {text} is no window: it ends when it begins; write the date of its end")
    return _local(moment if moment > local else moment + timedelta(days=1), zone, text=text)


def _last(hour: int, minute: int, *, second: int, now: datetime, zone: tzinfo | None, text: str) -> Seconds:
    local = now.astimezone(zone).replace(tzinfo=None)
    moment = local.replace(hour=hour, minute=minute, second=second, microsecond=0)
    if moment > local:
        moment -= timedelta(days=1)
    return _local(moment, zone, text=text)


def _local(moment: datetime, zone: tzinfo | None, *, text: str) -> Seconds:
    """Unix time of a local one, of which there must be exactly one."""
    times = [_timestamp(moment.replace(fold=fold), zone) for fold in (0, 1)]
    if times[0] == times[1]:
        return times[0]
    what = "comes twice" if times[0] < times[1] else "does not come"
    raise MomentError(f"{text!r} {what} on {moment.date()}, when clocks change; add the zone, such as +01:00")


def _timestamp(moment: datetime, zone: tzinfo | None) -> Seconds:
    return (moment if zone is None else moment.replace(tzinfo=zone)).timestamp()
