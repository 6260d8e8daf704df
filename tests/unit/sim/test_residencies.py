"""Residencies are those of the pods' slots [R5.3]."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.sim.residencies import Residencies


def test_one_slot_by_hand():
    kept = Residencies()
    kept.loaded("a", "x", now=1.0)
    kept.evicted("a", "x", now=4.0)
    kept.loaded("a", "y", now=4.0)
    # x for 3 s, y for 6 s so far.
    assert (kept.total("a", 10.0), kept.total("b", 10.0)) == (9.0, 0.0)
    assert (kept.finished.count, kept.finished.total) == (1, 3.0)
    kept.check("a", held=("y",), slot_seconds=9.0, now=10.0)


def test_what_the_pod_has_not_is_found():
    kept = Residencies()
    kept.loaded("a", "x", now=1.0)
    kept.check("a", held=("x",), slot_seconds=9.0, now=10.0)
    with pytest.raises(AssertionError, match=r"a: residencies are open of \['x'\] at 10\.0 s, its slots hold \[\]"):
        kept.check("a", held=(), slot_seconds=9.0, now=10.0)
    with pytest.raises(AssertionError, match=r"open of \['x'\] at 10\.0 s, its slots hold \['x', 'y'\]"):
        kept.check("a", held=("x", "y"), slot_seconds=9.0, now=10.0)
    with pytest.raises(AssertionError, match=r"a: residencies add up to 9\.0 s, slots in use to 8\.0 s"):
        kept.check("a", held=("x",), slot_seconds=8.0, now=10.0)
    with pytest.raises(AssertionError, match=r"b: residencies are open of \[\]"):
        kept.check("b", held=("x",), slot_seconds=0.0, now=10.0)


def test_copies_of_one_name_hold_a_slot_each():
    kept = Residencies()
    kept.loaded("a", "x", now=0.0)
    kept.loaded("a", "x", now=5.0)
    assert kept.open_on("a") == ["x", "x"]
    kept.evicted("a", "x", now=6.0)
    assert (kept.open_on("a"), kept.finished.total, kept.total("a", 6.0)) == (["x"], 6.0, 7.0)


def test_nothing_leaves_a_slot_that_it_did_not_hold():
    kept = Residencies()
    kept.loaded("b", "x", now=0.0)
    with pytest.raises(AssertionError, match=r"a: x left a slot at 1\.0 s that it did not hold"):
        kept.evicted("a", "x", now=1.0)


def test_a_restart_ends_all_of_a_pod_and_nothing_else():
    kept = Residencies()
    for pod in ("a", "b"):
        kept.loaded(pod, "x", now=0.0)
        kept.loaded(pod, "y", now=0.0)
    kept.restarted("a", 2.0)
    assert kept.finished.count == 2
    kept.check("a", held=(), slot_seconds=2 * 2.0, now=3.0)
    kept.check("b", held=("y", "x"), slot_seconds=2 * 3.0, now=3.0)


steps = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from(["in", "out", "restart"]), st.floats(0, 5)
    ),
    max_size=40,
)


@given(steps)
def test_sums_are_those_of_a_pod_that_counts_its_slots(happened):
    kept, now = Residencies(), 0.0
    slots, area = {"a": [], "b": []}, {"a": 0.0, "b": 0.0}
    for pod, adapter, what, wait in happened:
        for each, held in slots.items():
            area[each] += len(held) * wait
        now += wait
        if what == "in":
            kept.loaded(pod, adapter, now=now)
            slots[pod].append(adapter)
        elif what == "restart":
            kept.restarted(pod, now)
            slots[pod].clear()
        elif adapter in slots[pod]:
            kept.evicted(pod, adapter, now=now)
            slots[pod].remove(adapter)
        for each, held in slots.items():
            kept.check(each, held=held, slot_seconds=area[each], now=now)
