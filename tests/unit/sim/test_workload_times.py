"""Times of arrivals."""

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.sim.workload.changes import Scale
from lorapick.sim.workload.processes import (
    Burst,
    Diurnal,
    FlashCrowd,
    Gamma,
    Hawkes,
    MarkovModulated,
    Poisson,
    Profile,
    State,
    Window,
    Windows,
)
from lorapick.sim.workload.times import Timing, times

MANY = 200_000


def collect(process, *, until=math.inf, count=MANY, seed=1, **more):
    timing = Timing(seed=seed, flow="f", until=until, **more)
    batches, total = [np.empty(0)], 0
    for batch in times(process, timing):
        batches.append(batch)
        total += len(batch)
        if total >= count and math.isinf(until):
            break
    found = np.concatenate(batches)
    return found[:count] if math.isinf(until) else found[found < until]


def cv(gaps):
    return gaps.std() / gaps.mean()


def test_poisson_gaps_are_exponential():
    gaps = np.diff(collect(Poisson(20.0)))
    assert gaps.mean() == pytest.approx(0.05, rel=0.01)
    assert cv(gaps) == pytest.approx(1.0, rel=0.01)
    ordered = np.sort(gaps)
    error = np.abs(1 - np.exp(-20 * ordered) - np.arange(len(gaps)) / len(gaps)).max()
    assert error < 1.95 / math.sqrt(len(gaps))  # Kolmogorov-Smirnov, 1 in 1000
    assert np.corrcoef(gaps[:-1], gaps[1:])[0, 1] == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("wanted", [0.0, 0.5, 1.0, 2.0, 8.0])
def test_gamma_gaps_have_their_cv(wanted):
    gaps = np.diff(collect(Gamma(5.0, wanted)))
    assert gaps.mean() == pytest.approx(0.2, rel=0.06)
    assert cv(gaps) == pytest.approx(wanted, rel=0.06, abs=1e-6)


def test_a_markov_modulated_process_has_its_rate_and_is_bursty():
    process = MarkovModulated((State(2.0, 3.0), State(50.0, 1.0)))
    found = collect(process)
    assert len(found) / found[-1] == pytest.approx((2 * 3 + 50 * 1) / 4, rel=0.05)
    counts = np.histogram(found, bins=int(found[-1] / 10))[0]
    assert counts.var() / counts.mean() > 20  # 1 for Poisson


def test_a_profile_fills_its_hours():
    found = collect(Profile((10.0, 0.0, 30.0)), until=3 * 3600.0 * 4)
    hours = np.histogram(found, bins=12, range=(0, 12 * 3600))[0]
    assert hours[::3] == pytest.approx(36_000, rel=0.03)
    assert hours[1::3].tolist() == [0, 0, 0, 0]
    assert hours[2::3] == pytest.approx(108_000, rel=0.02)


def test_a_day_rises_and_falls():
    found = collect(Diurnal(3.0, 3.0, peak=12 * 3600.0), until=86_400.0)
    hours = np.histogram(found, bins=24, range=(0, 86_400))[0]
    middles = (np.arange(24) + 0.5) * 3600
    expected = 3 * (1 + 0.5 * np.cos(2 * np.pi * (middles - 43_200) / 86_400)) * 3600
    assert hours == pytest.approx(expected, rel=0.05)


def test_a_cv_holds_while_the_rate_changes():
    found = collect(Profile((5.0, 50.0), cv=4.0), until=12 * 3600.0)
    for hour, rate in ((10, 5.0), (11, 50.0)):
        inside = found[(found >= hour * 3600) & (found < (hour + 1) * 3600)]
        assert cv(np.diff(inside)) == pytest.approx(4.0, rel=0.15), rate


def test_a_flash_crowd_comes_when_it_should():
    found = collect(FlashCrowd(20.0, 1000.0, 10.0, 60.0), until=2000.0)
    before, crowd = (found < 1000).sum(), ((found >= 1000) & (found < 1060)).sum()
    assert before == pytest.approx(20_000, rel=0.03)
    assert crowd == pytest.approx(1200 + 20 * 9 * 60 * (1 - math.exp(-1)), rel=0.05)


@pytest.mark.parametrize("branching", [0.0, 0.5, 0.8])
def test_a_hawkes_process_has_its_rate_and_its_dispersion(branching):
    found = collect(Hawkes(20.0, branching, 2.0), until=10_000.0)
    assert len(found) / 10_000 == pytest.approx(20, rel=0.05)
    counts = np.histogram(found, bins=100, range=(0, 10_000))[0]
    # In windows long against the crowd's life the dispersion is 1/(1 - branching)^2; 100 windows tell it to a half.
    assert counts.var() / counts.mean() == pytest.approx((1 - branching) ** -2, rel=0.5)
    # The crowd is there from the start.
    starts = [len(collect(Hawkes(20.0, branching, 2.0), until=20.0, seed=seed)) for seed in range(30)]
    assert np.mean(starts) == pytest.approx(400, rel=0.1)


