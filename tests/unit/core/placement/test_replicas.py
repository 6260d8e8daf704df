import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.placement.replicas import ReplicaRules, Replicas, wanted

RULES = ReplicaRules(target=8.0, z=2.0, grow_after=2.0, shrink_after=60.0, margin=0.25, idle_below=0.01)


def asked(replicas, rate, now, *, service=1.0, pods=20, adapter="a"):
    return replicas.want(adapter, rate=rate, service=service, pods=pods, now=now)


# -- the number at one moment


@pytest.mark.parametrize(
    ("load", "burst", "count"),
    [
        (0.0, 1.0, 1),
        (4.0, 1.0, 1),  # 4 + 2 × 2 = 8
        (4.1, 1.0, 2),
        (4.0, 9.0, 2),  # 4 + 2 × 6 = 16
        (16.0, 1.0, 3),  # 16 + 8 = 24
        (16.0, 0.0, 2),
    ],
)
def test_room_for_the_mean_and_two_deviations(load, burst, count):
    assert wanted(load, burst=burst, rules=RULES) == count


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 50))
def test_more_load_never_wants_less(one, other, burst):
    low, high = sorted([one, other])
    assert 1 <= wanted(low, burst=burst) <= wanted(high, burst=burst)


# -- with memory


def test_it_grows_when_more_was_wanted_for_a_moment():
    replicas = Replicas(RULES)
    assert asked(replicas, 4.0, 0.0) == 1
    assert [asked(replicas, 16.0, now) for now in (1.0, 2.0, 3.0)] == [1, 1, 3]


def test_a_peak_shorter_than_that_changes_nothing():
    replicas = Replicas(RULES)
    assert [asked(replicas, rate, now) for now, rate in enumerate([4.0, 16.0, 4.0, 16.0, 4.0, 16.0])] == [1] * 6


def test_it_grows_to_what_was_wanted_all_that_time():
    replicas = Replicas(RULES)
    asked(replicas, 4.0, 0.0)
    assert [asked(replicas, rate, now) for now, rate in ((1.0, 16.0), (2.0, 90.0), (3.0, 90.0))] == [1, 1, 3]
    assert asked(replicas, 90.0, 6.0) == 3
    assert asked(replicas, 90.0, 8.0) == 14


def test_it_shrinks_when_less_would_have_done_for_long():
    replicas = Replicas(RULES)
    assert asked(replicas, 16.0, 0.0) == 3
    counts = [asked(replicas, 2.0, float(now)) for now in range(1, 63)]
    assert counts == [3] * 60 + [1] * 2


def test_it_shrinks_to_the_most_that_was_wanted_meanwhile():
    replicas = Replicas(RULES)
    assert asked(replicas, 40.0, 0.0) == 7
    for now in range(1, 61):
        asked(replicas, 8.0 if now == 30 else 1.0, float(now))
    assert asked(replicas, 1.0, 61.0) == 3  # 8 × 1.25 + 2 × √10 = 16.3


def test_a_return_starts_the_wait_anew():
    replicas = Replicas(RULES)
    asked(replicas, 16.0, 0.0)
    asked(replicas, 1.0, 1.0)
    asked(replicas, 16.0, 50.0)
    assert asked(replicas, 1.0, 51.0) == asked(replicas, 1.0, 110.0) == 3
    assert asked(replicas, 1.0, 111.0) == 1


def test_who_is_hardly_asked_for_wants_none_and_comes_back_at_once():
    replicas = Replicas(RULES)
    assert asked(replicas, 0.001, 0.0) == 0
    assert asked(replicas, 2.0, 1.0) == 1
    assert asked(replicas, 0.0, 2.0) == 1
    assert asked(replicas, 0.0, 62.0) == 0


def test_no_more_than_there_are_pods_and_all_again_when_they_return():
    replicas = Replicas(RULES)
    assert asked(replicas, 40.0, 0.0, pods=2) == 2
    assert asked(replicas, 40.0, 1.0, pods=0) == 0
    assert asked(replicas, 40.0, 2.0) == 7


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_senseless_figures_count_as_nothing(bad):
    replicas = Replicas(RULES)
    assert replicas.want("a", rate=bad, service=1.0, burst=bad, pods=3, now=0.0) == 0
    assert replicas.want("b", rate=2.0, service=bad, burst=bad, pods=3, now=0.0) == 1


def test_memory_is_bounded_and_forgets():
    replicas = Replicas(RULES, most_adapters=3)
    for number in range(9):
        asked(replicas, 16.0, 0.0, adapter=f"adapter-{number}")
    assert len(replicas) == 3
    assert asked(replicas, 4.0, 1.0, adapter="adapter-8") == 3
    replicas.forget("adapter-8")
    replicas.forget("unknown")
    assert asked(replicas, 4.0, 2.0, adapter="adapter-8") == 1


# -- it never flaps


@given(
    st.floats(0.001, 300.0),
    st.lists(st.tuples(st.floats(1.0, 1.249), st.floats(0.1, 200.0)), min_size=1, max_size=80),
)
def test_noise_within_the_margin_never_takes_back_what_was_given(lowest, noise):
    replicas, now, counts = Replicas(RULES), 0.0, []
    for factor, pause in noise:
        now += pause
        counts.append(asked(replicas, lowest * factor, now, pods=10_000))
    assert counts == sorted(counts)
    assert counts[-1] <= wanted(lowest * 1.25, rules=RULES)


@given(st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.1, 10.0)), min_size=1, max_size=200))
def test_it_never_shrinks_sooner_than_it_may_nor_below_what_is_wanted(looks):
    replicas, now, grown, last = Replicas(RULES), 0.0, 0.0, 0
    for rate, pause in looks:
        now += pause
        count = asked(replicas, rate, now, pods=10_000)
        if count > last:
            grown = now
        if count < last:
            assert now - grown >= RULES.shrink_after
            assert rate < RULES.idle_below or count >= wanted(rate, rules=RULES)
        last = count
