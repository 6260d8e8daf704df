from math import inf

import pytest
from forecast_kit import FIRST, add, always, daily, history
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.forecast.history import PER_DAY, PER_WEEK, History
from lorapick.core.forecast.looks import LOOKS, just_now, knows, last_bins, looks, same_times, same_week

TEN = 120
"""Bins from midnight to ten o'clock."""


def seen(found, number, *, most=inf):
    """Looks at one adapter."""
    column = found.adapters["a"]
    return {name: look[column] for name, look in zip(LOOKS, looks(found, FIRST + number, most=most), strict=True)}


def test_nothing_is_known_before_the_first_bin():
    found = history(5, a=always(1))
    assert not knows(History(), FIRST)
    assert not knows(found, FIRST)
    assert knows(found, FIRST + 1)


def test_steady_demand_looks_the_same_from_everywhere():
    found = history(2 * PER_WEEK, a=always(3))
    assert seen(found, 2 * PER_WEEK) == pytest.approx(dict.fromkeys(LOOKS, 3.0))


def test_of_each_bin_only_so_many_requests_count():
    found = history(2 * PER_DAY, a=lambda number: 100 if number % 2 else 0)
    assert seen(found, 2 * PER_DAY, most=1)["day"] == pytest.approx(0.5)
    assert seen(found, 2 * PER_DAY, most=2.5)["day"] == pytest.approx(1.25)


def test_what_came_just_now_counts_most_for_the_recent_look():
    found = history(PER_DAY, a=lambda number: 10 if number >= PER_DAY - 3 else 0, b=always(1))
    look = seen(found, PER_DAY)
    assert look["recent"] > look["hour"] > look["day"] > 0


def test_bins_before_the_first_are_not_taken_for_zeros():
    found = history(6, a=always(2))
    assert last_bins(found, FIRST + 6, bins=12, most=inf)[0] == 2
    assert just_now(found, FIRST + 6, most=inf)[0][0] == pytest.approx(2)


def test_silence_after_the_first_bin_is_zeros():
    found = history(12, a=lambda number: 6 if number < 6 else 0)
    assert last_bins(found, FIRST + 12, bins=12, most=inf)[0] == 3


def test_the_same_time_of_earlier_days_is_seen_with_half_an_hour_to_each_side():
    found = history(4 * PER_DAY, a=daily(10, begin=TEN))
    now = FIRST + 4 * PER_DAY + TEN
    assert same_times(found, now + 6, most=inf)[0][0] == pytest.approx(120 / 13)
    assert same_times(found, now - 6, most=inf)[0][0] == pytest.approx(10 / 13)
    assert same_times(found, now - 7, most=inf)[0][0] == 0


def test_a_rise_of_earlier_days_is_expected_today():
    found = history(4 * PER_DAY, a=daily(10, begin=TEN))
    add(found, range(4 * PER_DAY, 4 * PER_DAY + TEN))
    assert seen(found, 4 * PER_DAY + TEN)["hour"] == pytest.approx(0, abs=1e-9)
    assert seen(found, 4 * PER_DAY + TEN)["change"] > 3


def test_a_fall_of_earlier_days_is_expected_today_and_never_below_nothing():
    found = history(4 * PER_DAY, a=daily(10, begin=TEN))
    add(found, range(4 * PER_DAY, 4 * PER_DAY + TEN + 12), a=daily(1, begin=TEN))
    assert seen(found, 4 * PER_DAY + TEN + 14)["change"] == 0


def test_a_level_that_is_the_same_all_day_has_no_growth():
    found = history(3 * PER_DAY, a=always(7))
    assert same_times(found, FIRST + 3 * PER_DAY, most=inf)[1][0] == pytest.approx(0, abs=1e-9)


def test_later_days_count_more_than_earlier_ones():
    found = history(2 * PER_DAY, a=lambda number: 10 if number >= PER_DAY else 0, b=always(1))
    same = same_times(found, FIRST + 2 * PER_DAY + 50, most=inf)[0]
    assert same[found.adapters["a"]] == pytest.approx(10 / 1.8)


def test_without_a_day_or_a_week_of_history_there_is_no_such_look():
    found = history(PER_DAY, a=always(4))
    assert same_times(found, FIRST + PER_DAY, most=inf) is None
    assert same_week(found, FIRST + PER_WEEK, most=inf) is None
    assert seen(found, PER_DAY) == pytest.approx(dict.fromkeys(LOOKS, 4.0))


def test_weeks_are_counted():
    found = history(3 * PER_WEEK, a=lambda number: number // PER_WEEK, b=always(1))
    mean, weeks = same_week(found, FIRST + 3 * PER_WEEK + 10, most=inf)
    assert weeks == 3
    assert mean[0] == pytest.approx(1)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=700), st.sampled_from([1.0, 3.5, inf]), st.data())
@settings(max_examples=25, deadline=None)
def test_looks_are_blind_to_what_comes_later(counts, most, data):
    """Also: within what one bin may have, and no look is negative."""
    number = data.draw(st.integers(1, len(counts)))
    whole = history(len(counts), a=lambda each: counts[each], b=always(1))
    before = history(number, a=lambda each: counts[each], b=always(1))
    column, other = whole.adapters["b"], before.adapters["b"]
    for late, early in zip(
        looks(whole, FIRST + number, most=most), looks(before, FIRST + number, most=most), strict=True
    ):
        assert late[column] == pytest.approx(early[other])
        assert sorted(late) == pytest.approx(sorted([*early, *[0.0] * (len(late) - len(early))]))
        assert (late >= 0).all()
        assert (late <= 2 * min(most, max(counts) + 1) + 1e-9).all()
