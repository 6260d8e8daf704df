"""Rates over time."""

import math
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.sim.workload.chance import chance
from lorapick.sim.workload.changes import Scale
from lorapick.sim.workload.processes import Diurnal, FlashCrowd, MarkovModulated, Profile, State
from lorapick.sim.workload.rates import Stretch, changed, stretches

CONSTANT = [Stretch(0.0, math.inf, 10.0)]


def first(process, until, clock=0.0):
    return list(changed(stretches(process, clock=clock, chance=chance(1, "states")), (), until=until))


def volume(found, start=0.0, end=math.inf):
    return sum(each.rate * max(min(each.end, end) - max(each.start, start), 0) for each in found)


def test_a_day_has_its_mean_its_ratio_and_its_peak():
    found = first(Diurnal(50.0, 4.0, peak=50_400.0), 86_400.0)
    assert volume(found) == pytest.approx(50 * 86_400)
    high, low = max(found, key=lambda each: each.rate), min(found, key=lambda each: each.rate)
    assert high.rate / low.rate == pytest.approx(4.0, rel=1e-4)
    assert high.start == pytest.approx(50_400, abs=60)
    assert low.start == pytest.approx(50_400 - 43_200, abs=60)


def test_the_clock_moves_the_day():
    high = max(first(Diurnal(50.0, 4.0, peak=50_400.0), 86_400.0, clock=36_000.0), key=lambda each: each.rate)
    assert high.start == pytest.approx(14_400, abs=60)


def test_a_profile_goes_round():
    profile = Profile((1.0, 2.0, 3.0), step=100.0)
    assert first(profile, 250.0, clock=350.0) == [
        Stretch(0.0, 50.0, 1.0),
        Stretch(50.0, 150.0, 2.0),
        Stretch(150.0, 250.0, 3.0),
    ]


def test_a_crowd_comes_and_goes():
    found = first(FlashCrowd(10.0, 100.0, 5.0, 60.0), 10_000.0)
    assert volume(found, 0.0, 100.0) == pytest.approx(1000)
    # The integral of 10·4·e^(-t/60) over all times is 2400, over the first 60 s that times 1 - 1/e.
    assert volume(found, 100.0, 10_000.0) == pytest.approx(99_000 + 2400, rel=1e-6)
    assert volume(found, 100.0, 160.0) == pytest.approx(600 + 2400 * (1 - math.exp(-1)), rel=1e-6)
    assert max(each.rate for each in found) == pytest.approx(50, rel=0.02)


def test_states_last_as_long_as_they_should():
    process = MarkovModulated((State(1.0, 10.0), State(2.0, 20.0), State(3.0, 30.0)))
    found = list(islice(stretches(process, clock=0.0, chance=chance(5, "states")), 30_000))
    assert found[0].rate == 1.0
    assert all(before.end == after.start and before.rate != after.rate for before, after in pairwise(found))
    for state in process.states:
        lengths = [each.end - each.start for each in found if each.rate == state.rate]
        assert len(lengths) == pytest.approx(10_000, rel=0.04)
        assert sum(lengths) / len(lengths) == pytest.approx(state.dwell, rel=0.05)


def test_a_step_of_the_rate():
    found = list(changed(CONSTANT, [Scale(60.0, 1.05)], until=100.0))
    assert found == [Stretch(0.0, 60.0, 10.0), Stretch(60.0, 100.0, 10.5)]


def test_a_ramp_of_the_rate():
    found = list(changed(CONSTANT, [Scale(60.0, 3.0, over=30.0)], until=200.0))
    assert volume(found, 0.0, 60.0) == pytest.approx(600)
    assert volume(found, 60.0, 90.0) == pytest.approx(30 * 20)
    assert volume(found, 60.0, 75.0) == pytest.approx(15 * 15)
    assert volume(found, 90.0, 200.0) == pytest.approx(110 * 30)


def test_changes_multiply():
    found = list(changed(CONSTANT, [Scale(10.0, 2.0), Scale(20.0, 0.5)], until=30.0))
    assert [each.rate for each in found] == [10.0, 20.0, 10.0]


def test_the_end_for_ever_ends_the_stream():
    endless = stretches(Diurnal(50.0, 4.0), clock=0.0, chance=chance(1, "states"))
    found = list(changed(endless, [Scale(600.0, 0.0, over=60.0)]))
    assert found[-1].end == pytest.approx(660.0)
    assert list(changed([Stretch(0.0, 10.0, 1.0)], [Scale(0.0, 0.0)])) == []


SCALES = st.lists(st.builds(Scale, st.floats(0, 50), st.just(0.0) | st.floats(0.01, 5), st.floats(0, 50)), max_size=3)


@given(SCALES, st.floats(1, 100), st.lists(st.floats(0.5, 30), min_size=1, max_size=5))
def test_stretches_stay_in_order_and_cover_the_same_time(scales, until, lengths):
    edges = [0.0]
    for length in lengths:
        edges.append(edges[-1] + length)
    plain = [Stretch(start, end, 2.0) for start, end in pairwise(edges)]
    found = list(changed(plain, scales, until=until))
    assert all(each.start < each.end and each.rate >= 0 for each in found)
    assert all(before.end == after.start for before, after in pairwise(found))
    if all(scale.factor for scale in scales):
        assert (found[0].start, found[-1].end) == (0.0, min(until, edges[-1]))
