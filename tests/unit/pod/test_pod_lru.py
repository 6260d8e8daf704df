"""The two memory levels."""

import pytest

from lorapick.model.tiers import Tier
from lorapick.pod.lru import AdapterCopy, Levels
from lorapick.pod.values import AdapterSpec


def copies(names):
    return [AdapterCopy(AdapterSpec(name=name), index) for index, name in enumerate(names)]


def load(levels, adapter):
    """Load an adapter; returns the names of who left a slot and who left host memory."""
    victim, demoted = levels.reserve(adapter)
    assert adapter.tier is Tier.LOADING
    levels.settle()
    return victim and victim.name, demoted and demoted.name


def names(level):
    return "".join(adapter.name for adapter in level)


def test_slots_and_host_memory_fill_before_anybody_leaves():
    levels = Levels(2, 3)
    a, b, c, d = copies("abcd")
    assert [load(levels, adapter) for adapter in (a, b, c, d)] == [
        (None, None),
        (None, None),
        ("a", None),
        ("b", "a"),
    ]
    assert (names(levels.gpu), names(levels.host)) == ("cd", "bcd")
    assert [adapter.tier for adapter in (a, b, c)] == [Tier.DISK, Tier.CPU, Tier.GPU_IDLE]


def test_use_moves_an_adapter_to_the_end_of_both_levels():
    levels = Levels(2, 3)
    a, b, c = copies("abc")
    for adapter in (a, b):
        load(levels, adapter)
    levels.touch(a)
    assert load(levels, c) == ("b", None)
    assert names(levels.host) == "bac"


@pytest.mark.parametrize("protect", ["seats", "wanted"])
def test_who_runs_or_is_wanted_is_no_victim(protect):
    levels = Levels(2, 2)
    a, b, c = copies("abc")
    for adapter in (a, b):
        load(levels, adapter)
    setattr(a, protect, 1)
    assert load(levels, c) == ("b", "b")


@pytest.mark.parametrize("known", [False, True])
def test_a_load_that_fails_leaves_things_as_they_were_but_for_the_victim(known):
    levels = Levels(1, 3)
    a, b = copies("ab")
    if known:
        load(levels, b)
    load(levels, a)
    levels.reserve(b)
    levels.give_up()
    assert (names(levels.gpu), names(levels.host)) == ("", "ba" if known else "a")
    assert b.tier is (Tier.CPU if known else Tier.DISK)
