"""What is predicted, against arithmetic that can be done by hand; `test_prediction_simulated` has the simulator."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.picking.policies import POLICIES
from lorapick.core.retention import policies as retention
from lorapick.model.adapters import PinSpec
from lorapick.model.pods import Pod, PodLimits
from lorapick.plan.prediction.eviction import EVICTIONS
from lorapick.plan.prediction.latency import p95
from lorapick.plan.prediction.lru import hits
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.routing import KINDS
from lorapick.plan.prediction.values import Costs, Demand, FleetShape


def fleet(pods, *, slots, policy="weighted"):
    limits = PodLimits(max_loras=slots)
    names = [f"pod-{number:02d}" for number in range(1, pods + 1)]
    return FleetShape(pods=tuple(Pod(name=name, address="127.0.0.1:1", limits=limits) for name in names), policy=policy)


def demand(rates, *, pinned=0):
    return [
        Demand(adapter=f"a-{place:03d}", rate=rate, pin=PinSpec(replicas=1) if place < pinned else None)
        for place, rate in enumerate(rates)
    ]


def test_every_policy_and_every_way_to_evict_is_known():
    assert list(KINDS.keys() ^ POLICIES.keys()) == []
    assert list(EVICTIONS.keys() ^ retention.EVICTIONS.keys()) == []


def test_equal_items_hit_with_the_share_that_fits():
    assert hits(np.full(50, 0.3), 8) == pytest.approx(np.full(50, 8 / 50))
    assert hits(np.full(50, 0.3), 8, shape=4.0) == pytest.approx(np.full(50, 8 / 50))


def test_what_fits_always_hits_and_what_nobody_wants_is_not_there():
    assert hits(np.array([3.0, 0.0, 1.0]), 2).tolist() == [1.0, 0.0, 1.0]
    assert hits(np.array([3.0, 1.0]), 0).tolist() == [0.0, 0.0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=40),
    st.integers(1, 39),
    st.sampled_from([1.0, 4.0, inf]),
)
def test_hits_fill_the_cache_and_follow_rates(rates, slots, shape):
    found = hits(np.array(rates), slots, shape=shape)
    assert found.sum() == pytest.approx(min(slots, len(rates)), rel=1e-6)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found[np.argsort(rates)]) >= -1e-12).all()


def test_round_robin_of_the_articles_fifty_tenants():
    """50 equal adapters, 8 slots per pod: 84 % of requests need a swap."""
    found = predict(fleet(12, slots=8, policy="round-robin"), demand([2000 / 60 / 50] * 50), costs=Costs(swap=0.0))
    assert found.load_ratio == pytest.approx(0.84)
    assert found.swap_rate == pytest.approx(0.84 * 2000 / 60 / 12)
    assert found.residency == pytest.approx(8 / found.swap_rate)


@pytest.mark.parametrize("policy", POLICIES)
def test_who_all_fit_never_miss(policy):
    found = predict(fleet(3, slots=4, policy=policy), demand([2.0, 1.0, 0.5, 0.0]))
    assert (found.hit_ratio, found.swap_rate, found.residency, found.active) == (1.0, 0.0, None, 3)
    assert found.p95 == pytest.approx(Costs().latency_p95)


def test_followers_of_a_load_miss_without_loading():
    rates = [1.0] * 10
    at_once = predict(fleet(1, slots=5), demand(rates), costs=Costs(swap=0.0))
    slow = predict(fleet(1, slots=5), demand(rates), costs=Costs(swap=0.5))
    assert 1 - at_once.hit_ratio == pytest.approx(at_once.load_ratio)
    assert 1 - slow.hit_ratio > slow.load_ratio
    assert slow.load_ratio < at_once.load_ratio


def test_pins_hit_always_and_take_their_slots():
    rates = [1.0] * 20
    pinned = predict(fleet(2, slots=4), demand(rates, pinned=2), costs=Costs(swap=0.0))
    assert pinned.hit_ratio == pytest.approx((2 + 18 * 6 / 18) / 20)


def test_no_traffic_says_nothing_of_hits():
    found = predict(fleet(2, slots=4), demand([0.0]))
    assert (found.active, found.hit_ratio, found.load_ratio, found.swap_rate) == (0, None, None, 0.0)


def test_p95_grows_with_misses_until_there_is_none():
    costs = Costs(swap=0.35)
    found = [p95(missed, missed, costs=costs) for missed in (0.0, 0.04, 0.1, 0.5, 0.99, 1.0)]
    assert found[0] == pytest.approx(costs.latency_p95)
    assert found[:-1] == sorted(found[:-1])
    assert found[-1] is None


@pytest.mark.parametrize(
    ("pods", "rate", "costs", "words"),
    [
        (0, 1.0, Costs(), "no pods"),
        (1, -1.0, Costs(), "rate is 0 or more"),
        (1, inf, Costs(), "rate is 0 or more"),
        (1, 1.0, Costs(swap=-1.0), "give 0 or more"),
        (1, 1.0, Costs(latency=0.3), "P95 not below it"),
    ],
)
def test_what_cannot_be(pods, rate, costs, words):
    with pytest.raises(ValueError, match=words):
        predict(fleet(pods, slots=4), demand([rate]), costs=costs)


def test_an_unknown_policy_is_told():
    with pytest.raises(ValueError, match="'best' is unknown; use one of weighted"):
        predict(fleet(1, slots=4, policy="best"), demand([1.0]))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(list(POLICIES)),
    st.lists(st.floats(0.0, 50.0, allow_subnormal=False), min_size=1, max_size=30),
    st.integers(1, 6),
)
def test_predictions_are_shares(policy, rates, slots):
    found = predict(fleet(3, slots=slots, policy=policy), demand(rates))
    for share in (found.hit_ratio, found.load_ratio):
        assert share is None or -1e-9 <= share <= 1 + 1e-9
    assert found.worst_swap_rate >= found.swap_rate - 1e-9
