import ast
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from lorapick.core.placement import calendar
from lorapick.core.placement.calendar import (
    CalendarError,
    ClockChange,
    Firings,
    clock_changes,
    is_weekend,
    next_firings,
    week_minute,
)
from lorapick.core.placement.cron import parse_cron


def unix(text: str, zone: str = "UTC", fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def utc(moments: list[float]) -> list[str]:
    return [f"{datetime.fromtimestamp(each, ZoneInfo('UTC')):%m-%d %H:%M}" for each in moments]


def upcoming(cron: str, zone: str, after: str, count: int = 3) -> list[str]:
    return utc(next_firings(Firings(parse_cron(cron), zone), unix(after), count=count))


def test_working_days_in_mexico():
    assert upcoming("45 8 * * mon-fri", "America/Mexico_City", "2026-03-06 14:00") == [
        "03-06 14:45",
        "03-09 14:45",
        "03-10 14:45",
    ]


def test_the_hour_in_utc_moves_with_the_clocks():
    assert upcoming("0 7 * * *", "Europe/Berlin", "2026-03-27 12:00") == ["03-28 06:00", "03-29 05:00", "03-30 05:00"]
    assert upcoming("0 7 * * *", "Europe/Berlin", "2026-10-23 12:00") == ["10-24 05:00", "10-25 06:00", "10-26 06:00"]


def test_minutes_that_are_skipped_fire_once_at_the_jump():
    assert upcoming("*/10 2 * * *", "Europe/Berlin", "2026-03-29 00:00", 2) == ["03-29 01:00", "03-30 00:00"]
    # 03:00 is the moment of the jump too: still once.
    assert upcoming("0 2,3 * * *", "Europe/Berlin", "2026-03-29 00:00", 2) == ["03-29 01:00", "03-30 00:00"]


def test_minutes_that_come_twice_fire_the_first_time():
    assert upcoming("*/30 * * * *", "Europe/Berlin", "2026-10-25 00:00", 3) == [
        "10-25 00:30",
        "10-25 02:00",
        "10-25 02:30",
    ]
    assert upcoming("*/30 * * * *", "Australia/Lord_Howe", "2026-04-04 14:00", 4) == [
        "04-04 14:30",
        "04-04 15:30",
        "04-04 16:00",
        "04-04 16:30",
    ]


def test_a_day_that_samoa_left_out_fires_when_the_next_one_begins():
    assert upcoming("45 8 30 12 *", "Pacific/Apia", "2011-12-01 00:00", 1) == ["12-30 10:00"]


@pytest.mark.parametrize(
    ("cron", "first"),
    [
        ("0 0 29 2 *", 2028),
        ("0 0 29 2 */7", 2032),
        ("0 0 31 2,12 *", 2026),
    ],
)
def test_rare_days_are_found(cron, first):
    firings = Firings(parse_cron(cron), "UTC")
    moment = firings.after(unix("2026-03-01 00:00"))
    assert moment is not None
    assert firings.shown(moment).year == first
    assert firings.last(moment + 5, within=6) == moment
    assert firings.last(moment - 5, within=86_400) is None


def test_a_weekday_of_29_february_is_found_over_a_year_without_one():
    firings = Firings(parse_cron("0 0 29 2 */7"), "UTC")  # a Sunday
    moment = firings.after(unix("2088-03-01 00:00"))
    assert moment is not None
    assert firings.shown(moment).year == 2128


def test_the_last_firing_is_one_within_the_time_asked_for():
    firings = Firings(parse_cron("0 12 1 * *"), "UTC")
    wall = unix("2026-03-20 00:00")
    assert firings.last(wall, within=18.5 * 86_400) is None, "exclusive"
    assert firings.last(wall, within=18.5 * 86_400 + 1) == unix("2026-03-01 12:00")
    assert firings.last(unix("2026-03-01 12:00"), within=1) == unix("2026-03-01 12:00")
    assert firings.last(unix("2026-03-01 11:59:59"), within=86_400) is None


@pytest.mark.parametrize("wall", [-5.0, float("nan"), float("inf"), 1e15])
def test_times_out_of_range_have_no_firings(wall):
    firings = Firings(parse_cron("* * * * *"), "UTC")
    assert firings.after(wall) is None
    assert firings.last(wall, within=1e6) is None
    assert not is_weekend(wall, timezone="UTC", start=0, end=7 * 1440 - 1)
    assert next_firings(firings, wall, count=3) == []


def test_the_first_minutes_of_1970_fire():
    firings = Firings(parse_cron("0 * * * *"), "UTC")
    assert firings.last(0.5, within=1e9) == 0.0
    assert firings.after(0.0) == 3600.0


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../etc/passwd", "Europe", "\0"])
def test_a_zone_that_is_not_in_the_database_is_refused(zone):
    with pytest.raises(CalendarError, match=r'no time zone .* write for example "America/Mexico_City"'):
        Firings(parse_cron("* * * * *"), zone)


def test_clock_changes_of_a_year():
    hour = timedelta(hours=1)
    assert clock_changes("Europe/Berlin", after=unix("2026-01-01 00:00"), until=unix("2027-01-01 00:00")) == [
        ClockChange(unix("2026-03-29 01:00"), hour, 2 * hour),
        ClockChange(unix("2026-10-25 01:00"), 2 * hour, hour),
    ]
    assert clock_changes("America/Mexico_City", after=unix("2026-01-01 00:00"), until=unix("2028-01-01 00:00")) == []


def test_a_clock_change_is_in_the_span_that_ends_with_it():
    at = unix("2026-03-29 01:00")
    assert [each.at for each in clock_changes("Europe/Berlin", after=at - 1, until=at)] == [at]
    assert clock_changes("Europe/Berlin", after=at, until=at + 1) == []


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("sun 00:00", 0), ("fri 18:00", 5 * 1440 + 1080), ("Mon  6:05", 1440 + 365), ("sat 23:59", 7 * 1440 - 1)],
)
def test_times_of_the_week(text, minutes):
    assert week_minute(text) == minutes


