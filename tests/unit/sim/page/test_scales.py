"""Axes and their round numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.sim.page.scales import Scale, clock, clock_ticks, log_range, log_ticks, ticks


def test_linear_and_logarithmic_places():
    assert Scale(0.0, 10.0, 100.0, 0.0)(2.5) == 75.0
    assert Scale(1.0, 100.0, 0.0, 50.0, log=True)(10.0) == pytest.approx(25.0)
    assert [Scale(1.0, 2.0, 0.0, 9.0)(value) for value in (0.0, 3.0)] == [0.0, 9.0]
    assert Scale(1.0, 1.0, 5.0, 9.0)(1.0) == 5.0


@pytest.mark.parametrize(
    ("high", "found"),
    [(10.0, [0, 2, 4, 6, 8, 10]), (3.0, [0, 1, 2, 3]), (0.9, [0, 0.2, 0.4, 0.6, 0.8]), (0.0, [0])],
)
def test_round_numbers(high, found):
    assert ticks(high) == pytest.approx(found)


@given(st.floats(1e-6, 1e9))
def test_few_round_numbers_below_the_highest(high):
    found = ticks(high)
    assert 2 <= len(found) <= 7
    assert found[-1] <= high * (1 + 1e-9)


@given(st.lists(st.floats(1e-3, 1e6), min_size=1))
def test_logarithmic_bounds_hold_all(values):
    low, high = log_range(values)
    assert low <= min(values) and max(values) <= high and low < high
    assert log_ticks(low, high)


def test_without_values_there_is_still_an_axis():
    assert log_range([]) == log_range([0.0]) == (1.0, 10.0)
    assert log_ticks(1.0, 10.0) == [1.0, 2.0, 5.0, 10.0]
    assert log_ticks(1.0, 1e6) == [10.0**power for power in range(7)]


def test_times_of_day():
    names = [name for _, name in clock_ticks(0.0, 25_200.0, begin=32_400.0)]
    assert names == ["09:00", "10:00", "11:00", "12:00", "13:00", "14:00", "15:00", "16:00"]
    assert clock_ticks(0.0, 86_400.0, begin=1800.0)[0] == (12_600.0, "04:00")
    assert clock_ticks(5.0, 12.0, begin=0.0)[0] == (5.0, "00:00:05")
    assert clock(86_399.0, seconds=True) == "23:59:59"
