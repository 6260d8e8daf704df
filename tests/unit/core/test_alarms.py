"""Each alert is raised where it should be, with its facts, and cleared when it is over."""

from random import Random

import pytest

from lorapick.core.alarms import MOST_NAMES
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.alerts import Alert
from lorapick.model.effects import Clear, Raise
from lorapick.model.pods import Role
from lorapick.model.requests import Outcome
from lorapick.model.settings import AdmissionSettings, AlertSettings, BudgetSettings, LoadTimes, Settings
from lorapick.testing.playbook import Playbook, plain_pod

ADMISSION = (Alert.NEW_ADAPTERS, Alert.CONVOY, Alert.PRESSURE, Alert.QUEUES, Alert.QUARANTINE)
ROOMY = AlertSettings(active_per_slot=9.0, sustained=1e6)
"""With which only alerts of admission are raised."""


class Watch:
    """A playbook whose time passes second by second, as on a fleet that is scraped."""

    def __init__(self, *pods, adapters=("legal",), registered=(), report=None, **settings):
        self.book = Playbook(pods=pods or ("a",), adapters=adapters, settings=Settings(**settings))
        self.pods = [*self.book.fleet.state.columns.row_of]
        self.registered, self.reports = (*adapters, *registered), report or {}
        self.told = []
        for pod in self.pods:
            self.book.report(pod, registered=self.registered)
        self.listen()

    def listen(self):
        for answer in self.book.answers[len(self.told) :]:
            self.told.append([(type(effect), effect.alert) for effect in answer if isinstance(effect, Raise | Clear)])

    def __iter__(self):
        return (entry for entries in self.told for entry in entries)

    def seconds(self, count, each=lambda: None):
        """Let time pass; what was raised and cleared in it."""
        before = len([*self])
        for _ in range(count):
            self.book.wait(1.0)
            for pod in self.pods:
                self.book.report(pod, **self.reports.get(pod, {}))
            each()
            self.listen()
        return [*self][before:]

    def facts(self, alert):
        return self.book.fleet.state.alerts.standing[alert].facts

    def serve(self, *names):
        """One request for each, answered at once."""
        for name in names:
            self.book.arrive(name, id=name)
            if name in self.book.fleet.state.holds or name in self.book.fleet.state.queues:
                self.book.end(name, Outcome.ABANDONED)
            else:
                self.book.start(name)
                self.book.end(name, status=200)


def raised(alert):
    return [(Raise, alert)]


def cleared(alert):
    return [(Clear, alert)]


# -- new adapters


def test_adapters_that_nobody_declared_are_named():
    watch = Watch(registered=("s1", "s2"))
    assert watch.seconds(2, each=lambda: watch.serve("legal", "s1")) == []
    assert watch.seconds(10, each=lambda: watch.serve("legal", "s2", "s1", "s1")) == raised("new_adapters")
    facts = watch.facts(Alert.NEW_ADAPTERS)
    assert facts["adapters"] == "s1, s2", "asked for most first"
    assert facts["count"] == 2
    assert facts["traffic_share"] == pytest.approx(32 / 44, abs=0.05)
    assert watch.seconds(29, each=lambda: watch.serve("legal")) == []
    assert watch.seconds(2, each=lambda: watch.serve("legal")) == cleared("new_adapters")
    assert watch.seconds(60, each=lambda: watch.serve("legal")) == [], "what is of the last minute is no news"


def test_few_requests_for_them_are_nobodys_business():
    watch = Watch(registered=("s1",))
    assert watch.seconds(60, each=lambda: watch.serve(*["legal"] * 3)) == []
    watch.serve("s1")
    assert watch.seconds(60, each=lambda: watch.serve(*["legal"] * 3)) == []
    watch.serve(*["s1"] * 9)
    assert watch.seconds(2) == [], "nine in a minute"
    watch = Watch(registered=("s1",), alerts=AlertSettings(new_adapters_share=0.2))
    assert watch.seconds(100, each=lambda: watch.serve("s1", *["legal"] * 5)) == [], "a sixth of the traffic"


def test_who_declares_them_is_told_no_more_and_who_declares_nothing_never():
    watch = Watch(registered=("s1",))
    assert watch.seconds(12, each=lambda: watch.serve("s1")) == raised("new_adapters")
    watch.book.apply(events.AdapterDeclared, adapter=Adapter(name="s1", declared=True))
    assert watch.seconds(31, each=lambda: watch.serve("s1")) == cleared("new_adapters")
    watch = Watch(adapters=(), registered=("s1",))
    assert watch.seconds(12, each=lambda: watch.serve("s1")) == []


