"""Loads and unloads that no request asked for, in worlds whose numbers can be worked out by hand."""

from msgspec.structs import replace
from sim_helpers import ask, config, world

from lorapick.model.effects import Load, Unload
from lorapick.model.pods import Engine
from lorapick.sim.conservation import check
from lorapick.sim.world import World

LOAD = Load(cause=3, pod="pod-1", adapters=("y",), why="test")
UNLOAD = Unload(cause=2, pod="pod-1", adapter="y", why="test")


def sglang(**fields):
    """A world of one pod whose unload frees, and what was told to the core."""
    made, tally = world(pod=replace(config(slots=2, **fields), unload_frees=True))
    pods = [(replace(pod, engine=Engine.SGLANG), each) for pod, each in made.setup.pods]
    made = World(made.setup._replace(pods=pods), observer=tally, seed=7)
    made.check_every = 1
    heard = []
    made.heard = lambda event, _: heard.append(event)
    return made, tally, heard


def names(heard):
    return [type(event).__name__ for event in heard if "nload" in type(event).__name__]


def test_an_unload_that_frees_ends_when_the_pod_says_so():
    made, tally, heard = sglang()
    made.run([ask(1.0, "y")], until=2.0)
    made._actions[Unload](UNLOAD)
    assert names(heard) == ["Unloaded"]
    engine = made.pods["pod-1"].engine
    assert (engine.slots_used, engine.registered) == (0, ("x", "z"))
    check(made, tally)


def test_it_waits_for_requests_in_flight():
    made, tally, heard = sglang()
    made.kernel.at(1.15, lambda _: made._actions[Unload](UNLOAD), priority=3)
    made.run([ask(1.0, "y")], until=2.0)
    assert names(heard) == ["Unloaded"]
    assert round(heard[[type(event).__name__ for event in heard].index("Unloaded")].t, 9) == 1.19
    check(made, tally)


def test_what_is_gone_already_is_unloaded():
    made, _, heard = sglang()
    made.run([], until=1.0)
    made._actions[Unload](UNLOAD)
    made._actions[Unload](UNLOAD)
    assert names(heard) == ["Unloaded", "Unloaded"]


def test_a_pod_that_is_away_unloads_nothing():
    made, _, heard = sglang()
    made.kernel.at(0.5, lambda _: made.restart_pod("pod-1", down=10.0), priority=3)
    made.run([], until=1.0)
    made._actions[Unload](UNLOAD)
    assert names(heard) == ["UnloadFailed"]


def test_what_was_unloaded_comes_back_into_host_memory():
    made, tally, heard = sglang()
    made.run([ask(1.0, "y")], until=2.0)
    made._actions[Unload](UNLOAD)
    del heard[:]
    made._actions[Load](LOAD)
    assert [(type(event).__name__, event.adapter) for event in heard] == [("LoadSucceeded", "y")]
    engine = made.pods["pod-1"].engine
    assert (engine.slots_used, engine.registered, engine.stats(2.0).on_cpu) == (0, ("x", "z", "y"), ("y",))
    state = made.fleet.state
    assert state.residency.home(0).cells["y"].tier.word == "cpu"
    check(made, tally)


def test_a_pod_that_is_away_loads_nothing():
    made, _, heard = sglang()
    made.kernel.at(0.5, lambda _: made.restart_pod("pod-1", down=10.0), priority=3)
    made.run([], until=1.0)
    made._actions[Load](LOAD)
    assert [type(event).__name__ for event in heard if "Load" in type(event).__name__] == ["LoadFailed"]
