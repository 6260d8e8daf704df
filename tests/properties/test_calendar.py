"""Firings as the calendar finds them, against a walk minute by minute with a hand that only goes forward."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lorapick.core.placement.calendar import Firings, clock_changes, next_firings
from lorapick.core.placement.cron import CronError, parse_cron

ZONES = (
    "America/Mexico_City",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "America/St_Johns",
    "Africa/Casablanca",
    "Pacific/Apia",
    "UTC",
)
DAYS = 2
MINUTE = timedelta(minutes=1)


class Fields:
    """The values that each field of a cron expression of plain numbers, lists, stars and `*/n` has."""

    def __init__(self, text: str) -> None:
        fields = text.split()
        lows, highs = (0, 0, 1, 1, 0), (59, 23, 31, 12, 6)
        self.minutes, self.hours, self.days, self.months, self.weekdays = (
            {value for value in range(low, high + 1) if holds(field, value, low)}
            for field, low, high in zip(fields, lows, highs, strict=True)
        )
        self.both = "*" in (fields[2][0], fields[4][0])

    def match(self, local: datetime) -> bool:
        if local.minute not in self.minutes or local.hour not in self.hours or local.month not in self.months:
            return False
        day, weekday = local.day in self.days, (local.weekday() + 1) % 7 in self.weekdays
        return (day and weekday) if self.both else (day or weekday)


def holds(field: str, value: int, low: int) -> bool:
    if field.startswith("*/"):
        return (value - low) % int(field[2:]) == 0
    return field == "*" or str(value) in field.split(",")


@cache
def minutes(zone: str, start: int) -> list[tuple[int, list[datetime]]]:
    """For each minute of `DAYS` days: its Unix time, and the local minutes that have come up with it."""
    reached: datetime | None = None
    found = []
    for step in range(-180, DAYS * 24 * 60):  # from three hours before, to know which minutes are repeated
        local = datetime.fromtimestamp(start + step * 60, ZoneInfo(zone)).replace(tzinfo=None)
        new = list(after(reached or local - MINUTE, local))
        reached = max(reached or local, local)
        if step >= 0:
            found.append((start + step * 60, new))
    return found


def after(reached: datetime, local: datetime) -> Iterator[datetime]:
    while reached < local:
        reached += MINUTE
        yield reached


def fired(text: str, zone: str, start: int) -> list[int]:
    fields = Fields(text)
    return [moment for moment, new in minutes(zone, start) if any(map(fields.match, new))]


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    some = st.lists(st.integers(low, high), min_size=1, max_size=4).map(lambda each: ",".join(map(str, each)))
    return st.just("*") | some


@st.composite
def starts(draw: st.DrawFn) -> tuple[str, int]:
    """A zone, and the begin of some days, most often with a change of its clocks among them."""
    zone = draw(st.sampled_from(ZONES))
    begin, end = datetime(2011, 1, 1, tzinfo=UTC).timestamp(), datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    changes = changes_of(zone, begin, end)
    if changes and draw(st.integers(0, 4)):
        # Few enough that walks are used again.
        return zone, draw(st.sampled_from(changes[-4:])) // 60 * 60 - draw(st.sampled_from([600, 90_000]))
    return zone, int(begin) + 86_400 * draw(st.sampled_from([58, 364, 1_154, 5_800]))


@cache
def changes_of(zone: str, begin: float, end: float) -> list[int]:
    return [int(change.at) for change in clock_changes(zone, after=begin, until=end)]


def comes(text):
    """Whether it ever comes: one of the 30th of February is refused."""
    try:
        parse_cron(text)
    except CronError:
        return False
    return True


times = (
    st.tuples(
        numbers(0, 59) | st.sampled_from(["*/15", "*/20", "*/7"]),
        numbers(0, 23) | st.sampled_from(["0,1,2,3", "2", "1", "*/2"]),
        st.sampled_from(["*", "*", "*/2"]) | numbers(1, 31),
        st.sampled_from(["*", "*", "*"]) | numbers(1, 12),
        st.sampled_from(["*", "*", "*"]) | numbers(0, 6),
    )
    .map(" ".join)
    .filter(comes)
)
often = st.sampled_from(["*/10 * * * *", "*/20 1,2,3 * * *", "15,45 * * * *", "0 */2 * * *"])


@settings(max_examples=100)
@given(times | often, starts())
@example("30 2 * * *", ("Europe/Berlin", int(datetime(2026, 3, 28, tzinfo=UTC).timestamp())))
@example("30 2 * * *", ("Europe/Berlin", int(datetime(2026, 10, 24, tzinfo=UTC).timestamp())))
@example("*/10 * * * *", ("Australia/Lord_Howe", int(datetime(2026, 4, 4, tzinfo=UTC).timestamp())))
@example("45 8 * * *", ("Pacific/Apia", int(datetime(2011, 12, 29, tzinfo=UTC).timestamp())))
@example("45 8 * * *", ("Asia/Kathmandu", int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())))
def test_every_firing_is_the_walks_and_the_other_way_round(text, place):
    zone, start = place
    firings, end = Firings(parse_cron(text), zone), start + DAYS * 86_400
    expected = fired(text, zone, start)
    found = next_firings(firings, start - 1, count=len(expected) + 1)
    assert [each for each in found if each < end] == expected


# Half of them around the changes of clocks that `starts` begins before.
into_days = st.floats(0, DAYS * 86_400 - 1) | st.floats(0, 8_000) | st.floats(90_000, 98_000)


@settings(max_examples=100)
@given(times | often, starts(), into_days, st.integers(1, 2 * 86_400))
@example("*/10 * * * *", ("Europe/Berlin", int(datetime(2026, 10, 25, tzinfo=UTC).timestamp())), 4_200.0, 7_200)
def test_the_last_firing_is_the_walks(text, place, into, within):
    zone, start = place
    firings, wall = Firings(parse_cron(text), zone), start + into
    expected = [each for each in fired(text, zone, start) if each <= wall]
    found = firings.last(wall, within=within)
    if expected and wall - expected[-1] < within:
        assert found == expected[-1]
    else:  # one from before the days that were walked, perhaps
        assert found is None or (found < start and wall - found < within)


@settings(max_examples=100)
@given(times | often, starts(), into_days)
@example("*/10 * * * *", ("Europe/Berlin", int(datetime(2026, 10, 25, tzinfo=UTC).timestamp())), 4_200.0)
def test_the_next_firing_is_the_walks_and_the_last_then(text, place, into):
    zone, start = place
    firings, wall = Firings(parse_cron(text), zone), start + into
    following = firings.after(wall)
    if following is not None:
        assert following > wall
        expected = [each for each in fired(text, zone, start) if each > wall]
        assert following == expected[0] if expected else following >= start + DAYS * 86_400
        assert firings.last(following, within=1) == following
        assert firings.after(following - 0.5) == following
        before = firings.last(following - 0.5, within=4 * 86_400)
        assert before is None or before <= wall


@given(starts())
def test_clocks_change_where_the_offset_does(place):
    zone, start = place
    for change in clock_changes(zone, after=start, until=start + 200 * 86_400):
        just_before, then = (
            datetime.fromtimestamp(change.at + step, UTC).astimezone(ZoneInfo(zone)).utcoffset() for step in (-1, 0)
        )
        assert (just_before, then) == (change.before, change.after)
        assert start < change.at <= start + 200 * 86_400
