"""The parts of the prediction: ways to evict, homes, crowds, what is known of errors."""

from math import inf

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lorapick.core.picking.chwbl import clockwise
from lorapick.core.picking.rendezvous import by_weight
from lorapick.model.pods import Pod, PodLimits
from lorapick.plan.prediction.accuracy import known_error
from lorapick.plan.prediction.eviction import Eviction, Memory, held
from lorapick.plan.prediction.full import crowds, full_chances
from lorapick.plan.prediction.homes import orders, parts
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Costs, Demand, FleetShape


def pods(count, *, slots=4, eviction="lru"):
    limits = PodLimits(max_loras=slots)
    return tuple(
        Pod(name=f"pod-{number}", address="127.0.0.1:1", limits=limits, eviction=eviction) for number in range(count)
    )


def demand(rates):
    return [Demand(adapter=f"a-{place:03d}", rate=rate) for place, rate in enumerate(rates)]


def held_in_one(rates, slots, **behaviour):
    found = held(np.array([rates]), np.array([float(slots)]), memory=Memory(**behaviour))
    return found.there[0], found.coming[0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(1e-3, 0.25), min_size=2, max_size=30),
    st.integers(1, 29),
    st.sampled_from(list(Eviction)),
    st.sampled_from([2.0, inf]),
    st.sampled_from([0.0, 0.1]),
)
def test_slots_are_full_of_what_is_there_and_what_is_coming(rates, slots, eviction, shape, swap):
    # Beyond it nothing is there but what is in use or coming; where counts decide, that is so in the last slot.
    assume(sum(rates) * (swap + 0.02) < 0.9)
    there, coming = held_in_one(rates, slots, eviction=eviction, shape=shape, swap=swap, used=0.01)
    assert ((there >= 0) & (coming >= 0) & (there + coming <= 1 + 1e-9)).all()
    assert there.sum() + coming.sum() == pytest.approx(min(slots, len(rates)), rel=1e-4)


def test_in_turn_everybody_leaves_after_the_same_time():
    """With rates 3 and 1 and one slot, whoever was asked for last is there."""
    there, _ = held_in_one([3.0, 1.0], 1, eviction=Eviction.TURN)
    assert there / (1 - there) == pytest.approx(np.array([1, 1 / 3]) * there[0] / (1 - there[0]))
    by_recency, _ = held_in_one([3.0, 1.0], 1)
    assert there[0] < by_recency[0]


def test_counts_keep_the_most_popular_and_others_pass_through_the_last_slot():
    there, _ = held_in_one([1.0, 5.0, 1.0, 4.0, 1.0], 3, eviction=Eviction.COUNT)
    assert there == pytest.approx([1 / 3, 1, 1 / 3, 1, 1 / 3])


def test_nothing_is_held_without_slots():
    for eviction in Eviction:
        there, coming = held_in_one([3.0, 1.0], 0, eviction=eviction, swap=0.1)
        assert (there.tolist(), coming.tolist()) == ([0.0, 0.0], [0.0, 0.0])


def test_a_slot_that_loads_answers_nobody():
    """16 equal adapters, 6 slots: of those, loads take loads per second × their length."""
    found = predict(
        FleetShape(pods=pods(2, slots=6), policy="random"), demand([6 / 16] * 16), costs=Costs(swap=0.1, drains=False)
    )
    assert found.hit_ratio == pytest.approx((6 - found.swap_rate * 0.1) / 16, rel=1e-6)


@pytest.mark.parametrize(("policy", "order"), [("rendezvous", by_weight), ("chwbl", clockwise)])
@settings(max_examples=20, deadline=None)
@given(members=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=9, unique=True))
def test_orders_are_the_pickers(policy, order, members):
    names = ("a", "legal-v2", "ü")
    found = orders(policy, tuple(members), names=names)
    assert found.tolist() == [np.argsort(np.frombuffer(order(name, tuple(members)))).tolist() for name in names]


@pytest.mark.parametrize("policy", ["rendezvous", "chwbl"])
@pytest.mark.parametrize("latency", [1e-9, 0.2, 30.0, 3000.0])
def test_parts_are_shares_and_idle_fleets_stay_at_home(policy, latency):
    members, names = tuple(f"pod-{number}" for number in range(6)), tuple(f"a-{number}" for number in range(20))
    found = parts(policy, members, names=names, rates=np.linspace(0.1, 4.0, 20), latency=latency)
    assert found.sum(axis=0) == pytest.approx(np.ones(20), abs=1e-4)
    assert found.min() >= 0
    if latency < 1e-6:
        assert found.max(axis=0) == pytest.approx(np.ones(20), abs=1e-3)


@pytest.mark.parametrize(("count", "mean"), [(1, 0.0), (2, 1.2), (8, 3.4), (64, 60.0)])
def test_crowds_fill_the_share_of_pods_that_they_say(count, mean):
    found = crowds(count, mean)
    assert found.chances.sum() == pytest.approx(1.0)
    assert ((found.shares >= 0) & (found.shares <= 1)).all()
    full = full_chances(found, np.linspace(1.0, 2.0, count))
    assert full.mean(axis=1) == pytest.approx(found.shares, abs=1e-5)
    assert (np.diff(full, axis=1) >= -1e-9).all()


def test_who_evicts_by_counts_hits_more_and_in_turn_less_than_by_recency():
    rates = [1 / (place + 1) for place in range(60)]
    hits = [
        predict(FleetShape(pods=pods(4, eviction=eviction), policy="cost"), demand(rates)).hit_ratio
        for eviction in ("fifo", "lru", "window")
    ]
    assert hits == sorted(hits)


def test_pods_that_share_everything_must_evict_alike():
    mixed = (*pods(1), *pods(1, eviction="fifo"))
    with pytest.raises(ValueError, match="pods evict by lru, fifo, and cost sends requests to any of them"):
        predict(FleetShape(pods=mixed, policy="cost"), demand([1.0]))
    alone = predict(FleetShape(pods=mixed, policy="random"), demand([1.0] * 20), costs=Costs(swap=0.0))
    assert alone.hit_ratio == pytest.approx(4 / 20)
    with pytest.raises(ValueError, match="pod-0 evicts by 'best', which is unknown; use one of lru"):
        predict(FleetShape(pods=pods(1, eviction="best"), policy="cost"), demand([1.0]))


@pytest.mark.parametrize(
    ("policy", "fleet", "points", "words"),
    [
        ("cost", pods(4), 2.0, None),
        ("cost", pods(4, slots=2), 4.0, "chooses which adapter leaves"),
        ("chwbl", pods(2), 5.0, "half of the fleet"),
        ("gie-lora", pods(4), 3.0, "leaves some pods unused"),
        ("weighted", pods(4, eviction="lfu"), 2.5, "know only their own"),
        ("weighted", pods(4, eviction="cost"), 3.5, "evict by cost"),
        ("random", pods(4, eviction="fifo"), 3.0, "not held against simulated fleets"),
    ],
)
def test_the_prediction_says_what_it_may_be_off(policy, fleet, points, words):
    shape = FleetShape(pods=fleet, policy=policy)
    error, told = known_error(shape), predict(shape, demand([1.0] * 30))
    assert (told.error_points, told.note) == (points, error.note) == (error.points, error.note)
    assert words is None if error.note is None else words in error.note
