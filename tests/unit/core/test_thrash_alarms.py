"""Alarms of thrash: each is raised for what it names, and not for its near miss."""

import msgspec
import pytest

from lorapick.core import thrash_alarms
from lorapick.core.signals.views import sample
from lorapick.model.alerts import Alert
from lorapick.model.effects import Clear, Raise
from lorapick.model.requests import Outcome
from lorapick.model.settings import AlertSettings, LoadTimes, Settings, SloSettings
from lorapick.testing.playbook import Playbook, plain_pod

FAST = AlertSettings(sustained=10.0, clear_after=10.0, after=5.0)


class Course:
    """One pod whose requests last a second each."""

    def __init__(self, *, slots=1, names=("x", "y"), alerts=FAST, slo=None, pods=("a",)):
        settings = Settings(alerts=alerts, slo=slo or SloSettings(), load_times=LoadTimes(cpu=0.1, disk=0.1))
        pods = tuple(plain_pod(pod, max_loras=slots) for pod in pods)
        self.book = Playbook(pods=pods, adapters=names, settings=settings)
        self.names = names
        self.count = 0

    def play(self, seconds, *, lasts=0.9, outcome=Outcome.SERVED, status=200, only=None):
        for _ in range(seconds):
            names = only or self.names
            self.count += 1
            self.book.arrive(names[self.count % len(names)], id=f"q{self.count}")
            self.book.wait(lasts)
            self.book.end(f"q{self.count}", outcome, status=status)
            self.book.wait(1.0 - lasts)
            for pod in self.book.fleet.state.columns.row_of:
                self.book.report(pod)
        return self

    @property
    def raised(self):
        effects = [effect for answer in self.book.answers for effect in answer]
        return [effect.alert for effect in effects if isinstance(effect, Raise)]

    @property
    def cleared(self):
        effects = [effect for answer in self.book.answers for effect in answer]
        return [effect.alert for effect in effects if isinstance(effect, Clear)]


def test_thrash_is_told_from_swaps_and_from_harm():
    course = Course(slo=SloSettings(latency_p95=0.5)).play(80)
    assert {Alert.SWAP_RATE, Alert.RESIDENCY, Alert.HIT_RATIO, Alert.LATENCY, Alert.THRASH} <= {*course.raised}
    assert course.book.fleet.state.alerts.standing[Alert.THRASH].facts["harm"] == "latency_p95"


def test_swaps_that_harm_nobody_wake_nobody():
    course = Course(slo=SloSettings(latency_p95=5.0)).play(80)
    assert Alert.SWAP_RATE in course.raised
    assert not {alert for alert in course.raised if alert.severity == "page"}


def test_a_fleet_with_room_is_quiet():
    course = Course(slots=4, slo=SloSettings(latency_p95=2.0)).play(120)
    assert course.raised == []


def test_one_adapter_that_leaves_early_is_no_alarm():
    course = Course(slots=4, names=tuple("abcde"), alerts=msgspec.structs.replace(FAST, active_per_slot=9.0))
    course.play(30, only="abcd").play(1, only="e").play(60, only="bcde")
    assert Alert.RESIDENCY not in course.raised


def test_nearly_as_many_adapters_as_slots():
    assert Course(slots=5, names=tuple("abcd")).play(30).raised == [], "4 of 5 is the bound, not beyond it"
    assert Course(slots=4, names=tuple("abcd")).play(30).raised == [Alert.ACTIVE_ADAPTERS]


def test_failures_are_told_and_clients_mistakes_are_not():
    assert Alert.ERROR_RATE in Course(slots=4).play(60, outcome=Outcome.FAILED, status=503).raised
    assert Course(slots=4).play(60, outcome=Outcome.FAILED, status=400).raised == []


def test_refusals_are_told_with_their_reasons():
    course = Course(slots=4)
    for _ in range(60):
        course.book.arrive("x", deadline=course.book.now - 1.0)
        course.book.wait(1.0)
        course.book.report("a")
    facts = course.book.fleet.state.alerts.standing[Alert.ERROR_RATE].facts
    assert facts["refused"].endswith(" deadline")


def test_alarms_end_when_it_is_over():
    course = Course(slo=SloSettings(latency_p95=0.5)).play(60)
    assert Alert.THRASH in course.raised
    for _ in range(900):
        course.book.wait(1.0)
        course.book.report("a")
    assert sorted(course.raised) == sorted(course.cleared)


@pytest.mark.parametrize(("ratio", "found"), [(0.79, True), (0.8, False), (None, False)])
def test_bounds_are_those_of_the_settings(ratio, found):
    course = Course().play(30)
    state = course.book.fleet.state
    state.signals.latest = msgspec.structs.replace(sample(state, now=course.book.now), hit_ratio=ratio)
    finding = next(each for each in thrash_alarms.find(state, course.book.now) if each.alert is Alert.HIT_RATIO)
    assert finding.begins is found


def hang(course, seconds, *, patience=None):
    """Requests come, and no pod answers; with patience, clients give up after so long."""
    open_ = []
    for _ in range(seconds):
        course.count += 1
        course.book.arrive(course.names[0], id=f"h{course.count}")
        open_.append((course.book.now, f"h{course.count}"))
        while patience and open_ and course.book.now - open_[0][0] >= patience:
            course.book.end(open_.pop(0)[1], Outcome.ABANDONED)
        course.book.wait(1.0)
        for pod in course.book.fleet.state.columns.row_of:
            course.book.report(pod)
    return course


def test_a_fleet_that_hangs_is_told_of_though_nothing_ends():
    course = hang(Course(slots=4, slo=SloSettings(latency_p95=2.0)).play(60), 60)
    assert Alert.LATENCY in course.raised
    hang(course, 120)
    assert Alert.LATENCY not in course.cleared, "that no answer comes any more is no recovery"


def test_clients_that_give_up_are_told_of():
    course = hang(Course(slots=4, slo=SloSettings(latency_p95=2.0)).play(60), 60, patience=4.0)
    assert Alert.LATENCY in course.raised


def test_nobody_served_is_told_without_any_promise():
    course = hang(Course(slots=4).play(10), 420, patience=4.0)
    assert Alert.ERROR_RATE in course.raised
    assert course.book.fleet.state.alerts.standing[Alert.ERROR_RATE].facts["unanswered"] > 100


def test_a_quiet_fleet_that_fails_is_told_of_once():
    course = Course(slots=4)
    for minute in range(40):
        failed = minute % 3 == 0
        course.play(4, outcome=Outcome.FAILED if failed else Outcome.SERVED, status=503 if failed else 200)
        for _ in range(11):
            course.book.wait(5.0)
            course.book.report("a")
    assert course.raised.count(Alert.ERROR_RATE) == 1


def test_a_nearly_idle_fleet_that_loads_each_time_wakes_nobody():
    course = Course(slots=1, slo=SloSettings(latency_p95=5.0))
    for _ in range(60):
        course.play(1)
        for _ in range(19):
            course.book.wait(1.0)
            course.book.report("a")
    assert not {alert for alert in course.raised if alert.severity == "page"}
    assert Alert.USEFUL_TIME not in course.raised
