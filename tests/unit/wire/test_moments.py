"""Times as people write them: each names one moment, or is refused with what to write instead."""

from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.wire.moments import MomentError, parse_moment, parse_window

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 6, 10, 14, 30, tzinfo=BERLIN)


def local(text: str, now: datetime = NOW) -> datetime:
    return datetime.fromtimestamp(parse_moment(text, now=now, zone=BERLIN), UTC).astimezone(BERLIN)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("14:00", "2026-06-10T14:00:00+02:00"),
        ("14:30", "2026-06-10T14:30:00+02:00"),
        ("14:31", "2026-06-09T14:31:00+02:00"),
        (" 9:05:07", "2026-06-10T09:05:07+02:00"),
        ("2026-01-02", "2026-01-02T00:00:00+01:00"),
        ("2026-01-02 03:04", "2026-01-02T03:04:00+01:00"),
        ("2026-01-02T03:04:05.5Z", "2026-01-02T04:04:05.500000+01:00"),
        ("2026-06-10T14:00+05:30", "2026-06-10T10:30:00+02:00"),
    ],
)
def test_one_moment(text: str, told: str) -> None:
    assert local(text).isoformat() == told


@pytest.mark.parametrize(
    "text", ["", "noon", "14", "25:00", "14:60", "2026-13-01", "2026-02-30T10:00", "14:00+01:00", "1e9"]
)
def test_no_moment(text: str) -> None:
    with pytest.raises(MomentError, match="is no time"):
        local(text)


def test_when_clocks_change_a_zone_is_asked_for() -> None:
    for text, told in (("2026-10-25T02:30", "comes twice"), ("2026-03-29T02:30", "does not come")):
        with pytest.raises(MomentError, match=told):
            local(text)
    assert local("2026-10-25T02:30+01:00").isoformat() == "2026-10-25T02:30:00+01:00"
    with pytest.raises(MomentError, match="comes twice"):
        local("02:30", datetime(2026, 10, 25, 12, 0, tzinfo=BERLIN))


def test_without_a_now_a_date_and_a_zone_are_needed() -> None:
    for text in ("14:00", "2026-06-10T14:00", "2026-06-10"):
        with pytest.raises(MomentError, match=r"no zone|no date"):
            parse_moment(text)
    assert parse_moment("1970-01-01T00:01Z") == 60.0


def window(since: str | None, until: str | None, now: datetime = NOW) -> list[str]:
    ends = parse_window(since, until, now=now, zone=BERLIN)[:2]
    return [f"{datetime.fromtimestamp(end, UTC).astimezone(BERLIN):%d %H:%M}" for end in ends]


def test_windows() -> None:
    assert window("13:00", "14:00") == ["10 13:00", "10 14:00"]
    assert window(None, None) == ["10 13:30", "10 14:30"]
    assert window("12:00", None) == ["10 12:00", "10 14:30"]
    assert window(None, "12:00") == ["10 11:00", "10 12:00"]
    assert window("23:00", "01:00") == ["09 23:00", "10 01:00"]
    assert window("15:00", "16:00") == ["09 15:00", "09 16:00"]
    assert window("15:00", "14:00") == ["09 15:00", "10 14:00"]
    assert window("2026-06-08T14:00", "16:00") == ["08 14:00", "08 16:00"]


@pytest.mark.parametrize(
    ("since", "until"),
    [("14:00", "16:00"), ("2026-06-10T14:00", "16:00"), ("2026-06-10T14:00", "2026-06-11"), ("14:00", "14:31")],
)
def test_an_end_that_is_yet_to_come_is_now_and_told(since: str, until: str) -> None:
    assert window(since, until) == ["10 14:00", "10 14:30"]
    assert parse_window(since, until, now=NOW, zone=BERLIN).note == f"--to {until} is yet to come; this is up to now"
    assert parse_window("13:00", "14:00", now=NOW, zone=BERLIN).note == ""


@pytest.mark.parametrize("text", ["0001-01-01", "0001-01-01T00:00+14:00", "9999-12-31T23:59", "1969-12-31T23:59Z"])
def test_years_that_no_clock_shows_are_refused(text: str) -> None:
    with pytest.raises(MomentError, match="years go from 1970"):
        parse_window(text, None, now=NOW, zone=BERLIN)


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2026-06-10T14:00", "2026-06-10T13:00"),
        ("2026-06-10T14:00", "2026-06-10T14:00"),
        ("14:00", "14:00"),
        ("2027-01-01", "2027-01-02"),
    ],
)
def test_no_window(since: str, until: str) -> None:
    with pytest.raises(MomentError, match=r"no window|yet to come"):
        window(since, until)


@given(st.text(max_size=24))
def test_any_text_is_a_moment_or_refused(text: str) -> None:
    with suppress(MomentError):
        assert isinstance(parse_moment(text, now=NOW, zone=BERLIN), float)
