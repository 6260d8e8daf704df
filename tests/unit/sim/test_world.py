"""Tiny fleets, worked out by hand; restarts, pipelines, failures, deadlocks."""

import pytest
from sim_helpers import ask, config, world

from lorapick.model import events as said
from lorapick.model.effects import Load, Note, Unload
from lorapick.model.requests import Outcome
from lorapick.pod.values import SwapMode
from lorapick.sim.conservation import check
from lorapick.sim.deadlock import Deadlock
from lorapick.sim.tally import Tally
from lorapick.sim.workload.follow import Followers
from lorapick.sim.workload.spec import After, Follow
from lorapick.sim.world import World


class Watch(Tally):
    """A tally that also remembers when each request ended, and how."""

    def __init__(self) -> None:
        super().__init__(start=0.0, window=1.0)
        self.ends: dict[str, tuple[Outcome, float]] = {}

    def ended(self, request_id: str, outcome: Outcome, *, now: float) -> None:
        super().ended(request_id, outcome, now=now)
        self.ends[request_id] = (outcome, round(now, 9))


def played(*arrivals, until=None, **kwargs):
    watch = Watch()
    made, _ = world(tally=watch, **kwargs)
    made.run(arrivals, until=until)
    check(made, watch)
    return made, watch


def test_one_request_loads_and_runs():
    # 90 ms of load from disk into a free slot, then ten steps of 10 ms.
    _, watch = played(ask(1.0, "x"))
    assert watch.ends == {"x@1": (Outcome.SERVED, 1.19)}
    assert (watch.windows[1].loads, watch.windows[1].swaps.total(), watch.windows[1].misses) == (1, 1, 1)
    assert watch.swaps_from == {"disk": 1}
    assert watch.windows[1].latency.total == pytest.approx(0.19)
    assert watch.windows[1].ttft.total == pytest.approx(0.10)


def test_the_base_model_needs_no_load():
    _, watch = played(ask(1.0, None, name="base"))
    assert watch.ends == {"base": (Outcome.SERVED, 1.1)}
    assert (watch.windows[1].hits, watch.windows[1].misses, watch.windows[1].loads) == (0, 0, 0)


def test_a_second_adapter_drains_the_batch_and_swaps():
    # x runs from 0.09 to 0.19; y came at 0.1, waits for the drain, then 95 ms of load (a slot is freed, from disk).
    _, watch = played(ask(0.0, "x"), ask(0.1, "y"))
    assert watch.ends == {"x@0": (Outcome.SERVED, 0.19), "y@0.1": (Outcome.SERVED, 0.19 + 0.095 + 0.1)}
    assert watch.residencies.finished.total == pytest.approx(0.19)


def test_back_from_host_memory_is_quicker():
    _, watch = played(ask(0.0, "x"), ask(1.0, "y"), ask(2.0, "x"))
    # Deallocation 5, transfer 10, initialisation 20, warm-up 50: 85 ms.
    assert watch.ends["x@2"] == (Outcome.SERVED, 2.0 + 0.085 + 0.1)
    assert watch.swaps_from == {"disk": 2, "cpu": 1}


def test_two_pods_hold_two_adapters_without_a_swap():
    made, watch = played(
        ask(0.0, "x"), ask(0.0, "y"), *(ask(1.0 + n, name) for n in range(5) for name in ("x", "y")), pods=2
    )
    assert sum(window.loads for window in watch.windows) == 2
    assert sum(window.hits for window in watch.windows) == 10
    assert sorted(watch.dispatches.values()) == [6, 6]
    assert made.fleet.state.tally.arrivals == 12


def test_a_stampede_for_a_cold_adapter_loads_once():
    arrivals = [ask(0.001 * n, "x") for n in range(50)]
    _, watch = played(*arrivals, pods=4, pod=config(seats=64))
    assert sum(window.loads for window in watch.windows) == 1
    assert len(watch.dispatches) == 1
    assert {outcome for outcome, _ in watch.ends.values()} == {Outcome.SERVED}


