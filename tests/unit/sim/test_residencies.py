"""Residencies add up to slots in use times time [R5.3]."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.sim.residencies import Residencies


def test_one_slot_by_hand():
    kept = Residencies()
    kept.loaded("a", "x", now=1.0)
    kept.evicted("a", "x", now=4.0)
    kept.loaded("a", "y", now=4.0)
    # x for 3 s, y for 6 s so far: 9 slot-seconds from two loads.
    assert (kept.slot_seconds(10.0), kept.total(10.0), kept.mean(10.0)) == (9.0, 9.0, 4.5)
    assert (kept.finished.count, kept.finished.total) == (1, 3.0)
    kept.check(10.0)


def test_a_second_copy_takes_the_place_of_the_first():
    kept = Residencies()
    kept.loaded("a", "x", now=0.0)
    kept.loaded("a", "x", now=5.0)
    assert (kept.slot_seconds(6.0), kept.finished.count) == (6.0, 1)
    kept.check(6.0)


def test_leaving_a_lower_level_is_nothing():
    kept = Residencies()
    kept.evicted("a", "x", now=1.0)
    assert (kept.total(2.0), kept.mean(2.0)) == (0.0, None)


def test_a_restart_ends_all_of_a_pod_and_nothing_else():
    kept = Residencies()
    for pod in ("a", "b"):
        kept.loaded(pod, "x", now=0.0)
        kept.loaded(pod, "y", now=0.0)
    kept.restarted("a", 2.0)
    assert (kept.finished.count, kept.slot_seconds(3.0)) == (2, 2 * 2.0 + 2 * 3.0)
    kept.check(3.0)


steps = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(["in", "out", "restart"]), st.floats(0, 5)
    ),
    max_size=40,
)


@given(steps)
def test_both_sums_agree_whatever_happens(happened):
    kept, now = Residencies(), 0.0
    for pod, adapter, what, wait in happened:
        now += wait
        if what == "in":
            kept.loaded(pod, adapter, now=now)
        elif what == "out":
            kept.evicted(pod, adapter, now=now)
        else:
            kept.restarted(pod, now)
        kept.check(now)
    assert kept.slot_seconds(now + 1) == pytest.approx(kept.total(now + 1))
