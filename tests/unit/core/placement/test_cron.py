import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.placement.cron import Cron, CronError, parse_cron

ALL_DAYS, ALL_MONTHS = frozenset(range(1, 32)), frozenset(range(1, 13))


def test_working_days_in_the_morning() -> None:
    assert parse_cron("45 8 * * mon-fri") == Cron(
        minutes=frozenset({45}),
        hours=frozenset({8}),
        days=ALL_DAYS,
        months=ALL_MONTHS,
        weekdays=frozenset({1, 2, 3, 4, 5}),
        any_day=True,
        any_weekday=False,
    )


def test_lists_ranges_steps_and_names() -> None:
    cron = parse_cron("*/20 0-6/3,22 1,15 JAN,jun-aug 0,7")
    assert cron.minutes == {0, 20, 40}
    assert cron.hours == {0, 3, 6, 22}
    assert cron.days == {1, 15}
    assert cron.months == {1, 6, 7, 8}
    assert cron.weekdays == {0}
    assert parse_cron("5/20 * * * *").minutes == {5, 25, 45}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has 5 fields .*, this has 0"),
        ("* * * *", "this has 4"),
        ("@daily", "this has 1"),
        ("60 * * * *", '"60" is no minute; write a number from 0 to 59'),
        ("* 24 * * *", '"24" is no hour'),
        ("* * 0 * *", '"0" is no day of month; write a number from 1 to 31'),
        ("* * * 13 *", '"13" is no month; .*or jan/feb/'),
        ("* * * * monday", '"monday" is no day of week; .*or sun/mon/'),
        ("* * * mon *", '"mon" is no month'),
        ("5-1 * * * *", "a range rises"),
        ("*/0 * * * *", "a step is at least 1"),
        ("*/x * * * *", 'is no minute; write numbers from 0 to 59, "\\*"'),
        ("1,, * * * *", "is no minute"),
        ("-1 * * * *", "is no minute"),
        ("٣ * * * *", "is no minute"),
        ("0?1 * * * *", "is no minute"),
        ("0 0 30 feb *", 'no month of "feb" has a day 30'),
        ("0 0 31 4,6-6,9,11 *", "has a day 31"),
    ],
)
def test_what_is_no_cron_expression(text: str, message: str) -> None:
    with pytest.raises(CronError, match=message):
        parse_cron(text)


@pytest.mark.parametrize("text", ["0 0 29 feb *", "0 0 31 2,3 *", "0 0 31 feb mon", "0 0 */30 feb *"])
def test_days_that_some_year_has_are_good(text: str) -> None:
    assert parse_cron(text).months


@pytest.mark.parametrize(
    ("text", "both"),
    [
        ("0 0 * * mon", True),
        ("0 0 1 * *", True),
        ("0 0 */2 * mon", True),
        ("0 0 1 * */2", True),
        ("0 0 1 * mon", False),
    ],
)
def test_day_and_weekday_are_both_needed_when_one_begins_with_a_star(text: str, both: bool) -> None:
    assert parse_cron(text).both_days is both


@given(st.text(st.sampled_from("0123456789*,-/ abcmonfri"), max_size=24))
def test_any_text_gives_sets_in_range_or_the_typed_error(text: str) -> None:
    try:
        cron = parse_cron(text)
    except CronError:
        return
    assert cron.minutes <= set(range(60)) and cron.hours <= set(range(24)) and cron.weekdays <= set(range(7))
    assert cron.minutes and cron.hours and cron.days <= ALL_DAYS and cron.months <= ALL_MONTHS
