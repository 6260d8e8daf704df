"""Counting: what counts where, warm-up, and checks that find what is wrong."""

import pytest
from sim_helpers import ask

from lorapick.model.effects import Clear, Dispatch, Hold, Load, Raise, Reject, Touch
from lorapick.model.events import Ticked
from lorapick.model.picks import Pick
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Target
from lorapick.model.tiers import Tier
from lorapick.pod.values import (
    AdapterEvicted,
    FirstToken,
    RequestFailed,
    RequestFinished,
    RequestStarted,
    SwapEnded,
    SwapFailed,
    SwapStarted,
)
from lorapick.sim.bounds.yardstick import Yardstick
from lorapick.sim.tally import Tally


def swap(t, adapter="x", *, waited=True):
    return SwapStarted(t=t, adapter=adapter, tier_from=Tier.CPU, waited=waited)


def ended(t, adapter="x"):
    phases = {"drain": 0.1, "deallocation": 0.2, "transfer": 0.3, "initialisation": 0.4, "warm_up": 0.5}
    return SwapEnded(t=t, adapter=adapter, tier_from=Tier.CPU, waited=True, **phases)


def finished(t, name, *, waited=False):
    return RequestFinished(t=t, request_id=name, output_tokens=7, cached_tokens=0, waited_for_load=waited)


def test_a_request_counts_in_the_window_in_which_it_arrived():
    tally = Tally(start=0.0, window=10.0)
    tally.arrived(ask(9.0, "x", name="r"))
    tally.happened("a", RequestStarted(t=11.0, request_id="r", hit=False, cached_tokens=0))
    tally.happened("a", FirstToken(t=12.0, request_id="r"))
    tally.happened("a", finished(14.0, "r", waited=True))
    tally.ended("r", Outcome.SERVED, now=14.0)
    (window,) = tally.windows
    assert (window.arrivals, window.served, window.misses, window.waited, window.output_tokens) == (1, 1, 1, 1, 7)
    assert (window.ttft.total, window.latency.total) == (3.0, 5.0)


def test_what_came_in_the_warm_up_counts_nowhere():
    tally = Tally(start=5.0, window=10.0)
    tally.arrived(ask(4.0, "x", name="r"))
    tally.happened("a", swap(4.0))
    tally.happened("a", RequestStarted(t=6.0, request_id="r", hit=True, cached_tokens=0))
    tally.happened("a", FirstToken(t=6.0, request_id="r"))
    tally.happened("a", ended(4.5))
    tally.happened("a", finished(7.0, "r"))
    tally.ended("r", Outcome.SERVED, now=7.0)
    assert tally.windows == []
    assert (tally.loads, tally.swap_seconds) == ({}, {})
    # But what it loaded holds its slot.
    assert tally.residencies.total("a", 7.0) == 3.0
    assert (tally.early, tally.arrivals) == (1, 1)
    tally.check()


def test_loads_and_swaps_are_not_the_same():
    tally = Tally(start=0.0, window=10.0)
    tally.happened("a", swap(1.0, "x"))
    tally.happened("b", swap(11.0, "y", waited=False))
    tally.happened("b", ended(12.0, "y"))
    assert [(each.loads, dict(each.swaps)) for each in tally.windows] == [(1, {"a": 1}), (1, {})]
    assert (tally.loads, tally.swaps_from) == ({"a": 1, "b": 1}, {"cpu": 1})
    assert dict(tally.swap_seconds) == {
        "drain": 0.1,
        "deallocation": 0.2,
        "transfer": 0.3,
        "initialisation": 0.4,
        "warm_up": 0.5,
    }


def test_a_failed_load_gives_its_slot_back():
    tally = Tally(start=0.0, window=10.0)
    tally.happened("a", swap(1.0, "x"))
    tally.happened("a", SwapFailed(t=2.0, adapter="x", why="broken"))
    assert (tally.failed_loads, tally.residencies.total("a", 5.0)) == (1, 1.0)


def test_time_from_the_last_hit_to_the_eviction_is_kept():
    tally = Tally(start=0.0, window=10.0)
    tally.happened("a", swap(0.5))
    for t, hit in ((1.0, False), (2.0, True), (3.0, True)):
        tally.arrived(ask(t, "x", name=f"r{t}"))
        tally.happened("a", RequestStarted(t=t, request_id=f"r{t}", hit=hit, cached_tokens=0))
    tally.happened("a", AdapterEvicted(t=7.0, adapter="x", tier=Tier.CPU))
    tally.happened("a", AdapterEvicted(t=9.0, adapter="x", tier=Tier.DISK))
    assert (tally.hit_to_evict.count, tally.hit_to_evict.total) == (1, 4.0)


def test_the_base_model_is_neither_hit_nor_miss():
    yardstick = Yardstick(1)
    tally = Tally(start=0.0, window=10.0, yardstick=yardstick)
    for name, adapter in (("b", None), ("x", "x")):
        tally.arrived(ask(1.0, adapter, name=name))
        tally.happened("a", RequestStarted(t=1.0, request_id=name, hit=True, cached_tokens=0))
    assert (tally.windows[0].hits, tally.windows[0].misses) == (1, 0)
    assert (yardstick.served().requests, yardstick.arrivals().requests) == (1, 1)


@pytest.mark.parametrize("outcome", Outcome)
def test_outcomes_add_up_to_arrivals(outcome):
    tally = Tally(start=0.0, window=10.0)
    for name in ("r", "s"):
        tally.arrived(ask(1.0, "x", name=name))
    tally.happened("a", RequestFailed(t=1.0, request_id="r", why="whatever"))
    tally.ended("r", outcome, now=2.0)
    assert getattr(tally.windows[0], outcome.value) == 1
    assert tally.in_flight(0.0, 10.0) == 1
    tally.check()
    tally.windows[0].served += 1
    with pytest.raises(AssertionError, match="2 arrivals, 2 ended, 1 in flight"):
        tally.check()


