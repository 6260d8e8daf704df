"""Which arm a request is in, and what is counted of it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lorapick.core.arms import Arms, route_of
from lorapick.model.arms import Arm, Mode, ModeKind
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import DiscoverySettings, KubernetesSettings, Settings
from lorapick.model.tiers import Tier


def percent(share: float, *, route: str | None = None) -> Settings:
    return Settings(mode=Mode(kind=ModeKind.PERCENT, percent=share, route=route))


def arm(share: float, *, seed: int = 0, **fields) -> Arm:
    return Arms(percent(share), seed=seed).arm_of(Request(id=fields.pop("id", "r"), model="m", **fields))


@given(
    share=st.floats(0, 100), seed=st.integers(0, 2**32), key=st.text(min_size=1, max_size=20), ids=st.lists(st.text())
)
def test_all_requests_of_a_session_are_in_one_arm(share, seed, key, ids):
    assert len({arm(share, seed=seed, id=each, session=key) for each in ids}) <= 1
    assert len({arm(share, seed=seed, session=key, fairness_id=each) for each in ids}) <= 1


@given(shares=st.tuples(st.floats(0, 100), st.floats(0, 100)), seed=st.integers(0, 2**32), name=st.text())
def test_a_share_that_grows_takes_nobody_back(shares, seed, name):
    less, more = sorted(shares)
    if arm(less, seed=seed, id=name) is Arm.ENFORCED:
        assert arm(more, seed=seed, id=name) is Arm.ENFORCED


@pytest.mark.parametrize("tenant", [None, "all-of-them"])
@pytest.mark.parametrize("share", [1.0, 10.0, 50.0, 90.0])
def test_shares_are_within_what_chance_allows_however_few_tenants_there_are(share, tenant):
    arms = Arms(percent(share), seed=11)
    found = Counter(arms.arm_of(Request(id=f"r{n}", model="m", fairness_id=tenant)) for n in range(20_000))
    deviation = (20_000 * share / 100 * (1 - share / 100)) ** 0.5
    assert abs(found[Arm.ENFORCED] - 20_000 * share / 100) < 4 * deviation


def test_nothing_and_all():
    assert {arm(0.0, id=f"{n}") for n in range(50)} == {Arm.OBSERVED}
    assert {arm(100.0, id=f"{n}") for n in range(50)} == {Arm.ENFORCED}


def test_the_route_is_the_gateways_where_a_gateway_needs_no_pod():
    assert route_of(Settings()) == "gateway"
    pool = DiscoverySettings(kubernetes=KubernetesSettings(pool="p"))
    assert route_of(Settings(discovery=pool)) == "round-robin"
    assert route_of(replace(percent(5.0, route="gateway"), discovery=pool)) == "gateway"


def test_a_route_that_is_no_policy_changes_nothing():
    arms = Arms(percent(10.0, route="round-robin"), seed=0)
    with pytest.raises(ValueError, match=r"'nonsense' is unknown"):
        arms.configure(percent(20.0, route="nonsense"), now=1.0)
    assert (arms.mode.percent, arms.policy is not None) == (10.0, True)


def test_pods_are_told_nothing_while_anybody_is_observed():
    assert Arms(Settings(), seed=0).commands
    assert Arms(percent(100.0), seed=0).commands
    assert not Arms(percent(99.9), seed=0).commands
    assert not Arms(Settings(mode=Mode(kind=ModeKind.OBSERVE)), seed=0).commands


def test_nothing_is_drawn_until_there_is_a_trial_and_then_for_good():
    arms = Arms(Settings(), seed=0)
    assert not arms.on
    arms.configure(Settings(mode=Mode(kind=ModeKind.OBSERVE)), now=1.0)
    assert arms.on
    arms.configure(Settings(), now=2.0)
    assert arms.on


def test_how_requests_leave_is_counted_by_arm():
    arms = Arms(percent(100.0), seed=0)
    trial = arms.begin(Request(id="r", model="m"))
    arms.left(trial, Outcome.SERVED, status=200, seconds=0.5)
    arms.placed(trial, Tier.DISK, pod="p", took=0.7, served=True)
    arms.left(trial, Outcome.FAILED, status=404, seconds=0.1)
    arms.left(trial, Outcome.FAILED, status=None, seconds=0.1)
    arms.placed(trial, None, pod=None, took=0.0, served=False)
    arms.refused(trial, 429)
    arms.refused(trial, 404)
    tally = arms.tallies[Arm.ENFORCED]
    assert (tally.ended, tally.errors, tally.loads, tally.swap_seconds) == (5, 2, 1, 0.7)
    assert (tally.hits, tally.adapter_requests) == (0, 1)
    assert tally.by_tier == {"disk": 1, "unknown": 1}
