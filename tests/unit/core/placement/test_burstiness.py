from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.placement.burstiness import Burstiness


def poisson(rate, *, until, seed=1, batch=1):
    chance, now = Random(seed), 0.0
    while (now := now + chance.expovariate(rate / batch)) < until:
        yield from [now] * batch


def seen(times, **more):
    counted = Burstiness(**more)
    for now in times:
        counted.happened("a", now)
    return counted


@pytest.mark.parametrize("rate", [0.5, 4.0, 50.0])
def test_a_poisson_process_has_one(rate):
    found = [seen(poisson(rate, until=1000.0, seed=seed)).burst("a", 1000.0) for seed in range(20)]
    assert sum(found) / 20 == pytest.approx(1.0, abs=0.12)


def test_batches_have_their_size():
    found = [seen(poisson(10.0, until=2000.0, seed=seed, batch=5)).burst("a", 2000.0) for seed in range(20)]
    assert sum(found) / 20 == pytest.approx(5.0, rel=0.25)


def test_a_clock_has_less_than_one():
    assert seen(number * 0.5 for number in range(4000)).burst("a", 2000.0) < 0.2


def test_on_and_off_has_much_more():
    times = [number * 0.1 for number in range(10_000) if number // 200 % 2]
    assert seen(times).burst("a", 1000.0) > 10.0


def test_little_is_known_at_first():
    counted = seen([0.1] * 30)
    assert counted.burst("a", 1.0) == counted.burst("b", 1.0) == 1.0
    assert 1.0 < counted.burst("a", 11.0) < 6.0


def test_the_rate_is_that_of_the_last_minutes():
    counted = seen(poisson(8.0, until=600.0))
    assert counted.rate("a", 600.0) == pytest.approx(8.0, rel=0.15)
    assert counted.rate("a", 900.0) == pytest.approx(8.0 * 0.37, rel=0.2)
    assert counted.rate("a", 9000.0) < 1e-6
    assert counted.rate("unknown", 600.0) == 0.0


def test_the_first_window_counts_for_the_rate():
    counted = seen([0.0, 1.0, 2.0])
    assert counted.rate("a", 2.5) == pytest.approx(3 / 5)


def test_quiet_windows_count_when_somebody_asks():
    counted = seen([0.0, 1.0, 2.0, 3.0])
    # One window of four, three of none: a mean of 1 and a variance of 4, nearly forgotten evenly; ten of belief in 1.
    assert counted.burst("a", 20.0) == pytest.approx((4.0 * 4 + 10) / 14, rel=0.1)


def test_memory_is_bounded_and_the_quiet_go_first():
    counted = Burstiness(most_adapters=10)
    for number in range(95):
        counted.happened(f"adapter-{number}", number * 10.0)
        counted.happened("steady", number * 10.0)
    assert len(counted) <= 10
    assert counted.rate("steady", 950.0) == pytest.approx(0.1, rel=0.1)
    counted.forget(["steady", "unknown"])
    assert counted.rate("steady", 950.0) == 0.0


def windows_by_hand(times, now, *, window, keep):
    """Weights, counts and squares of the windows that are over, by their definition."""
    begin = times[0]
    found = [0.0, 0.0, 0.0]
    while begin + window <= now:
        count = sum(begin <= time < begin + window for time in times)
        found = [old * keep + new for old, new in zip(found, (1.0, count, count * count), strict=True)]
        begin += window
    return found


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(0, 60))
def test_quiet_windows_are_made_up_for(gaps, last):
    times, now = [], 0.0
    for gap in gaps:
        now += gap / 4
        times.append(now)
    counted = seen(times, window=2.0, memory=10.0)
    now += last / 4
    _, *found = counted._until("a", now)
    assert found == pytest.approx(windows_by_hand(times, now, window=2.0, keep=counted._keep))
