"""Pods that leave and come, orders, and loads that fail, in worlds worked out by hand."""

from collections import Counter

import msgspec
import pytest
from sim_helpers import SCENARIO, ask, config

from lorapick.core.picking.policies import POLICIES
from lorapick.model import events as said
from lorapick.model.adapters import Adapter
from lorapick.model.pods import Pod
from lorapick.model.requests import Outcome
from lorapick.model.settings import Settings
from lorapick.pod.values import AdapterSpec
from lorapick.sim.conservation import check
from lorapick.sim.failing import FailingLoads
from lorapick.sim.fleet_changes import Ask, Drain, FailLoads, Fire, Join, Move, Restart, Unask
from lorapick.sim.kernel import Priority
from lorapick.sim.performing import Performer
from lorapick.sim.run import Options, run
from lorapick.sim.scenario_text import parse_scenario
from lorapick.sim.setup import Setup
from lorapick.sim.tally import Tally
from lorapick.sim.world import World

NAMES = ("x", "y", "z")


class Played:
    """A world with three pods, of which the last may come later."""

    def __init__(self, *changes, requests=(), until=30.0, later=(), fails=0.0, seed=7):
        self.tally = Tally(start=0.0, window=1.0)
        self.heard = []
        failing = FailingLoads(most=fails, seed=seed)
        pod = msgspec.structs.replace(config(slots=2), load_failure_share=fails)
        setup = Setup(
            settings=Settings(adapters=tuple(Adapter(name=name, declared=True) for name in NAMES)),
            pods=[(Pod(name=name, address=f"sim:{name}", limits=pod.limits), pod) for name in ("a", "b", "c")],
            adapters=[AdapterSpec(name=name, size=100_000_000) for name in NAMES],
            later=later,
            draws=failing.draws if fails else None,
        )
        self.world = World(setup, observer=self.tally, seed=seed)
        self.world.check_every = 1
        self.world.heard = lambda event, effects: self.heard.append((event, effects))
        performer = Performer(self.world, failing)
        for change in changes:
            self.world.kernel.at(change.at, performer.perform, argument=change, priority=Priority.CHANGE)
        self.world.run([*requests, ask(until - 1.0, None, name="last", output=1)], until=until)
        check(self.world, self.tally)

    def times(self, kind, pod=None):
        """Times of events of a kind; of a pod's when one is named. What comes at t = 0 is heard by nobody yet."""
        found = [event for event, _ in self.heard if isinstance(event, kind)]
        return [event.t for event in found if pod is None or pod == getattr(event.pod, "name", event.pod)]

    def outcomes(self):
        return dict(self.world.fleet.state.tally.outcomes)


def test_a_pod_that_drains_is_gone_when_it_is_empty():
    played = Played(Drain(at=5.0, pod="a", grace=10.0))
    assert played.times(said.PodDraining, "a") == [5.0]
    assert played.times(said.PodGone, "a") == [5.0]
    assert "a" not in played.world.fleet.state.columns.row_of
    assert played.world.pods["a"].time(30.0).down == pytest.approx(25.0)
    # Nobody looks at it any more.
    assert max(played.times(said.PodReported, "a")) <= 5.0 and not played.times(said.PodSilent, "a")


def test_it_ends_what_it_has_first_and_what_takes_too_long_fails():
    def served_by_a(output, grace):
        # 10 ms for each token, on the only pod that is there.
        changes = (
            Drain(at=0.5, pod="b", grace=0.0),
            Drain(at=0.5, pod="c", grace=0.0),
            Drain(at=3.0, pod="a", grace=grace),
        )
        return Played(*changes, requests=[ask(2.0, None, name="r", output=output)])

    short = served_by_a(250, 10.0)
    assert short.times(said.PodGone, "a") == [5.0] and short.outcomes()[Outcome.SERVED] == 1
    long = served_by_a(2500, 10.0)
    assert long.times(said.PodGone, "a") == [13.0] and long.outcomes()[Outcome.FAILED] == 1


def test_it_comes_back_as_a_new_process():
    played = Played(Drain(at=5.0, pod="a", grace=10.0, down=8.0), requests=[ask(1.0, "x"), ask(20.0, "x")])
    # It hands over what only it has, which takes a second, and is away for eight.
    assert (played.times(said.PodGone, "a"), played.times(said.PodAppeared, "a")) == ([6.0], [14.0])
    assert played.world.pods["a"].time(30.0).down == pytest.approx(8.0)
    assert played.outcomes() == {Outcome.SERVED: 3}


