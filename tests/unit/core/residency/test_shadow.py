"""The shadow of the engine's two LRU levels."""

from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.residency.shadow import DISORDER, Shadow
from lorapick.model.tiers import Tier


def idle(name):
    return False


def busy(name):
    return True


def filled(*names, gpu=2, cpu=3):
    shadow = Shadow(gpu_slots=gpu, cpu_slots=cpu)
    for name in names:
        shadow.use(name, idle)
    return shadow


def test_the_least_recently_used_goes_to_host_memory_and_then_to_disk():
    shadow = filled()
    assert shadow.use("a", idle) == shadow.use("b", idle) == []
    assert shadow.use("c", idle) == [("a", Tier.CPU)]
    assert shadow.use("d", idle) == [("b", Tier.CPU), ("a", Tier.DISK)]
    assert (list(shadow.gpu), list(shadow.cpu)) == (["c", "d"], ["b", "c", "d"])


def test_using_what_is_there_makes_it_newest_on_both_levels():
    shadow = filled("a", "b")
    assert shadow.touch("a")
    assert not shadow.touch("c")
    assert shadow.use("a", idle) == []
    assert shadow.use("c", idle) == [("b", Tier.CPU)]


def test_busy_adapters_stay():
    shadow = filled("a", "b")
    assert shadow.use("c", lambda name: name == "a") == [("b", Tier.CPU)]
    assert shadow.use("d", busy) is None
    assert list(shadow.gpu) == ["a", "c"]


def test_what_runs_all_the_same_takes_the_oldest_slot():
    shadow = filled("a", "b")
    assert shadow.use("c", busy, must_fit=True) == [("a", Tier.CPU)]


def test_host_memory_holds_at_least_what_the_gpu_holds():
    shadow = filled("a", "b", gpu=2, cpu=0)
    assert list(shadow.cpu) == ["a", "b"]
    assert shadow.use("c", idle) == [("a", Tier.DISK)]


def test_fewer_slots_take_effect_at_the_next_use():
    shadow = filled("a", "b", "c", gpu=3, cpu=3)
    shadow.resize(gpu_slots=1, cpu_slots=2)
    assert shadow.free == 0
    assert shadow.use("d", idle) == [("a", Tier.DISK), ("b", Tier.DISK), ("c", Tier.CPU)]


def test_a_pod_without_slots_that_runs_an_adapter_has_one_after_all():
    shadow = Shadow(gpu_slots=0, cpu_slots=0)
    assert shadow.free == 0
    assert shadow.use("a", idle) is None
    assert shadow.use("a", idle, must_fit=True) == []
    assert shadow.use("b", idle, must_fit=True) == [("a", Tier.DISK)]


def test_what_the_engine_reports_is_taken_over_in_known_order():
    shadow = filled("a", "b")
    shadow.replace(["b", "x", "a"], ["y"])
    assert list(shadow.gpu) == ["a", "b", "x"]
    assert list(shadow.cpu) == ["a", "b", "y", "x"]


def test_leaving():
    shadow = filled("a", "b")
    shadow.drop("a", Tier.CPU)
    assert (list(shadow.gpu), list(shadow.cpu), shadow.free) == (["b"], ["a", "b"], 1)
    shadow.drop("b", Tier.DISK)
    assert (list(shadow.gpu), list(shadow.cpu)) == ([], ["a"])
    shadow.clear()
    assert (list(shadow.cpu), shadow.free) == ([], 2)


class PlainLru:
    """vLLM's two levels as two lists, newest last."""

    def __init__(self, gpu, cpu):
        self.slots, self.room, self.gpu, self.cpu = gpu, max(gpu, cpu), [], []

    def use(self, name):
        for level in (self.gpu, self.cpu):
            if name in level:
                level.remove(name)
            level.append(name)
        del self.gpu[: max(0, len(self.gpu) - self.slots)]
        while len(self.cpu) > self.room:
            self.cpu.remove(next(held for held in self.cpu if held not in self.gpu))


@given(st.lists(st.sampled_from("abcdefg"), max_size=40), st.integers(1, 3), st.integers(0, 5))
def test_against_two_plain_lists(uses, gpu, cpu):
    shadow, plain = Shadow(gpu_slots=gpu, cpu_slots=cpu), PlainLru(gpu, cpu)
    for name in uses:
        was = {held: ("gpu" if held in shadow.gpu else "cpu") for held in shadow.cpu}
        moved = dict(shadow.use(name, idle))
        plain.use(name)
        assert (list(shadow.gpu), list(shadow.cpu)) == (plain.gpu, plain.cpu)
        for held, level in was.items():
            tier = Tier.DISK if held not in plain.cpu else Tier.CPU if held not in plain.gpu else None
            if tier is not None and (level == "gpu" or tier is Tier.DISK):
                assert moved.pop(held) is tier
        assert not moved