def tell(tally, t, *effects):
    tally.applied(Ticked(t=t, id=1), effects)


def begins(alert):
    return Raise(cause=1, alert=alert, facts={})


def ends(alert):
    return Clear(cause=1, alert=alert, facts={})


def test_alerts_count_when_they_stood_after_the_warm_up():
    tally = Tally(start=5.0, window=10.0)
    for t in (1.0, 6.0, 7.0):
        tell(tally, t, begins("thrash"), ends("thrash"))
    assert tally.alerts(5.0, 99.0) == {"thrash": 2}
    assert tally.alerts(6.5, 99.0) == {"thrash": 1}
    tally = Tally(start=5.0, window=10.0)
    tell(tally, 1.0, begins("stays"), begins("goes"))
    tell(tally, 4.0, ends("goes"))
    tell(tally, 8.0, ends("stays"))
    assert tally.alerts(5.0, 99.0) == {"stays": 1}
    assert tally.alerts(8.0, 99.0) == {}


def pick(name, tier=None):
    return Pick(request_id=name, adapter="x", pod="a", score=1.0, tier=tier, fallbacks=(), policy="weighted", version=1)


def sent(name, tier):
    target = Target(pod="a", address="a:8000")
    return Dispatch(cause=1, request_id=name, target=target, fallbacks=(), pick=pick(name, tier))


def held(name, reason=Reason.HELD_FOR_SLOT):
    return Hold(cause=1, request_id=name, until=99.0, reason=reason, pick=pick(name))


def test_waits_at_the_picker_and_followers_of_loads_are_counted():
    tally = Tally(start=5.0, window=10.0)
    tally.arrived(ask(1.0, "x", name="early"))
    tell(tally, 1.0, held("early"))
    for name in ("load", "joins", "follows", "place", "refused"):
        tally.arrived(ask(6.0, "x", name=name))
    tell(tally, 6.0, sent("load", Tier.CPU), sent("joins", Tier.LOADING))
    tell(tally, 6.0, held("follows", Reason.HELD_FOR_LOAD), held("place"), held("refused"))
    tell(tally, 7.0, sent("early", Tier.LOADING), sent("follows", Tier.GPU_SERVING), held("place"))
    tell(tally, 9.0, sent("place", Tier.GPU_IDLE))
    tell(tally, 10.0, Reject(cause=1, request_id="refused", status=503, reason=Reason.DEADLINE, message="late"))
    (window,) = tally.windows
    assert (window.held, window.followed, tally.holds) == (3, 2, 5)
    assert (window.held_for.count, window.held_for.total) == (3, 1.0 + 3.0 + 4.0)


def test_who_waits_for_a_load_waits_at_a_pod_or_at_the_picker():
    tally = Tally(start=0.0, window=10.0)
    for name in ("at-pod", "at-picker", "both", "neither"):
        tally.arrived(ask(1.0, "x", name=name))
    for name in ("at-picker", "both"):
        tally.applied(Ticked(t=1.0, id=1), [held(name, Reason.HELD_FOR_LOAD)])
    for name in ("at-pod", "at-picker", "both", "neither"):
        tally.happened("a", finished(2.0, name, waited=name in ("at-pod", "both")))
    (window,) = tally.windows
    assert (window.waited, window.cold) == (2, 3)


def test_commands_count_by_what_they_are_for():
    tally = Tally(start=5.0, window=10.0)
    effects = [
        Load(cause=1, pod="a", adapters=("x", "y"), why="schedule"),
        Load(cause=1, pod="b", adapters=("x",), why="pin"),
        Touch(cause=1, pod="a", adapter="x"),
    ]
    for t in (4.0, 6.0):
        tally.applied(Ticked(t=t, id=1), effects)
    (window,) = tally.windows
    assert (window.commanded, window.touches) == ({"schedule": 2, "pin": 1}, 1)


def test_the_first_request_of_a_day_is_one_after_an_hour_of_quiet():
    tally = Tally(start=0.0, window=100_000.0)
    # Whatever was before the run, nobody knows: the first comes an hour after its begin at least.
    came = {
        "soon": ("y", 10.0),
        "first": ("x", 3600.0),
        "second": ("x", 3700.0),
        "again": ("x", 7300.0),
        "base": (None, 9e3),
    }
    for name, (adapter, t) in came.items():
        tally.arrived(ask(t, adapter, name=name))
        tally.happened("a", FirstToken(t=t + 1.0, request_id=name))
    (window,) = tally.windows
    assert (window.ttft.count, window.first_ttft.count) == (5, 2)


def test_parts_count_their_own():
    tally = Tally(start=5.0, window=10.0, parts={"popular": ["x", "y"], "others": ["z"]})
    for name, adapter, t in (("early", "x", 1.0), ("r1", "x", 6.0), ("r2", "y", 6.0), ("r3", "w", 6.0)):
        tally.arrived(ask(t, adapter, name=name))
        tally.happened("a", FirstToken(t=t + 1.0, request_id=name))
        tally.happened("a", finished(t + 2.0, name, waited=name == "r2"))
        tally.ended(name, Outcome.FAILED if name == "r1" else Outcome.SERVED, now=t + 2.0)
    popular, others = (tally.parts[name] for name in ("popular", "others"))
    assert (popular.arrivals, popular.served, popular.cold, popular.ttft.count) == (2, 1, 1, 2)
    assert popular.latency.total == 2.0
    assert (others.arrivals, others.served) == (0, 0)
