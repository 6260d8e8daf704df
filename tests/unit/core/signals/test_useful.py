"""Useful time of pods, from requests and loads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.signals.useful import REMEMBERED, Answers, UsefulTime
from lorapick.model.signals import RATE_WINDOW, Change
from lorapick.model.tiers import Tier

POD = "pod-0"
CPU_LOAD = 0.1
"""The default of `load_times.cpu`."""


def load(t: float, adapter: str = "a", *, waited_for: bool = True) -> Change:
    """A load from host memory that begins."""
    return Change(t, POD, adapter, Tier.CPU, Tier.LOADING, 0.0, Tier.CPU, waited_for)


def over(t: float, adapter: str = "a", *, after: Tier = Tier.GPU_IDLE, restart: bool = False) -> Change:
    """It is over."""
    return Change(t, POD, adapter, Tier.LOADING, after, 0.0, Tier.CPU, restart=restart)


def taught_to_drain(useful: UsefulTime) -> float:
    """Loads during which nobody is overtaken, until the pod is known to drain; returns the time after."""
    now = 0.0
    for _ in range(100):
        for _ in range(2):
            useful.dispatched(POD, now)
        useful.dispatched(POD, now + 1)
        useful.changed(load(now + 1))
        for sent in (now, now, now + 1):
            useful.ended(POD, now + 2, sent=sent)
        useful.changed(over(now + 2))
        now += 3
    return now


def test_a_pod_that_never_loads_is_useful_while_it_is_busy() -> None:
    useful = UsefulTime()
    useful.dispatched(POD, 10.0)
    useful.ended(POD, 14.0, sent=10.0)
    assert useful.totals(20.0) == {POD: (4.0, 4.0)}
    assert useful.share(POD, 20.0) == 1.0
    assert useful.fleet(20.0) == 1.0


def test_a_pod_that_was_idle_or_is_unknown_has_no_share() -> None:
    useful = UsefulTime()
    assert useful.share(POD, 5.0) is None
    assert useful.fleet(5.0) is None
    useful.dispatched(POD, 10.0)
    useful.ended(POD, 14.0, sent=10.0)
    assert useful.share(POD, 14.0 + 2 * RATE_WINDOW) is None


def test_loads_stall_one_after_another() -> None:
    useful = UsefulTime()
    for name in ("a", "b"):
        useful.dispatched(POD, 0.0)
        useful.changed(load(0.0, name))
    useful.ended(POD, 1.0, sent=0.0)
    useful.ended(POD, 1.0, sent=0.0)
    busy, good = useful.totals(1.0)[POD]
    assert busy == pytest.approx(1.0)
    assert good == pytest.approx(1.0 - 2 * CPU_LOAD)


def test_a_load_that_nobody_waits_for_keeps_a_pod_busy() -> None:
    useful = UsefulTime()
    useful.changed(load(0.0, waited_for=False))
    busy, good = useful.totals(5.0)[POD]
    assert (busy, good) == (pytest.approx(CPU_LOAD), 0.0)


def test_only_the_last_minute_counts_for_the_share() -> None:
    useful = UsefulTime()
    useful.dispatched(POD, 0.0)
    useful.changed(load(0.0))
    useful.ended(POD, 1.0, sent=0.0)
    for second in range(2, 100):
        useful.dispatched(POD, second)
        useful.ended(POD, second + 0.5, sent=second)
    assert useful.share(POD, 30.0 + RATE_WINDOW + 10.0) == pytest.approx(1.0)


def test_a_pod_is_learnt_to_drain_and_then_loses_the_room_that_empties() -> None:
    useful = UsefulTime()
    start = taught_to_drain(useful)
    before = useful.totals(start)[POD]
    for _ in range(2):
        useful.dispatched(POD, start)
    useful.dispatched(POD, start + 1)
    useful.changed(load(start + 1))
    useful.ended(POD, start + 2, sent=start)  # half of the room is empty from now on
    useful.ended(POD, start + 4, sent=start)  # now the load comes
    useful.ended(POD, start + 5, sent=start + 1)
    after = useful.totals(start + 5)[POD]
    assert after[0] - before[0] == pytest.approx(5.0)
    assert after[1] - before[1] == pytest.approx(1.0 + 1.0 + 2.0 * 0.5 + (1.0 - CPU_LOAD))


def test_a_pod_whose_requests_overtake_is_taken_to_drain_no_longer() -> None:
    useful = UsefulTime()
    now = taught_to_drain(useful)
    for _ in range(10):
        for _ in range(2):
            useful.dispatched(POD, now)
        useful.dispatched(POD, now + 1)
        useful.changed(load(now + 1))
        for sent in (now + 1, now, now):
            useful.ended(POD, now + 2, sent=sent)
        now += 3
    before = useful.totals(now)[POD]
    useful.dispatched(POD, now)
    useful.dispatched(POD, now)
    useful.dispatched(POD, now + 1)
    useful.changed(load(now + 1))
    useful.ended(POD, now + 2, sent=now)
    after = useful.totals(now + 3)[POD]
    assert after[1] - before[1] == pytest.approx(3.0 - CPU_LOAD)


def test_a_restart_ends_loads() -> None:
    useful = UsefulTime()
    useful.dispatched(POD, 0.0)
    useful.changed(load(0.0))
    useful.changed(over(0.0, after=Tier.DISK, restart=True))
    useful.ended(POD, 1.0, sent=0.0)
    assert useful.totals(1.0)[POD] == (1.0, 1.0)


def test_a_pod_that_is_gone_is_forgotten() -> None:
    useful = UsefulTime()
    useful.dispatched(POD, 0.0)
    useful.gone(POD)
    useful.ended(POD, 1.0, sent=0.0)
    assert useful.totals(1.0) == {}


Steps = st.lists(st.tuples(st.sampled_from("dleo"), st.floats(0.0, 2.0)), max_size=200)


@given(steps=Steps, drains=st.booleans())
def test_useful_time_is_part_of_busy_time_and_looking_changes_nothing(
    steps: list[tuple[str, float]], drains: bool
) -> None:
    looked, alone = UsefulTime(), UsefulTime()
    now = 0.0
    for each in (looked, alone):
        now = taught_to_drain(each) if drains else 0.0
    sent: list[float] = []
    last = looked.totals(now).get(POD, (0.0, 0.0))
    for kind, seconds in steps:
        now += seconds
        for each in (looked, alone):
            if kind in "dl":
                each.dispatched(POD, now)
            if kind == "l":
                each.changed(load(now))
            if kind == "o":
                each.changed(over(now, after=Tier.CPU))
            if kind == "e" and sent:
                each.ended(POD, now, sent=sent[0])
        if kind in "dl":
            sent.append(now)
        if kind == "e" and sent:
            sent.pop(0)
        looked.share(POD, now + 30.0)
        busy, good = looked.totals(now).get(POD, (0.0, 0.0))
        assert last[0] - 1e-9 <= busy <= last[0] + seconds + 1e-6
        assert last[1] - 1e-9 <= good <= busy + 1e-9
        last = (busy, good)
    assert looked.totals(now) == alone.totals(now)


def test_a_load_takes_what_the_quickest_answers_say():
    answers = Answers()
    for seconds in (0.9, 0.5, 0.4, 0.3):
        answers.took(Tier.DISK, seconds)
    assert answers.load(Tier.DISK) is None, "nobody was served without a load"
    for seconds in (0.35, 0.3, 0.2):
        answers.took(None, seconds)
    assert abs(answers.load(Tier.DISK) - (0.5 - 0.35)) < 1e-9
    for _ in range(REMEMBERED):
        answers.took(Tier.DISK, 0.8)
    assert abs(answers.load(Tier.DISK) - (0.8 - 0.35)) < 1e-9, "what is long ago counts no longer"
    assert answers.load(Tier.CPU) is None


def test_an_empty_pod_is_not_busy_however_many_loads_it_was_taken_to_owe():
    useful = UsefulTime()
    for number in range(20):
        useful.dispatched("a", 0.1 * number)
        useful.changed(Change(0.1 * number, "a", f"x{number}", Tier.DISK, Tier.LOADING, 0.0, Tier.DISK, True))
    for number in range(20):
        useful.ended("a", 3.0, sent=0.1 * number)
    busy, inference = useful.totals(100.0)["a"]
    assert (busy, inference) == (3.0, 0.0)
    assert useful.fleet(100.0) is None


def test_nothing_stalls_once_no_load_is_believed_to_be_under_way():
    useful = UsefulTime()
    useful.dispatched("a", 0.0)
    useful.changed(Change(0.0, "a", "x", Tier.DISK, Tier.LOADING, 0.0, Tier.DISK, True))
    useful.changed(Change(0.2, "a", "x", Tier.LOADING, Tier.GPU_IDLE, 0.0, Tier.DISK))
    busy, inference = useful.totals(1.0)["a"]
    assert abs(busy - 1.0) < 1e-9 and abs(inference - 0.8) < 1e-9
