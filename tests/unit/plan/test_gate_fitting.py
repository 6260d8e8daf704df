"""Times that make the prediction of today's fleet what it shows: swaps count once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.model.pods import Pod, PodLimits
from lorapick.plan.gate.fitting import LEAST_BASE, LEAST_SWAP, Told, times_of
from lorapick.plan.gate.values import Plan
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Costs, Demand, FleetShape


def plan(adapters=40, *, rate=4.0, slots=4):
    """The article's Thursday, or something like it."""
    pods = tuple(Pod(name=f"p{n}", address="127.0.0.1:1", limits=PodLimits(max_loras=slots)) for n in range(8))
    weights = [1.0 / (place + 1) for place in range(adapters)]
    demand = tuple(
        Demand(adapter=f"a{place}", rate=rate * weight / sum(weights)) for place, weight in enumerate(weights)
    )
    return Plan(fleet=FleetShape(pods=pods, policy="weighted"), demand=demand)


def test_without_a_today_times_are_as_told():
    assert times_of(Told(), None).costs == Costs()
    assert times_of(Told(), Plan(fleet=plan().fleet, demand=())).costs == Costs()
    told = times_of(Told(p95=1.0), None)
    assert (told.costs.latency_p95, told.costs.latency, told.today) == (1.0, 0.5, None)


def test_a_fleet_without_swaps_shows_what_its_requests_take():
    times = times_of(Told(p95=0.3), plan(slots=8))
    assert (times.costs.latency_p95, times.costs.swap) == (pytest.approx(0.3), Costs().swap)


def test_swaps_of_today_are_taken_out_of_p95():
    times = times_of(Told(p95=1.0), plan())
    assert LEAST_BASE < times.costs.latency_p95 < 0.95
    assert (times.costs.swap, times.reached) == (Costs().swap, pytest.approx(1.0, rel=0.01))


def test_a_measured_p95_that_is_too_low_for_loads_as_assumed_makes_them_shorter():
    times = times_of(Told(p95=0.22), plan())
    assert 0.1 < times.costs.swap < LEAST_SWAP
    assert times.reached == pytest.approx(0.22, rel=0.01) and times.contradiction is None


def test_an_assumed_p95_hides_no_swaps():
    """Loads are as long as the article's shortest then, and P95 comes out above what was assumed."""
    times = times_of(Told(), plan(adapters=60, rate=50.0))
    assert times.costs.swap == LEAST_SWAP
    assert times.reached is not None and times.reached > 0.22
    assert "and not 0.22 s as assumed" in times.contradiction


def test_what_is_given_stays():
    times = times_of(Told(p95=0.22, swap=0.1), plan())
    assert times.costs.swap == 0.1 and times.reached == pytest.approx(0.22, rel=0.01)
    times = times_of(Told(p95=0.3, median=0.12), plan())
    assert times.costs.latency == 0.12 and times.reached == pytest.approx(0.3, rel=0.01)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Told(p95=0.22, swap=0.35), "--latency-p95 0.22: so many of today's requests wait for a load of 0.35 s"),
        (Told(p95=0.22, median=0.3), "the median is above 0 and the P95 not below it"),
        (Told(p95=-1.0), "the median is above 0"),
        (Told(swap=float("nan")), "give 0 or more"),
    ],
)
def test_what_contradicts_itself_is_refused(told, words):
    with pytest.raises(ValueError, match=words):
        times_of(told, plan())


@settings(max_examples=8, deadline=None)
@given(st.floats(0.05, 5.0), st.integers(20, 80), st.integers(2, 8))
def test_the_prediction_of_today_is_what_was_measured(p95, adapters, slots):
    today = plan(adapters, slots=slots)
    times = times_of(Told(p95=p95), today)
    assert predict(today.fleet, today.demand, costs=times.costs).p95 == pytest.approx(p95, rel=0.02)