def test_without_coalescing_every_pod_loads_it():
    arrivals = [ask(0.001 * n, "x") for n in range(50)]
    _, watch = played(*arrivals, pods=4, policy="round-robin")
    assert sum(window.loads for window in watch.windows) == 4


def test_what_does_not_fit_is_rejected_and_adds_up():
    arrivals = [ask(0.0, "x", name=f"r{n}", output=1000) for n in range(20)]
    made, watch = played(*arrivals, pod=config(seats=2, queue=3))
    outcomes = [outcome for outcome, _ in watch.ends.values()]
    assert 0 < outcomes.count(Outcome.REJECTED) < 20
    assert len(outcomes) == 20
    assert not made.fleet.state.flights


def test_inline_loads_hold_up_who_runs():
    # x runs; y joins at the next step's begin, 0.1, and its load of 90 ms comes before that step of both.
    # (Under a policy that does not wait for one load to end before it begins the next.)
    pod = config(slots=2, mode=SwapMode.INLINE)
    _, watch = played(ask(0.0, "x"), ask(0.095, "y"), pod=pod, policy="round-robin")
    assert watch.ends["x@0"][1] == pytest.approx(0.19 + 0.09)
    assert watch.ends["y@0.095"][1] == pytest.approx(0.1 + 0.09 + 0.1)


def test_until_stops_the_clock_and_leaves_the_rest_in_flight():
    made, watch = played(ask(0.0, "x"), ask(0.15, "x", name="late"), until=0.2)
    assert made.kernel.now == 0.2
    assert list(watch.ends) == ["x@0"]
    assert watch.in_flight(0.0, 1.0) == 1


# -- faults


def test_a_restart_fails_what_ran_and_empties_the_pod():
    watch = Watch()
    made, _ = world(tally=watch)
    made.kernel.at(0.15, lambda _: made.restart_pod("pod-1", down=1.0), priority=3)
    made.run([ask(0.0, "x"), ask(2.0, "x")])
    check(made, watch)
    assert watch.ends == {"x@0": (Outcome.FAILED, 0.15), "x@2": (Outcome.SERVED, 2.19)}
    assert watch.residencies.finished.total == pytest.approx(0.15)
    time = made.pods["pod-1"].time(made.kernel.now)
    assert (time.down, time.total) == (pytest.approx(1.0), pytest.approx(made.kernel.now))


def test_while_a_pod_is_away_others_serve():
    watch = Watch()
    made, _ = world(tally=watch, pods=2)
    made.kernel.at(1.0, lambda _: made.restart_pod("pod-1", down=5.0), priority=3)
    made.run([ask(t, "x") for t in (0.0, 2.0, 3.0)])
    assert {outcome for outcome, _ in watch.ends.values()} == {Outcome.SERVED}


def test_an_adapter_that_no_pod_has_fails():
    watch = Watch()
    made, _ = world(tally=watch)
    made.pods["pod-1"].engine.unregister("x")
    made.run([ask(0.0, "x")])
    assert watch.ends == {"x@0": (Outcome.FAILED, 0.0)}


def test_a_fallback_takes_what_a_dead_pod_refuses():
    watch = Watch()
    made, _ = world(tally=watch, pods=2, policy="round-robin")
    # The picker has not noticed yet: no scrape has failed.
    for sim in made.pods.values():
        sim.alive = sim.pod.name != "pod-1"
    made.run([ask(0.0, "x", name=f"r{n}") for n in range(4)], until=0.5)
    assert {outcome for outcome, _ in watch.ends.values()} == {Outcome.SERVED}
    assert made.fleet.state.tally.fallbacks >= 1


def test_when_nobody_takes_it_it_fails():
    watch = Watch()
    made, _ = world(tally=watch)
    made.pods["pod-1"].alive = False
    made.run([ask(0.0, "x")], until=0.1)
    assert watch.ends == {"x@0": (Outcome.FAILED, 0.0)}


def test_a_deadlock_names_who_waits():
    made, _ = world()
    made.check_every = None
    made.pods["pod-1"].engine.submit = lambda *_: None  # a broken stub: takes everything, does nothing
    with pytest.raises(Deadlock, match=r"2 requests wait .*: x@0 \(x\), base \(base\)"):
        made.run([ask(0.0, "x"), ask(0.1, None, name="base")])