def test_a_long_list_is_cut_and_counted():
    strangers = [f"s{number:02}" for number in range(MOST_NAMES + 5)]
    watch = Watch(registered=tuple(strangers))
    watch.serve(*strangers)
    assert watch.seconds(1) == raised("new_adapters")
    facts = watch.facts(Alert.NEW_ADAPTERS)
    assert facts["adapters"].split(", ") == strangers[:MOST_NAMES]
    assert facts["count"] == len(strangers)


# -- convoy


SLOW = LoadTimes(disk=1.5)
"""Loads that a look each second sees."""


def load_for_ever(watch, *pods):
    for pod in pods:
        watch.book.apply(events.LoadStarted, pod=pod, adapters=(f"{pod}-{watch.book.now}",), by=events.By.CONTROLLER)


def test_a_convoy_is_told_of_when_requests_wait_behind_loads_for_long():
    watch = Watch(*"abcd", adapters=("legal", "code"), load_times=SLOW)
    assert watch.seconds(20, each=lambda: load_for_ever(watch, "a")) == [], "nobody waits"
    waiting = {"a": {"waiting": 3, "running": 1}}
    watch.reports = waiting
    watch.seconds(1)
    assert watch.seconds(9, each=lambda: load_for_ever(watch, "a")) == []
    assert watch.seconds(4, each=lambda: load_for_ever(watch, "a")) == raised("convoy")
    facts = watch.facts(Alert.CONVOY)
    assert (facts["pods"], facts["count"], facts["most"]) == ("a", 1, 1)
    assert (facts["waiting"], facts["waiting_at_pods"]) == (0, 3.0)
    assert facts["adapters"].startswith("a-")
    assert watch.seconds(31) == cleared("convoy")


def test_fewer_loads_than_may_be_are_no_convoy():
    budgets = BudgetSettings(pods_loading_share=0.5)
    watch = Watch(*"abcd", report={"a": {"waiting": 3}}, budgets=budgets, load_times=SLOW)
    assert watch.seconds(30, each=lambda: load_for_ever(watch, "a")) == []
    assert watch.seconds(30, each=lambda: load_for_ever(watch, "a", "b")) == raised("convoy")


# -- pressure


def test_pods_that_stay_under_pressure_are_named():
    watch = Watch("a", "b", "c", report={"a": {"memory_pressure": 0.92}, "c": {"memory_pressure": 0.99}})
    assert watch.seconds(10) == []
    watch.reports["b"] = {"memory_pressure": 0.86}
    assert watch.seconds(2) == raised("pressure")
    assert watch.facts(Alert.PRESSURE) == {"pods": "a hard, c critical", "count": 2}
    watch.reports["a"] = {}
    watch.seconds(2)
    assert watch.facts(Alert.PRESSURE) == {"pods": "c critical", "count": 1}
    watch.pods.remove("c")  # it says no more; what it said grows old
    assert watch.seconds(33) == []
    assert watch.seconds(5) == cleared("pressure")


def test_pressure_that_comes_and_goes_is_no_news():
    watch = Watch("a")
    for share in (0.95, 0.5) * 10:
        watch.reports["a"] = {"memory_pressure": share}
        assert watch.seconds(4) == []


# -- queues


def test_a_queue_near_its_bound_is_told_of():
    watch = Watch(
        plain_pod("a", max_loras=1), adapters=("legal", "code"), admission=AdmissionSettings(max_queued=5), alerts=ROOMY
    )
    watch.book.arrive("legal")
    for _ in range(3):
        watch.book.arrive("code")
    assert watch.seconds(12) == [], "three of five"
    watch.book.arrive("code")
    assert watch.seconds(12) == raised("queues")
    facts = watch.facts(Alert.QUEUES)
    assert (facts["waiting"], facts["most"], facts["longest_seconds"]) == (4, 5, 30.0)
    assert facts["oldest_seconds"] == pytest.approx(24.0)
    assert watch.seconds(60) == cleared("queues")
    assert len(watch.book.fleet.state.queues) == 0


def test_waits_near_their_bound_are_told_of():
    alerts = AlertSettings(after=2.0, queue_share=0.5, active_per_slot=9.0, sustained=1e6)
    watch = Watch(plain_pod("a", max_loras=1), adapters=("legal", "code"), alerts=alerts)
    watch.book.arrive("legal")
    watch.book.arrive("code")
    assert watch.seconds(15) == []
    assert watch.seconds(3) == raised("queues")
    assert watch.facts(Alert.QUEUES)["waiting"] == 1


