"""Ceilings by priority, against the obvious formulas and llm-d's cases."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.admission.ceilings import IDLE, Ceilings, ceilings, period
from lorapick.model.bands import Ceiling, CeilingSettings, Spread


def of(spread, priorities, *, level=0.5, **fields):
    return [round(each, 6) for each in ceilings(CeilingSettings(spread=spread, **fields), priorities, level=level)]


@pytest.mark.parametrize(
    ("spread", "priorities", "expected"),
    [
        (Spread.RANK, [100, 10, 0, -1], [0.9, 0.7, 0.5, 0.3]),
        (Spread.RANK, [7], [0.9]),
        (Spread.VALUE, [100, 40, 0], [0.9, 0.54, 0.3]),
        (Spread.VALUE, [0], [0.9]),
        (Spread.SAME, [3, 0, -3], [0.9, 0.9, 0.9]),
    ],
)
def test_they_lie_between_most_and_least_by_rank_by_value_or_not_at_all(spread, priorities, expected):
    assert of(spread, priorities, least=0.3, most=0.9) == expected


def test_listed_ones_are_as_listed_and_who_is_not_there_is_shut_and_all_below():
    listed = (Ceiling(priority=10, most=0.9), Ceiling(priority=0, most=0.6), Ceiling(priority=-5, most=0.5))
    assert of(Spread.LISTED, [10, 0, -5], listed=listed) == [0.9, 0.6, 0.5]
    assert of(Spread.LISTED, [10, 5, 0, -5], listed=listed) == [0.9, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("level", "expected"), [(0.0, [1.0, 1.0, 1.0]), (0.4, [1.0, 0.8, 0.6]), (1.0, [1.0, 0.5, 0.0])]
)
def test_reflected_ones_fall_as_the_pods_fill_and_the_highest_has_none(level, expected):
    assert of(Spread.REFLECTED, [9, 5, 0], level=level) == expected
    assert of(Spread.REFLECTED, [9], level=level) == [1.0]


@pytest.mark.parametrize(
    ("level", "expected"), [(0.5, 1), (0.61, 2), (0.75, 3), (0.8, 4), (0.9, 9), (1.0, 0), (3.0, 0)]
)
def test_above_one_the_share_let_through_falls(level, expected):
    assert period(level) == expected


@given(
    st.sampled_from([Spread.RANK, Spread.VALUE, Spread.SAME, Spread.REFLECTED, Spread.LISTED]),
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=8, unique=True),
    st.floats(0.0, 2.0),
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
)
def test_no_priority_has_a_higher_ceiling_than_one_above_it(spread, priorities, level, bounds):
    ordered = sorted(priorities, reverse=True)
    listed = tuple(Ceiling(priority=each, most=(each % 7) / 7) for each in ordered[::2])
    settings = CeilingSettings(spread=spread, least=min(bounds), most=max(bounds), listed=listed)
    found = ceilings(settings, ordered, level=level)
    assert len(found) == len(ordered)
    assert all(lower <= higher for higher, lower in itertools.pairwise(found))


def test_who_counts_is_0_who_is_declared_and_who_came_of_late():
    seen = Ceilings()
    assert seen.known([], now=0.0) == [0]
    seen.saw(5, now=0.0)
    seen.saw(-2, now=100.0)
    assert seen.known([7, 0], now=IDLE) == [7, 5, 0, -2]
    assert seen.known([7], now=IDLE + 1.0) == [7, 0, -2]


def test_one_try_of_so_many_passes_of_each_priority_by_itself():
    seen = Ceilings()
    assert [seen.passes(0, period=3) for _ in range(7)] == [False, False, True, False, False, True, False]
    assert [seen.passes(-1, period=2) for _ in range(2)] == [False, True]