@pytest.mark.parametrize("text", ["", "fri", "18:00", "friday 18:00", "fri 24:00", "fri 18:60", "fri 1800", "xyz 1:00"])
def test_what_is_no_time_of_the_week(text):
    with pytest.raises(CalendarError, match=r'write for example "fri 18:00" \(sun/mon/'):
        week_minute(text)


WEEKEND = {"start": week_minute("fri 18:00"), "end": week_minute("mon 06:00")}


@pytest.mark.parametrize(
    ("local", "weekend"),
    [
        ("2026-03-06 17:59", False),
        ("2026-03-06 18:00", True),
        ("2026-03-07 12:00", True),
        ("2026-03-08 00:00", True),
        ("2026-03-09 05:59", True),
        ("2026-03-09 06:00", False),
        ("2026-03-11 12:00", False),
    ],
)
def test_the_weekend_is_from_friday_evening_to_monday_morning(local, weekend):
    wall = unix(local, "America/Mexico_City")
    assert is_weekend(wall, timezone="America/Mexico_City", **WEEKEND) is weekend


def test_a_weekend_that_ends_while_an_hour_comes_twice_ends_once():
    end = week_minute("sun 02:30")
    start = unix("2026-10-25 02:00", "Europe/Berlin")
    inside = [
        is_weekend(start + 60 * minute, timezone="Europe/Berlin", start=week_minute("sat 00:00"), end=end)
        for minute in range(150)
    ]
    assert inside == [True] * 30 + [False] * 120


def test_equal_ends_mean_that_there_is_no_weekend():
    assert not is_weekend(1e9, timezone="UTC", start=60, end=60)


def test_nobody_asks_these_libraries_what_the_time_is():
    tree = ast.parse(Path(calendar.__file__).read_text())
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not called & {"now", "today", "utcnow"}