def test_a_doubtful_one_counts_as_where_it_was_and_keeps_its_slot_until_its_turn_to_go():
    shadow = filled("a", "b", "c", gpu=2, cpu=4)
    assert shadow.use("d", idle) == [("b", Tier.CPU)]
    shadow.doubt("d", Tier.DISK)
    assert (shadow.level("d"), shadow.free, [*shadow.gpu]) == (Tier.DISK, 0, ["c", "d"])
    assert shadow.use("a", idle) == [("c", Tier.CPU)]
    assert shadow.use("b", idle) == [("d", Tier.DISK)]
    assert not shadow.doubtful and "d" not in shadow.cpu


def test_who_is_in_no_slot_is_not_doubted():
    shadow = filled("a")
    shadow.doubt("b", Tier.CPU)
    assert not shadow.doubtful


def test_fewer_slots_hold_those_used_last_that_are_idle():
    shadow = filled("a", "b", "c", gpu=3, cpu=4)
    shadow.resize(gpu_slots=1, cpu_slots=4)
    assert shadow.shrink(lambda name: name == "a") == [("b", Tier.CPU), ("c", Tier.CPU)]
    assert [*shadow.gpu] == ["a"]


def test_who_was_told_to_be_used_may_go_first_or_not():
    shadow = filled("a", "b", "c", gpu=3, cpu=4)
    assert shadow.may_go(idle) == ["a"]
    shadow.unsure["a"] = None
    assert shadow.may_go(idle) == ["a", "b"]
    assert shadow.may_go(lambda name: name == "b") == ["a", "c"]
    assert shadow.may_go(busy) == []
    shadow.touch("a")
    assert shadow.may_go(idle) == ["b"]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def used_at(*uses, slots=3):
    """A shadow that heard of uses at these times."""
    clock = Clock()
    shadow = Shadow(gpu_slots=slots, cpu_slots=slots, clock=clock)
    for name, clock.now in uses:
        shadow.use(name, idle)
    return shadow, clock


def test_the_order_of_uses_heard_of_at_about_the_same_time_is_not_known():
    shadow, _ = used_at(("a", 1.0), ("b", 1.0 + DISORDER / 2), ("c", 1.5))
    assert shadow.may_go(idle) == ["a", "b"]
    assert shadow.may_go(lambda name: name == "a") == ["b"]


def test_a_use_that_was_asked_for_after_another_was_heard_of_came_after_it():
    shadow, clock = used_at(("a", 1.0), ("b", 1.01), ("c", 1.02))
    before = shadow.last["b"]
    clock.now = 1.05
    shadow.touch("b")
    assert shadow.may_go(idle) == ["a", "c", "b"]
    shadow.answered("b", asked=1.03, before=before)
    assert shadow.may_go(idle) == ["a", "c"]
    clock.now = 5.0
    shadow.touch("b")
    shadow.answered("b", asked=0.5, before=None)
    assert shadow.may_go(idle) == ["a", "c", "b"], "however late it is answered"


def test_what_the_engine_says_of_the_order_counts():
    shadow, _ = used_at(("a", 1.0), ("b", 1.01), ("c", 1.02))
    shadow.order(["b"])
    assert shadow.may_go(idle) == ["a", "c"]


def test_who_left_is_forgotten_and_without_a_clock_the_order_is_taken_as_heard():
    shadow, _ = used_at(("a", 1.0), ("b", 1.01), ("c", 1.02), slots=2)
    assert [*shadow.last] == ["b", "c"]
    shadow.drop("b", Tier.CPU)
    assert [*shadow.last] == ["c"]
    shadow.clear()
    assert not shadow.last
    plain = Shadow(gpu_slots=2, cpu_slots=2)
    plain.use("a", idle)
    plain.use("b", idle)
    assert plain.may_go(idle) == ["a"]


def test_what_may_run_still_may_have_ended_before_a_use_just_heard_of():
    shadow, _ = used_at(("b", 0.5), ("a", 1.0))
    assert shadow.precedes("b", "a", now=1.0) and not shadow.precedes("b", "a", now=1.0 + 2 * DISORDER)
    assert not shadow.precedes("a", "a", now=1.0)