# -- commands of a controller


def test_a_commanded_load_is_performed_and_reported():
    made, watch = world()
    heard = []
    made.heard = lambda event, _: heard.append(type(event).__name__)
    perform = made._actions
    perform[Load](Load(cause=1, pod="pod-1", adapters=("x", "y"), why="test"))
    made.run([ask(1.0, "y")])
    assert [name for name in heard if name.startswith("Load")] == ["LoadStarted", "LoadSucceeded", "LoadSucceeded"]
    # Two loads without a request that waits are no swaps; y was there when its request came.
    assert (watch.windows[0].loads, watch.windows[0].swaps.total(), watch.windows[1].hits) == (2, 0, 1)
    perform[Unload](Unload(cause=2, pod="pod-1", adapter="y", why="test"))
    assert heard[-1] == "Unloaded"
    assert "y" not in made.pods["pod-1"].engine.registered


def test_a_failed_load_is_told_and_fails_who_waited():
    made, _ = world()
    setup = made.setup._replace(
        pods=[(pod, type(each)(**{**_fields(each), "load_failure_share": 1.0})) for pod, each in made.setup.pods],
        draws=lambda _: lambda: 0.0,
    )
    watch = Watch()
    broken = World(setup, observer=watch, seed=1)
    notes = []
    broken.heard = lambda _, effects: notes.extend(each.kind for each in effects if isinstance(each, Note))
    broken._actions[Load](Load(cause=1, pod="pod-1", adapters=("y",), why="test"))
    broken.run([ask(1.0, "x")])
    assert watch.ends["x@1"][0] is Outcome.FAILED
    assert watch.failed_loads == 2
    assert "load_failed" in notes
    check(broken, watch)


def _fields(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


# -- pipelines


def test_what_follows_an_answer_comes_when_it_ended():
    made, _ = world(adapters=("x", "y"))
    follow = Follow(first="x", then="y", after=After.END, delay=(0.5, 0.5))
    watch = Watch()
    piped = World(made.setup._replace(followers=Followers([follow], seed=1)), observer=watch, seed=1)
    piped.run([ask(0.0, "x")])
    first, second = watch.ends
    assert watch.ends[first] == (Outcome.SERVED, 0.19)
    assert watch.ends[second] == (Outcome.SERVED, pytest.approx(0.19 + 0.5 + 0.095 + 0.1))
    assert sum(window.arrivals for window in watch.windows) == 2


# -- what the core hears


def test_the_core_hears_what_it_hears_live():
    made, _ = world()
    heard = []
    made.heard = lambda event, _: heard.append(event)
    made.run([ask(0.5, "x")])
    kinds = [type(event).__name__ for event in heard]
    assert kinds == ["RequestArrived", "RequestEnded"]
    assert [event.id for event in heard] == sorted(event.id for event in heard)
    assert isinstance(heard[-1], said.RequestEnded)
    assert (heard[-1].status, heard[-1].t) == (200, pytest.approx(0.69))


def test_held_requests_leave_in_time():
    arrivals = [ask(0.001 * n, "x") for n in range(30)]
    made, watch = played(*arrivals, pods=2, pod=config(seats=4, queue=4))
    holds = watch.holds
    assert holds > 0
    assert len(watch.ends) == 30
    assert not made.fleet.state.holds.any_for(0)


@pytest.mark.parametrize(
    ("tells", "times"),
    [
        (False, {"RequestEnded": 1.19}),
        (True, {"ResponseStarted": 1.0, "BodyStarted": 1.1, "RequestEnded": 1.19}),
    ],
)
def test_starts_of_answers_are_told_only_where_somebody_looks(tells, times):
    made, _ = world(tells_starts=tells)
    heard = {}
    made.heard = lambda event, _: heard.update({type(event).__name__: round(event.t, 9)})
    made.run([ask(1.0, "x")])
    assert {kind: t for kind, t in heard.items() if kind in ("ResponseStarted", "BodyStarted", "RequestEnded")} == times