def test_measured_windows_have_their_counts():
    windows = Windows((Window(0, 600, 1.0), Window(600, 1200, 0.0), Window(1800, 2400, 0.5005, 8.0)))
    found = collect(windows)
    counts = np.histogram(found, bins=4, range=(0, 2400))[0].tolist()
    assert counts[:3] == [600, 0, 0]
    assert counts[3] in (300, 301)
    numbers = [len(collect(Windows((Window(0, 10, 0.03),)), seed=seed)) for seed in range(2000)]
    assert {*numbers} == {0, 1}
    assert np.mean(numbers) == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("wanted", [0.0, 0.5, 1.0, 3.0])
def test_measured_windows_have_their_cv(wanted):
    gaps = np.diff(collect(Windows((Window(100, 700, 300.0, wanted),))))
    assert cv(gaps) == pytest.approx(wanted, rel=0.05, abs=1e-6)


def test_bursts_of_a_window_fall_anywhere_in_it():
    firsts = [collect(Windows((Window(0, 600, 0.05, 200.0),)), seed=seed)[0] for seed in range(500)]
    assert np.histogram(firsts, bins=4, range=(0, 600))[0] == pytest.approx(125, abs=45)
    everybody = collect(Windows((Window(0, 600, 1.0, 1000.0),)))
    assert len(everybody) == 600
    assert len({*everybody.tolist()}) < 60


def test_a_burst_is_exact():
    found = collect(Burst(100, at=50.0, over=2.0))
    assert len(found) == 100
    assert found.min() >= 50
    assert found.max() <= 52
    assert {*collect(Burst(5, at=3.0)).tolist()} == {3.0}
    assert len(collect(Burst(0, at=3.0))) == 0


def test_a_rate_changes_as_planned():
    found = collect(Poisson(100.0), until=300.0, changes=[Scale(100.0, 3.0, over=100.0)])
    parts = np.histogram(found, bins=3, range=(0, 300))[0]
    assert parts == pytest.approx([10_000, 20_000, 30_000], rel=0.04)
    crowd = collect(Hawkes(100.0, 0.5, 1.0), until=300.0, changes=[Scale(150.0, 2.0)])
    assert np.histogram(crowd, bins=2, range=(0, 300))[0] == pytest.approx([15_000, 30_000], rel=0.06)
    windows = collect(Windows((Window(0, 100, 10.0),)), changes=[Scale(50.0, 2.0)])
    assert np.histogram(windows, bins=2, range=(0, 100))[0].tolist() == [500, 1000]


def test_a_scale_holds_for_all_of_the_time():
    assert len(collect(Poisson(100.0), until=100.0, scale=0.1)) == pytest.approx(1000, rel=0.15)
    assert len(collect(Hawkes(100.0, 0.5, 1.0), until=100.0, scale=0.1)) == pytest.approx(1000, rel=0.25)


@pytest.mark.parametrize("process", [Poisson(0.0), Gamma(0.0, 0.0), Hawkes(0.0, 0.5, 1.0), Diurnal(0.0, 2.0)])
def test_no_rate_no_arrivals(process):
    assert len(collect(process, until=1e6)) == 0


def test_without_windows_there_is_nothing():
    assert len(collect(Windows(()))) == 0


def test_what_is_due_as_an_idle_time_begins_comes_at_its_end():
    assert collect(Profile((1.0, 0.0), step=3.0, cv=0.0), until=12.0).tolist() == [1, 2, 6, 7, 8]


rates = st.floats(0, 50)
cvs = st.sampled_from([0.0, 0.3, 1.0, 4.0, 1000.0])
PROCESSES = st.one_of(
    st.builds(Poisson, rates),
    st.builds(Gamma, rates, cvs),
    st.builds(lambda rate: MarkovModulated((State(rate + 0.1, 3.0), State(0.0, 5.0))), rates),
    st.builds(Diurnal, rates, st.floats(1, 9), period=st.floats(10, 1e5), cv=cvs),
    st.builds(lambda rate, cv: Profile((rate + 0.1, 0.0, 3.0), step=7.0, cv=cv), rates, cvs),
    st.builds(FlashCrowd, rates, st.floats(0, 50), st.floats(1, 9), st.floats(0.1, 50), cvs),
    st.builds(Hawkes, rates, st.floats(0, 0.9), st.floats(0.1, 9)),
    st.builds(lambda rate, cv: Windows((Window(3, 20, rate, cv), Window(20, 90, 1.0, cv))), rates, cvs),
    st.builds(Burst, st.integers(0, 300), st.floats(0, 99), st.floats(0, 99)),
)


@settings(max_examples=60)
@given(PROCESSES, st.floats(0.1, 100), st.floats(0, 86_400), st.integers())
def test_times_are_in_order_and_the_same_again(process, until, clock, seed):
    changes = [] if isinstance(process, Burst) else [Scale(until / 3, 0.5, over=until / 3)]
    timing = Timing(seed=seed, flow="f", until=until, clock=clock, changes=changes)
    batches = [batch.tolist() for batch in islice(times(process, timing), 8)]
    assert all(batches)
    found = [time for batch in batches for time in batch]
    assert found == sorted(found)
    assert all(0 <= time < math.inf for time in found)
    again = [time for batch in islice(times(process, timing), 8) for time in batch.tolist()]
    assert found == again
