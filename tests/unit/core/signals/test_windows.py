"""Counts and quantiles of a window that slides."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.signals.windows import BINS, Durations, Sliding, above, merge, quantile

GAPS = st.lists(st.tuples(st.floats(0.0, 30.0), st.integers(1, 3)), max_size=60)


@given(GAPS, st.floats(0.0, 100.0))
def test_a_count_is_exact_to_one_bin(gaps, later):
    window = Sliding(60.0)
    now, told = 0.0, []
    for gap, count in gaps:
        now += gap
        window.add(now, count)
        told.append((now, count))
    now += later
    total = window.total(now)
    size = 60.0 / BINS
    assert sum(count for t, count in told if t > now - 60.0) <= total
    assert total <= sum(count for t, count in told if t >= now - 60.0 - 2 * size)
    assert window.total(now + 200.0) == 0


@given(st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_is_within_its_step(values, share):
    durations = Durations(600.0)
    for value in values:
        durations.add(value, now=5.0)
    exact = sorted(values)[max(0, bisect_left(range(1, len(values) + 1), share * len(values) - 1e-9))]
    found = durations.quantile(share, now=5.0)
    assert exact / 1.06 <= found <= exact * 1.06
    assert durations.quantile(share, now=1e4) is None


def test_two_windows_merge():
    one, two = Durations(60.0), Durations(60.0)
    one.add(0.1, now=1.0)
    two.add(10.0, now=1.0)
    both = merge([one.merged(1.0), two.merged(1.0)])
    assert 0.09 < quantile(both, 0.5) < 0.11 and 9 < quantile(both, 1.0) < 11
    assert quantile({}, 0.5) is None


def test_what_is_above():
    durations = Durations(60.0)
    for seconds in (0.5, 1.0, 2.0, 4.0):
        durations.add(seconds, now=1.0)
    assert above(durations.merged(1.0), 1.5) == 2