def test_a_pod_may_come_later():
    played = Played(Join(at=6.0, pod="c"), later=("c",), requests=[ask(float(t), "x") for t in range(1, 20)])
    assert played.times(said.PodAppeared, "c") == [6.0]
    assert min(played.times(said.PodReported, "c")) == 6.0 and not played.times(said.PodSilent)
    assert played.world.pods["c"].time(30.0).down == pytest.approx(6.0)


def test_a_pod_that_is_told_to_stay_stays():
    others = [Drain(at=0.5, pod=pod, grace=0.0) for pod in ("b", "c")]
    busy = [ask(1.0, None, name="r", output=1500)]
    played = Played(*others, Drain(at=2.0, pod="a", grace=20.0), Join(at=4.0, pod="a"), requests=busy)
    assert not played.times(said.PodGone, "a")
    assert played.outcomes() == {Outcome.SERVED: 2}
    assert not played.world.fleet.state.loads[played.world.fleet.state.columns.row_of["a"]].draining


def test_restarts_and_upgrades_may_cross():
    # It dies, is told to leave while it is down, and both would bring it back.
    played = Played(Restart(at=3.0, pod="a", down=10.0), Drain(at=4.0, pod="a", grace=5.0, down=3.0))
    assert played.times(said.PodGone, "a") == [4.0] and played.times(said.PodAppeared, "a") == [7.0]
    assert played.world.pods["a"].time(30.0).down == pytest.approx(4.0)
    # It leaves for good while it is down.
    gone = Played(Restart(at=3.0, pod="a", down=10.0), Drain(at=4.0, pod="a", grace=5.0))
    assert not gone.world.pods["a"].alive
    # Who is not there cannot die or leave.
    nothing = Played(Restart(at=3.0, pod="c", down=1.0), Drain(at=4.0, pod="c", grace=5.0), later=("c",))
    assert not nothing.times(said.PodGone)


def test_orders_are_told_and_carried_out():
    played = Played(
        Ask(at=3.0, adapters=("x",), pods=("a",)), Move(at=6.0, adapter="x", source="a", target="b"), until=20.0
    )
    assert [event.pods for event, _ in played.heard if isinstance(event, said.LoadAsked)] == [("a",)]
    assert played.tally.windows[3].commanded == {"operator": 1}
    on_gpu = {name: sim.engine.stats(20.0).on_gpu for name, sim in played.world.pods.items()}
    assert "x" in on_gpu["b"]


def test_unloads_and_triggers_are_told():
    played = Played(Unask(at=3.0, adapters=("x", "y"), pods=("a",)), Fire(at=4.0, event="login", attributes={"t": "x"}))
    told = Counter(type(event).__name__ for event, _ in played.heard)
    assert (told["UnloadAsked"], told["TriggerFired"]) == (2, 1)


def test_so_many_loads_fail_as_long_as_they_do():
    failing = FailingLoads(most=0.6, seed=1)
    draw, other = failing.draws("a"), failing.draws("b")
    assert draw() >= 0.6
    for share in (0.3, 0.6):
        failing.share = share
        failed = sum(draw() < failing.most for _ in range(4000)) / 4000
        assert failed == pytest.approx(share, abs=0.03)
    failing.share = 0.0
    assert all(each() >= failing.most for each in (draw, other))


def test_loads_fail_in_a_world():
    requests = [ask(1.0 + 0.3 * number, NAMES[number % 3], name=f"r{number}") for number in range(60)]
    bad = Played(FailLoads(at=0.0, share=0.5), requests=requests, fails=0.5)
    assert bad.tally.failed_loads > 0
    assert Played(requests=requests, fails=0.5).tally.failed_loads == 0


def test_a_whole_scenario_of_changes_keeps_all_invariants():
    text = SCENARIO + (
        "phases:\n"
        "  - {at: 6s, change: {add: {pod: pod-03}}}\n"
        "  - {at: 7s, change: {upgrade: {every: 5s, down: 2s, drain: 2s}}}\n"
        "  - {at: 8s, change: {fail_loads: {share: 0.3}}}\n"
        "  - {at: 9s, change: {load: {adapter: adapter-4, replicas: 2}}}\n"
        "  - {at: 15s, change: {drain: {pod: pod-03, grace: 1s}}}\n"
        "parts: {popular: {top: 2}, others: {last: 2}}\n"
    )
    scenario = parse_scenario(text, file="s.yaml", policies=POLICIES)
    for policy in ("weighted", "cost", "round-robin"):
        report = run(scenario, policy=policy, options=Options(check_every=1))
        whole = report.whole
        assert whole.pods == len(report.pods) == 3
        assert whole.gpu.total == pytest.approx(3 * whole.length)
        assert sum(row.arrivals for row in report.parts) == whole.arrivals
        assert sum(row.served for row in report.parts) == whole.served
        assert sum(row.cold for row in report.parts) == whole.cold >= whole.waited
