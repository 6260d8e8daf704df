"""What prefill elsewhere takes, and what is under way."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.admission.leg_times import (
    FIRST_PER_TOKEN,
    LATE,
    LEAST_LATE,
    LEAST_PER_TOKEN,
    LONGEST_PAUSE,
    MOST_PER_TOKEN,
    PATIENT,
    PAUSE,
    LegInFlight,
    LegTimes,
    splits,
)
from lorapick.model.disaggregation import Decide
from lorapick.model.pods import Role
from lorapick.model.tiers import Tier


def leg(row=0, tokens=1000, *, sent=0.0, ahead=0, tier=Tier.GPU_IDLE):
    return LegInFlight(row, tokens, sent, ahead, tier)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5000)), max_size=20))
def test_tokens_under_way_are_those_that_began_and_did_not_end(sizes):
    times = LegTimes()
    legs = [leg(row, tokens) for row, tokens in sizes]
    for number, each in enumerate(legs):
        times.begin(f"r{number}", each)
    for each in legs[::2]:
        times.end(each)
    left = legs[1::2]
    said = {row: sum(each.tokens for each in left if each.row == row) for row in range(4)}
    assert times.queued == {row: tokens for row, tokens in said.items() if tokens}


def test_a_leg_is_overdue_after_some_times_what_was_expected():
    times = LegTimes()
    assert times.next_due == inf
    times.begin("short", leg(tokens=10))
    times.begin("long", leg(tokens=50_000, ahead=50_000))
    assert times.next_due == LEAST_LATE
    assert times.overdue(LEAST_LATE) == [("short", 0.0)]
    assert times.next_due == pytest.approx(LATE * 100_000 * FIRST_PER_TOKEN)
    assert times.overdue(1e6) == [("long", 0.0)]
    assert times.next_due == inf


def test_what_was_expected_has_the_load_in_it():
    times = LegTimes()
    times.begin("cold", leg(tokens=1000)._replace(load=5.0))
    assert times.next_due == pytest.approx(LATE * (5.0 + 1000 * FIRST_PER_TOKEN))


def test_what_a_token_takes_is_learnt_both_ways():
    times = LegTimes()
    for _ in range(200):
        times.learn(leg(tokens=1000), now=0.02)
    assert times.per_token == pytest.approx(2e-5, rel=0.1)
    for _ in range(200):
        times.learn(leg(tokens=1000, ahead=1000), now=0.6)
    assert times.per_token == pytest.approx(3e-4, rel=0.1)


@pytest.mark.parametrize("tier", [Tier.DISK, Tier.CPU, Tier.LOADING])
def test_legs_that_waited_for_a_load_teach_nothing(tier):
    times = LegTimes()
    times.learn(leg(tier=tier), now=9.0)
    assert times.per_token == FIRST_PER_TOKEN


def test_a_leg_without_tokens_teaches_nothing():
    times = LegTimes()
    times.learn(leg(tokens=0), now=9.0)
    assert times.per_token == FIRST_PER_TOKEN


def test_the_estimate_stays_where_it_can_come_back_from():
    times = LegTimes()
    for _ in range(20_000):
        times.learn(leg(tokens=1000), now=0.0)
    assert times.per_token == LEAST_PER_TOKEN
    for _ in range(20_000):
        times.learn(leg(tokens=1), now=1e6)
    assert times.per_token == MOST_PER_TOKEN


def test_who_fails_again_and_again_is_left_alone_for_longer_and_longer():
    times = LegTimes()
    for _ in range(PATIENT - 1):
        times.failed(1, sent=5.0, now=5.0)
    assert not times.paused(1, now=5.0)
    times.failed(1, sent=5.0, now=5.0)
    assert times.paused(1, now=5.0 + PAUSE / 2)
    assert not times.paused(1, now=5.0 + PAUSE)
    for pause in (2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_PAUSE, LONGEST_PAUSE):
        now = pause * 1000
        times.failed(1, sent=now, now=now)
        assert times.paused(1, now=now + pause - 0.1)
        assert not times.paused(1, now=now + pause)
    times.worked(1)
    times.failed(1, sent=99e3, now=99e3)
    assert not times.paused(1, now=99e3)


def test_many_that_fail_at_once_are_one_failure():
    times = LegTimes()
    for _ in range(500):
        times.failed(1, sent=4.9, now=5.0)
    assert times.paused(1, now=5.0 + PAUSE / 2)
    assert not times.paused(1, now=5.0 + PAUSE)


def test_after_a_pause_one_is_sent_and_tells_whether_the_pod_works_again():
    times = LegTimes()
    for _ in range(PATIENT):
        times.failed(2, sent=5.0, now=5.0)
    assert not times.paused(2, now=10.0)
    times.begin("r", leg(row=2, sent=10.0))
    assert times.paused(2, now=10.0) and times.paused_rows(now=10.0) == [2]
    times.failed(2, sent=10.0, now=40.0)
    assert times.paused(2, now=41.9) and not times.paused(2, now=42.0)
    times.begin("r", leg(row=2, sent=50.0))
    assert not times.paused(2, now=50.0 + LONGEST_PAUSE)  # nobody ever said how that one ended
    times.worked(2)
    assert not times.paused(2, now=50.0)


def test_a_pod_that_goes_takes_its_tokens_along():
    times = LegTimes()
    there = leg(row=2)
    times.begin("r", there)
    times.gone(2)
    times.end(there)
    assert times.queued == {}


def test_a_new_pod_inherits_no_pause():
    times = LegTimes()
    for _ in range(PATIENT):
        times.failed(2, sent=5.0, now=5.0)
    times.gone(2)
    assert not times.paused(2, now=5.0)


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ([], False),
        ([Role.BOTH, Role.BOTH], False),
        ([Role.DECODE], False),
        ([Role.BOTH, Role.DECODE], True),
        ([Role.PREFILL, Role.DECODE], True),
        ([Role.PREFILL, Role.BOTH], True),
    ],
)
def test_which_fleets_split(roles, said):
    assert splits(roles, decide=Decide.TOKENS) is said
    assert not splits(roles, decide=Decide.NEVER)
