"""Percentiles in constant memory."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.sim.histogram import Histogram

values = st.lists(st.one_of(st.just(0.0), st.floats(1e-5, 1e4)), min_size=1, max_size=200)


@given(values, st.floats(0.01, 1.0))
def test_quantiles_are_within_a_percent_of_a_real_value(found, share):
    histogram = Histogram()
    for value in found:
        histogram.add(value)
    exact = sorted(found)[max(0, math.ceil(share * len(found)) - 1)]
    assert histogram.quantile(share) == pytest.approx(exact, rel=0.0101, abs=1e-6)


def test_a_second_is_no_wider_than_the_others():
    histogram = Histogram()
    for value in (1.0, 0.984375):
        histogram.add(value)
    assert histogram.quantile(0.5) == pytest.approx(0.984375, rel=0.01)


@given(values, values)
def test_merging_is_counting_together(one, other):
    first, second, both = Histogram(), Histogram(), Histogram()
    for value in one:
        first.add(value)
        both.add(value)
    for value in other:
        second.add(value)
        both.add(value)
    merged = first.merge([second])
    assert (merged.bins, merged.count, merged.smallest, merged.largest) == (
        both.bins,
        both.count,
        both.smallest,
        both.largest,
    )
    assert merged.mean == pytest.approx(both.mean)


def test_nothing_has_no_figures():
    histogram = Histogram()
    assert (histogram.mean, histogram.quantile(0.5), histogram.count) == (None, None, 0)


def test_extremes_are_exact_and_negative_values_are_refused():
    histogram = Histogram()
    for value in (0.2, 0.3, 7.0):
        histogram.add(value)
    assert (histogram.quantile(1.0), histogram.quantile(0.0), histogram.mean) == (7.0, 0.2, 2.5)
    with pytest.raises(AssertionError):
        histogram.add(-0.1)


def test_a_million_values_take_no_more_room_than_a_thousand():
    histogram = Histogram()
    for number in range(100_000):
        histogram.add(0.001 * (1 + number % 1000))
    assert len(histogram.bins) < 400
