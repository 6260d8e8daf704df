"""Residencies as the metrics page counts them: what begins and ends one, and conservation."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.fleet import Fleet
from lorapick.live.families import Families
from lorapick.live.metrics import Metrics
from lorapick.live.metrics_stays import Stays
from lorapick.model import events
from lorapick.model.effects import Dispatch
from lorapick.model.pods import Pod, PodLimits, PodReport
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings
from lorapick.model.signals import Change
from lorapick.model.tiers import Tier

TICK = events.Ticked(t=0.0, id=0)
GONE = events.Unloaded(t=0.0, id=0, pod="p", adapter="a")


def change(t: float, before: Tier, after: Tier, *, pod: str = "p", adapter: str = "a", **facts: bool) -> Change:
    return Change(t, pod, adapter, before, after, since=0.0, came_from=Tier.DISK, **facts)


def stays() -> tuple[Stays, Families]:
    families = Families()
    return Stays(families, label=lambda adapter: adapter), families


def values(families: Families) -> dict[str, float]:
    families.freeze()
    return {
        sample.name.removeprefix("lorapick_") + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in families.collect()
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


class TestOne:
    def test_from_the_begin_of_the_load_to_the_eviction(self) -> None:
        book, families = stays()
        book.take(change(10.0, Tier.DISK, Tier.LOADING), TICK)
        book.take(change(11.0, Tier.LOADING, Tier.GPU_IDLE), TICK)
        book.used("p", "a", now=30.0)
        assert book.slots() == {"a": 1}
        book.take(change(50.0, Tier.GPU_IDLE, Tier.CPU), TICK)
        found = values(families)
        assert found["evictions_total p capacity"] == found["adapter_evictions_total a"] == 1
        assert found["residency_seconds_sum p"] == found["adapter_residency_seconds_sum a"] == 40.0
        assert found["hit_to_evict_seconds_sum p"] == found["adapter_hit_to_evict_seconds_sum a"] == 20.0
        assert book.slots() == {}

    def test_who_was_never_asked_for_has_no_last_use(self) -> None:
        book, families = stays()
        book.take(change(10.0, Tier.CPU, Tier.GPU_IDLE), TICK)  # a report showed it
        book.take(change(20.0, Tier.GPU_IDLE, Tier.DISK), TICK)
        found = values(families)
        assert found["residency_seconds_count p"] == 1
        assert "hit_to_evict_seconds_count p" not in found

    @pytest.mark.parametrize(
        ("made", "event", "by"),
        [
            (change(2.0, Tier.GPU_IDLE, Tier.DISK), TICK, "capacity"),
            (change(2.0, Tier.GPU_IDLE, Tier.DISK), GONE, "unload"),
            (change(2.0, Tier.GPU_IDLE, Tier.DISK, restart=True), TICK, "restart"),
            (change(2.0, Tier.LOADING, Tier.DISK), TICK, "load_failed"),
            (change(2.0, Tier.LOADING, Tier.DISK, restart=True), TICK, "restart"),
        ],
    )
    def test_what_ended_it(self, made: Change, event: events.Event, by: str) -> None:
        book, families = stays()
        book.take(change(1.0, Tier.DISK, Tier.LOADING), TICK)
        book.take(made, event)
        assert values(families)[f"evictions_total p {by}"] == 1

    def test_levels_below_the_gpu_are_no_residency(self) -> None:
        book, families = stays()
        assert not book.take(change(1.0, Tier.CPU, Tier.DISK), TICK)
        assert "evictions_total p capacity" not in values(families)


@given(course=st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("abcd"), st.floats(0.0, 100.0)), max_size=60))
def test_finished_and_open_ones_add_up_to_slots_in_use_times_time(course: list[tuple[str, str, float]]) -> None:
    book, families = stays()
    inside: dict[tuple[str, str], Tier] = {}
    now = slot_seconds = 0.0
    for pod, adapter, wait in course:
        slot_seconds += wait * len(inside)
        now += wait
        tier = inside.pop((pod, adapter), None)
        if tier is None or tier is Tier.LOADING:
            inside[pod, adapter] = after = Tier.LOADING if tier is None else Tier.GPU_IDLE
        else:
            after = Tier.CPU
        book.take(change(now, tier or Tier.DISK, after, pod=pod, adapter=adapter), TICK)
    found = values(families)
    finished = sum(value for key, value in found.items() if key.startswith("residency_seconds_sum"))
    still = sum(sum(book.ages(pod, now)) for pod in "pq")
    assert finished + still == pytest.approx(slot_seconds)
    ended = sum(value for key, value in found.items() if key.startswith("residency_seconds_count"))
    assert ended == sum(value for key, value in found.items() if key.startswith("evictions_total"))


class Course:
    """A core that lives through a random day, with metrics that follow it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.fleet, self.metrics = Fleet(Settings(), seed=seed), Metrics()
        self.metrics.follow(self.fleet)
        self.ids = itertools.count()
        self.now = self.slot_seconds = 0.0
        self.flying: dict[str, str] = {}
        self.starts = dict.fromkeys("pqr", 0.0)
        for pod in self.starts:
            self.appear(pod)

    def tell(self, kind: type[events.Event], **facts: object) -> list:
        event = kind(t=self.now, id=next(self.ids), **facts)
        effects = self.fleet.apply(event, self.now)
        self.metrics.observe(event, effects)
        return effects

    def appear(self, pod: str) -> None:
        self.tell(events.PodAppeared, pod=Pod(name=pod, address=f"{pod}:1", limits=PodLimits(max_loras=2)))
        self.report(pod)

    def report(self, pod: str) -> None:
        report = PodReport(waiting=0, running=0, registered=tuple("abcdef"), process_start=self.starts[pod])
        self.tell(events.PodReported, pod=pod, report=report)

    def step(self) -> None:
        wait = self.draw.expovariate(2.0)
        self.slot_seconds += wait * self.in_slots()
        self.now += wait
        pod = self.draw.choice("pqr")
        chance = self.draw.random()
        if chance < 0.5:
            request_id = f"r{next(self.ids)}"
            request = Request(id=request_id, model=self.draw.choice("abcdef"))
            for effect in self.tell(events.RequestArrived, request=request):
                if isinstance(effect, Dispatch):
                    self.flying[effect.request_id] = effect.target.pod
        elif chance < 0.85 and self.flying:
            request_id = self.draw.choice([*self.flying])
            del self.flying[request_id]
            failed = self.draw.random() < 0.2
            if not failed:
                self.tell(events.ResponseStarted, request_id=request_id, status=200)
            outcome = Outcome.FAILED if failed else Outcome.SERVED
            self.tell(events.RequestEnded, request_id=request_id, outcome=outcome, status=500 if failed else 200)
        elif chance < 0.95:
            self.report(pod)
        elif chance < 0.97:
            self.starts[pod] = self.now
            self.report(pod)
        elif chance < 0.98:
            self.tell(events.PodGone, pod=pod)
            self.appear(pod)
        else:
            adapter = self.draw.choice("abcdef")
            self.tell(events.Evicted, pod=pod, adapter=adapter, tier=Tier.DISK, by=events.By.CONTROLLER)

    def in_slots(self) -> int:
        return sum(belief.tier >= Tier.LOADING for belief in self.fleet.state.residency.beliefs())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_real_core_conserves_slot_seconds(seed: int) -> None:
    course = Course(seed)
    for _ in range(700):
        course.step()
    book = course.metrics.counting.stays
    assert sum(book.slots().values()) == course.in_slots()
    found: dict[str, float] = {}
    for sample in course.metrics.samples():
        found[sample.name] = found.get(sample.name, 0.0) + sample.value
    still = sum(sum(book.ages(pod, course.now)) for pod in course.starts)
    assert found["lorapick_residency_seconds_sum"] + still == pytest.approx(course.slot_seconds, rel=1e-9)
    assert found["lorapick_residency_seconds_count"] == found["lorapick_evictions_total"]
    assert found["lorapick_adapter_evictions_total"] == found["lorapick_evictions_total"]
    assert found["lorapick_adapter_loads_total"] == found["lorapick_loads_total"]
    causes = {s.labels["by"] for s in course.metrics.samples() if s.name == "lorapick_evictions_total"}
    assert causes >= {"capacity", "unload", "restart"}
