"""Counts of arms: they can be taken from one another, and quantiles of durations are right within a bucket."""

import math

from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.arms_tally import COARSE, EDGES, STEP, ArmTally, Durations, WouldTally
from lorapick.model.requests import Outcome

seconds = st.floats(0.002, 1500.0)


def durations(values):
    made = Durations()
    for value in values:
        made.add(value)
    return made


@given(st.lists(seconds, min_size=1, max_size=60), st.data())
def test_ranks_are_right_within_a_bucket(values, data):
    rank = data.draw(st.integers(1, len(values)))
    exact, found = sorted(values)[rank - 1], durations(values).at(rank)
    assert exact <= found * (1 + 1e-9)
    assert found <= exact * STEP * (1 + 1e-9)


@given(st.lists(seconds, max_size=60))
def test_what_metrics_show_is_exact(values):
    for bound, count in durations(values).cumulative():
        assert count == sum(value <= bound for value in values)


@given(st.lists(seconds, max_size=30), st.lists(seconds, max_size=30))
def test_what_came_after_a_copy_is_the_difference(before, after):
    tally = ArmTally()
    for value in before:
        tally.latency.add(value)
        tally.outcomes[Outcome.SERVED] += 1
    copy = tally.copy()
    for value in after:
        tally.latency.add(value)
        tally.outcomes[Outcome.SERVED] += 1
    rest = tally.less(copy)
    assert rest.ended == rest.latency.count == len(after)
    assert rest.latency.buckets == durations(after).buckets
    assert math.isclose(rest.latency.total, sum(after), abs_tol=1e-6)
    assert copy.ended == len(before)


def test_the_bounds_of_metrics_are_bounds_here():
    assert [*EDGES] == sorted(EDGES)
    assert set(COARSE) <= set(EDGES)


def test_what_would_have_been_has_differences_too():
    would = WouldTally()
    would.by_result["disk"] += 2
    copy = would.copy()
    would.by_result["disk"] += 1
    would.compared += 1
    rest = would.less(copy)
    assert (rest.by_result, rest.compared) == ({"disk": 1}, 1)