# -- quarantine


def fail(watch):
    if not watch.book.fleet.state.quarantine.rows("legal", now=watch.book.now):
        watch.book.apply(events.LoadFailed, pod="a", adapter="legal", by=events.By.ENGINE, why="no such file")


def test_an_adapter_that_a_pod_fails_to_load_again_and_again_is_named():
    watch = Watch("a", "b")
    fail(watch)
    assert watch.seconds(9) == [], "once is no news"
    assert watch.seconds(20, each=lambda: fail(watch)) == raised("quarantine")
    assert watch.facts(Alert.QUARANTINE) == {"pairs": "legal on a", "count": 1}
    assert watch.book.fleet.state.tally.quarantines >= 4
    assert watch.seconds(100) == cleared("quarantine")


# -- all


def test_without_pods_nothing_stands_and_nobody_must_come_by_for_that():
    watch = Watch("a", registered=("s1",), report={"a": {"memory_pressure": 0.92}})
    assert [*watch.seconds(12, each=lambda: watch.serve("s1"))] == [*raised("new_adapters"), *raised("pressure")]
    watch.book.gone("a")
    watch.listen()
    assert watch.told[-1] == [*cleared("new_adapters"), *cleared("pressure")]
    assert watch.book.arrive("s1") == ["r1 refused: 503 no_pod"]


def test_an_alert_changes_no_decision_and_needs_no_clock_of_its_own():
    watch = Watch(registered=("s1",))
    watch.seconds(12, each=lambda: watch.serve("s1"))
    assert watch.book.fleet.state.alerts.standing
    assert watch.book.fleet.next_wakeup() is None


def test_whatever_happens_they_alternate_and_end():
    """A small fleet with too few slots, strangers, broken adapters and short memory; then nothing more."""
    chance, names = Random(3), ("legal", "code", "s1", "s2")
    watch = Watch(
        *[plain_pod(pod, max_loras=1, max_queue=1) for pod in "abc"],
        registered=("code", "s1", "s2"),
        admission=AdmissionSettings(max_queued=6, max_wait=8.0),
        alerts=AlertSettings(after=2.0, clear_after=3.0, sustained=5.0),
        load_times=LoadTimes(cpu=1.2, disk=1.2),
    )
    book = watch.book

    def happen():
        for _ in range(chance.choice([0, 0, 1, 6])):
            book.arrive(chance.choice(names))
        for request_id in [*book.fleet.state.flights]:
            if chance.random() < 0.3:
                book.end(request_id, chance.choice([*Outcome]), status=200)
        if chance.random() < 0.2:
            book.apply(events.LoadFailed, pod="a", adapter=chance.choice(names), by=events.By.ENGINE, why="bad")
        if 40.0 < book.now < 70.0:
            load_for_ever(watch, "b")
        pod = chance.choice(watch.pods)
        watch.reports[pod] = {"memory_pressure": chance.choice([0.5, 0.5, 0.5, 0.93]), "waiting": chance.randrange(2)}

    standing = dict.fromkeys(Alert, False)
    seen = watch.seconds(100, each=happen)
    for request_id in [*book.fleet.state.flights]:
        book.end(request_id)
    watch.reports = {}
    for kind, alert in [*seen, *watch.seconds(800)]:
        assert (kind is Clear) is standing[alert]
        standing[alert] = not standing[alert]
    assert not any(standing.values()) and not book.fleet.state.alerts.standing
    assert {alert for _, alert in seen} >= {*ADMISSION}


# -- pods that prefill


def without_prefill():
    """A fleet whose only pod that prefills does not answer any more."""
    watch = Watch(plain_pod("p", role=Role.PREFILL), plain_pod("d", role=Role.DECODE), alerts=ROOMY)
    watch.pods = ["d"]
    watch.seconds(10)
    return watch


def ask(watch, tokens):
    watch.book.arrive("legal", id="r", prompt_tokens=tokens, stream=True)
    watch.book.start("r")
    watch.book.end("r", status=200)


def test_nobody_prefills_where_that_is_asked_for():
    watch = without_prefill()
    assert watch.seconds(12, each=lambda: ask(watch, 2000)) == raised("no_prefill")
    assert watch.facts(Alert.NO_PREFILL) == {"pods": "p stale", "count": 1, "of": 1}
    watch.pods = ["p", "d"]
    assert watch.seconds(32) == cleared("no_prefill")


def test_nobody_prefills_where_nobody_asks_for_it():
    watch = without_prefill()
    assert watch.seconds(60, each=lambda: ask(watch, 20)) == []
