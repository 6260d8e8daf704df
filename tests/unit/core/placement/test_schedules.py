from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.placement.calendar import CalendarError, Firings
from lorapick.core.placement.cron import CronError, parse_cron
from lorapick.core.placement.schedules import Schedules, Span, active
from lorapick.core.placement.wants import Want
from lorapick.model.adapters import Schedule
from lorapick.model.placement import Why

SUPPORT = Schedule(
    adapters=("customer-support-es",),
    cron="45 8 * * mon-fri",
    timezone="America/Mexico_City",
    replicas=2,
    lasts=9.5 * 3600,
    selector={"zone": "west"},
)
BERLIN = Schedule(adapters=("legal", "medical"), cron="0 7 * * *", timezone="Europe/Berlin", lasts=3600.0)


def unix(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def test_support_in_mexico_is_wanted_from_a_quarter_to_nine():
    schedules, start = Schedules([SUPPORT]), unix("2026-03-02 08:45", "America/Mexico_City")
    assert schedules.due(start - 1, now=99.0) == ()
    assert schedules.next_change() == start
    wanted = Want(
        "customer-support-es",
        Why.SCHEDULE,
        "45 8 * * mon-fri America/Mexico_City zone=west",
        replicas=2,
        selector={"zone": "west"},
        until=100.0 + 9.5 * 3600,
    )
    assert schedules.due(start, now=100.0) == (wanted,)
    assert schedules.due(start + 9.5 * 3600 - 1, now=99.0 + 9.5 * 3600) == (wanted,)
    assert schedules.due(start + 9.5 * 3600, now=100.0 + 9.5 * 3600) == ()
    assert schedules.next_change() == start + 86_400


def test_nothing_is_wanted_on_sunday():
    assert Schedules([SUPPORT]).due(unix("2026-03-01 10:00", "America/Mexico_City"), now=0.0) == ()


def test_who_starts_late_gets_what_should_be_loaded():
    (want,) = Schedules([SUPPORT]).due(unix("2026-03-02 18:00", "America/Mexico_City"), now=0.0)
    assert want.until == 15 * 60


def test_while_nothing_changes_the_answer_is_the_same_object():
    schedules, start = Schedules([SUPPORT, BERLIN]), unix("2026-03-02 07:00", "Europe/Berlin")
    first = schedules.due(start, now=0.0)
    assert [want.adapter for want in first] == ["legal", "medical"]
    assert schedules.due(start + 1, now=1.0) is first
    assert schedules.due(start + 3599.9, now=3599.9) is first
    assert schedules.due(start + 3600, now=3600.0) == ()


@pytest.mark.parametrize("jump", [86_400.0 + 3600, -86_400.0, 7200.0])
def test_a_wall_clock_that_jumps_is_followed(jump):
    schedules, start = Schedules([BERLIN]), unix("2026-03-02 07:00", "Europe/Berlin")
    assert schedules.due(start + 60, now=60.0)
    there = start + 60 + jump
    assert schedules.due(there, now=61.0) == Schedules([BERLIN]).due(there, now=61.0)


def test_a_wall_clock_that_is_put_right_moves_the_end():
    schedules, start = Schedules([BERLIN]), unix("2026-03-02 07:00", "Europe/Berlin")
    assert schedules.due(start + 60, now=60.0)[0].until == 3600.0
    assert schedules.due(start + 60.5, now=60.0)[0].until == 3600.0, "half a second is no jump"
    assert schedules.due(start + 90, now=60.0)[0].until == 3570.0


def test_firings_closer_than_they_last_make_one_span_whose_end_moves():
    often = Schedule(adapters=("a",), cron="*/10 * * * *", timezone="UTC", lasts=1500.0)
    schedules, start = Schedules([often]), unix("2026-03-02 00:00")
    ends = [schedules.due(start + t, now=float(t))[0].until for t in (0, 599, 600, 1200)]
    assert ends == [1500.0, 1500.0, 2100.0, 2700.0]


def test_the_time_that_it_lasts_is_elapsed_time():
    night = Schedule(adapters=("a",), cron="0 23 * * sat", timezone="Europe/Berlin", lasts=8 * 3600.0)
    zone = ZoneInfo("Europe/Berlin")
    for day, ends in (("2026-03-28", "08:00"), ("2026-10-24", "06:00"), ("2026-06-06", "07:00")):
        start = unix(f"{day} 23:00", "Europe/Berlin")
        span = active(Firings(parse_cron(night.cron), night.timezone), lasts=night.lasts, wall=start + 5 * 3600)
        assert span == Span(start, start + 8 * 3600)
        assert f"{datetime.fromtimestamp(span.end, zone):%H:%M}" == ends
        assert Schedules([night]).due(start + 8 * 3600 - 1, now=0.0)
        assert not Schedules([night]).due(start + 8 * 3600, now=0.0)


def test_a_time_that_clocks_skip_is_not_left_out_and_one_that_comes_twice_comes_once():
    early = Schedule(adapters=("a",), cron="30 2 * * *", timezone="Europe/Berlin", lasts=600.0)
    schedules, wanted = Schedules([early]), []
    for day in ("2026-03-29", "2026-10-25"):
        start = int(unix(f"{day} 00:00", "Europe/Berlin"))
        seconds = range(start, start + 6 * 3600, 60)
        wanted.append([t - start for t in seconds if schedules.due(float(t), now=float(t))])
    assert wanted[0] == list(range(2 * 3600, 2 * 3600 + 600, 60)), "at the jump, two hours after midnight"
    assert wanted[1] == list(range(9000, 9600, 60)), "the first half past two only"


def test_wants_come_in_the_order_of_the_file():
    many = [Schedule(adapters=(f"a{n}",), cron=f"{59 - n} * * * *", timezone="UTC", lasts=7200.0) for n in range(60)]
    assert [want.adapter for want in Schedules(many).due(unix("2026-01-01 12:00"), now=0.0)] == [
        f"a{n}" for n in range(60)
    ]


def test_without_schedules_nothing_is_ever_due():
    schedules = Schedules([])
    assert schedules.due(1e9, now=0.0) == schedules.due(1e9 + 1, now=1.0) == ()
    assert schedules.next_change() is None


@pytest.mark.parametrize("wall", [-1.0, float("nan"), float("inf"), 1e18])
def test_at_times_that_are_none_nothing_is_due(wall):
    schedules = Schedules([BERLIN])
    assert schedules.due(wall, now=0.0) == ()
    assert len(schedules.due(unix("2026-03-02 07:30", "Europe/Berlin"), now=0.0)) == 2


def test_what_cannot_be_read_is_refused_at_once():
    with pytest.raises(CronError):
        Schedules([Schedule(adapters=("a",), cron="0 25 * * *", timezone="UTC")])
    with pytest.raises(CalendarError, match='no time zone "Europe/Atlantis"'):
        Schedules([Schedule(adapters=("a",), cron="0 5 * * *", timezone="Europe/Atlantis")])


@given(
    st.lists(
        st.builds(
            Schedule,
            adapters=st.just(("a",)),
            cron=st.sampled_from(["*/10 * * * *", "0 2 * * *", "30 1,2 * * *", "0 0 1 * *", "15 */3 * * sun"]),
            timezone=st.sampled_from(["Europe/Berlin", "America/Mexico_City", "Australia/Lord_Howe"]),
            lasts=st.sampled_from([60.0, 600.0, 5000.0, 100_000.0]),
        ),
        max_size=4,
    ),
    st.lists(st.sampled_from([0.5, 1.0, 59.0, 600.0, 3600.0, 86_400.0, -3600.0]), max_size=12),
    st.booleans(),
)
def test_asked_again_and_again_it_says_what_a_new_one_would(schedules, steps, jumps):
    """Steps are of time that passes, or of a wall clock that is moved while the driver's stands."""
    kept, wall, now = Schedules(schedules), unix("2026-10-24 22:00"), 1000.0
    for step in steps:
        wall += step
        now += 0.0 if jumps or step < 0 else step
        assert kept.due(wall, now=now) == approximately(Schedules(schedules).due(wall, now=now))
        change = kept.next_change()
        assert change is None or change > wall


def approximately(wants: tuple[Want, ...]) -> tuple[Want, ...]:
    """The same, but an end may be a second off: wall clocks may drift that far before it is reckoned anew."""
    return tuple(want._replace(until=pytest.approx(want.until, abs=1.0)) for want in wants)
