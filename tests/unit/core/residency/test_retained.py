"""The shadow of an engine that evicts by something else than LRU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.residency.retained import RetainedShadow, shadow_of
from lorapick.core.residency.shadow import Shadow
from lorapick.core.retention.policies import EVICTIONS
from lorapick.model.pods import Pod
from lorapick.model.settings import LoadTimes, RetentionSettings
from lorapick.model.tiers import Tier


def idle(name):
    return False


def busy(name):
    return True


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def made(eviction, *, gpu=2, cpu=3):
    pod = Pod(name="pod", address="127.0.0.1:1", eviction=eviction)
    shadow = shadow_of(pod, settings=RetentionSettings(), load_times=LoadTimes, clock=Clock())
    shadow.resize(gpu_slots=gpu, cpu_slots=cpu)
    return shadow


def asked(shadow, *names):
    moved = {}
    for name in names:
        shadow.asked(name)
        moved.update(shadow.use(name, idle))
    return moved


def test_an_lru_engine_has_the_plain_shadow():
    assert type(made("lru")) is Shadow
    assert type(made("fifo")) is RetainedShadow


@pytest.mark.parametrize(("eviction", "out"), [("lru", "hot"), ("lfu", "cold"), ("window", "cold"), ("fifo", "hot")])
def test_who_makes_room_is_the_policys_word(eviction, out):
    shadow = made(eviction)
    asked(shadow, "hot", "hot", "hot", "hot", "cold")
    assert shadow.next_out(idle) == out
    assert asked(shadow, "new") == {out: Tier.CPU}


def test_busy_adapters_stay_and_defer_the_newcomer():
    shadow = made("fifo")
    asked(shadow, "a", "b")
    assert shadow.use("c", busy) is None
    assert [*shadow.deferred] == ["c"]
    assert shadow.next_out(busy) is None
    assert shadow.use("c", lambda name: name == "a") == [("b", Tier.CPU)]


def test_what_the_engine_ran_was_on_its_gpu():
    shadow = made("lfu")
    asked(shadow, "a", "a", "b", "b")
    assert shadow.recall(["c"], idle) == {"c": Tier.GPU_IDLE, "a": Tier.CPU}
    assert shadow.recall(["c"], idle) == {"c": Tier.GPU_IDLE}


def test_a_restart_forgets_counts():
    shadow = made("lfu")
    asked(shadow, "a", "a", "a")
    shadow.clear()
    asked(shadow, "a", "b", "b")
    assert shadow.next_out(idle) == "a"


@given(
    eviction=st.sampled_from([*EVICTIONS]),
    names=st.lists(st.sampled_from("abcdefg"), max_size=60),
    gpu=st.integers(1, 3),
    more=st.integers(0, 3),
)
def test_levels_stay_within_their_sizes_and_inside_each_other(eviction, names, gpu, more):
    shadow = made(eviction, gpu=gpu, cpu=gpu + more)
    for name in names:
        asked(shadow, name)
        assert name in shadow.gpu
        assert len(shadow.gpu) <= shadow.gpu_slots
        assert len(shadow.cpu) <= shadow.cpu_slots
        assert all(held in shadow.cpu for held in shadow.gpu)
