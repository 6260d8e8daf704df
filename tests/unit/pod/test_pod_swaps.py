"""Phases of one load, against the figures of [R1.3]."""

import pytest
from pod_helpers import MB, MS, ask, pod, rest, warm

from lorapick.model.tiers import Tier
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.swaps import Load, deallocation_seconds, transfer_seconds
from lorapick.pod.values import AdapterSpec, SwapCosts, SwapEnded

COSTS = SwapCosts()


@pytest.mark.parametrize(
    ("tier", "size", "milliseconds"),
    [
        (Tier.CPU, 50 * MB, 3),
        (Tier.CPU, 200 * MB, 12),
        (Tier.DISK, 50 * MB, 10 + 3),  # read, then through host memory
        (Tier.DISK, 200 * MB, 40 + 12),
    ],
)
def test_transfer_takes_what_the_article_observed(tier, size, milliseconds):
    assert transfer_seconds(COSTS, tier_from=tier, size=size) == pytest.approx(milliseconds * MS, rel=0.005)


def test_deallocation_only_when_a_slot_must_be_freed_and_longer_when_sizes_differ():
    assert deallocation_seconds(COSTS, leaving=None, arriving=50 * MB) == 0
    assert deallocation_seconds(COSTS, leaving=50 * MB, arriving=50 * MB) == 5 * MS
    assert deallocation_seconds(COSTS, leaving=200 * MB, arriving=50 * MB) == 10 * MS


def planned(*, victim=None, fails=False):
    load = Load(AdapterCopy(AdapterSpec(name="a", size=50 * MB), 1), Tier.CPU, start=1.0, waited=True)
    load.plan(SwapCosts(cpu_bandwidth=50 * MB / (3 * MS)), victim=victim, fails=fails)
    return load


def test_a_load_is_the_sum_of_its_phases():
    victim = AdapterCopy(AdapterSpec(name="b", size=200 * MB), 2)
    load = planned(victim=victim)
    assert load.end == pytest.approx(1 + (5 + 5 + 3 + 20 + 75) * MS)
    assert load.spent(load.end) == pytest.approx((10 * MS, 3 * MS, 20 * MS, 75 * MS))


def test_a_load_in_progress_has_spent_its_phases_in_order():
    load = planned()
    assert load.spent(1.0) == (0, 0, 0, 0)
    assert load.spent(1.002) == pytest.approx((0, 2 * MS, 0, 0))
    assert load.spent(1.030) == pytest.approx((0, 3 * MS, 20 * MS, 7 * MS))


def test_a_load_that_fails_ends_with_its_transfer():
    load = planned(fails=True)
    assert load.end == pytest.approx(1.003)
    assert load.spent(load.end) == pytest.approx((0, 3 * MS, 0, 0))


def test_the_event_and_the_statistics_carry_the_phases():
    engine = pod(slots=1)
    engine.submit(ask("r", "b"), warm(engine, "a"))
    events = rest(engine)
    (end,) = [event for event in events if isinstance(event, SwapEnded)]
    assert (end.tier_from, end.waited, end.drain) == (Tier.DISK, True, 0)
    phases = (end.deallocation, end.transfer, end.initialisation, end.warm_up)
    assert phases == pytest.approx((5 * MS, 13 * MS, 20 * MS, 75 * MS))
    time = engine.stats(events[-1].t).time
    # Two loads from disk, the first into a free slot.
    assert (time.deallocation, time.transfer) == pytest.approx((5 * MS, 26 * MS))
    assert (time.initialisation, time.warm_up) == pytest.approx((40 * MS, 150 * MS))
