"""What is lost, forgotten or made up anywhere in a run is found: each test breaks one part and plays a scenario."""

import pytest
from sim_helpers import SCENARIO, ask, config, world

from lorapick.core.picking.policies import POLICIES
from lorapick.model.events import RequestArrived
from lorapick.pod.engine import PodEngine
from lorapick.pod.lru import Levels
from lorapick.sim.conservation import check
from lorapick.sim.deadlock import Deadlock
from lorapick.sim.residencies import Residencies
from lorapick.sim.run import run
from lorapick.sim.sampling import Sampler
from lorapick.sim.scenario_text import parse_scenario
from lorapick.sim.tally import Tally
from lorapick.sim.world import World

PIPELINE = "pipelines:\n  - {first: adapter-1, then: adapter-2, after: end, delay: [10ms, 2s]}\n"


def play(text="", **overrides):
    scenario = parse_scenario(SCENARIO + text, file="s.yaml", policies=POLICIES, overrides=overrides)
    return run(scenario, policy="round-robin")


def every(number, method):
    """The method, but each `number`-th call does nothing."""
    calls = 0

    def forgetful(*arguments, **named):
        nonlocal calls
        calls += 1
        if calls % number:
            return method(*arguments, **named)
        return None

    return forgetful


def forget(monkeypatch, owner, name, *, number):
    monkeypatch.setattr(owner, name, every(number, getattr(owner, name)))


# -- residencies


def test_evictions_that_nobody_counts_are_found(monkeypatch):
    forget(monkeypatch, Tally, "_evicted", number=1)
    with pytest.raises(AssertionError, match=r"pod-0\d: residencies are open of \["):
        play()


def test_half_of_the_loads_uncounted_are_found(monkeypatch):
    forget(monkeypatch, Residencies, "loaded", number=2)
    with pytest.raises(AssertionError, match=r"pod-0\d: .* left a slot at .* that it did not hold"):
        play()


def test_residencies_of_adapters_that_stay_uncounted_are_found(monkeypatch):
    # Four slots for four adapters on each pod: nothing is ever evicted, so only the pods' slots can tell.
    forget(monkeypatch, Residencies, "loaded", number=2)
    with pytest.raises(AssertionError, match=r"pod-01: residencies are open of .* its slots hold"):
        play(**{"fleet.slots": "4"})


def test_residencies_that_are_too_long_are_found_though_the_adapters_are_right(monkeypatch):
    loaded = Residencies.loaded
    monkeypatch.setattr(
        Residencies, "loaded", lambda self, pod, adapter, now: loaded(self, pod, adapter, now=now - 0.001)
    )
    with pytest.raises(AssertionError, match=r"pod-0\d: residencies add up to .* s, slots in use to .* s"):
        play()


def test_a_pod_with_more_adapters_than_slots_is_found(monkeypatch):
    reserve = Levels.reserve

    def without_eviction(self, adapter):
        self.slots += 1
        return reserve(self, adapter)

    monkeypatch.setattr(Levels, "reserve", without_eviction)
    with pytest.raises(AssertionError, match=r"pod-0\d: 3 slots are in use at .* s of 2"):
        play()


def test_each_look_of_a_run_compares(monkeypatch):
    made, tally = world(pods=1)
    Sampler(made, tally, start=0.0, end=4.0, window=1.0)
    made.kernel.at(1.5, lambda _: tally.residencies.loaded("pod-1", "ghost", now=1.5), priority=3)
    with pytest.raises(AssertionError, match=r"open of \['ghost', 'x'\] at 2\.0 s, its slots hold \['x'\]"):
        made.run([ask(0.0, "x")], until=4.0)


# -- requests


def test_a_request_that_its_pod_swallows_is_named(monkeypatch):
    submit, taken = PodEngine.submit, []

    def swallow(self, request, now):
        taken.append(request.id)
        if len(taken) != 100:
            submit(self, request, now)

    monkeypatch.setattr(PodEngine, "submit", swallow)
    with pytest.raises(Deadlock, match=r"^1 requests are neither held by the picker nor on the pod .*: ") as found:
        play()
    assert f": {taken[99]} (" in str(found.value)


def test_a_request_that_the_core_never_hears_of_is_named(monkeypatch):
    hear, unheard = World._hear, []

    def forgetful(self, event):
        if isinstance(event, RequestArrived) and event.t > 10.0 and not unheard:
            unheard.append(event.request.id)
        else:
            hear(self, event)

    monkeypatch.setattr(World, "_hear", forgetful)
    with pytest.raises(Deadlock, match=r"^1 requests are neither held by the picker nor on the pod .*: ") as found:
        play()
    assert f": {unheard[0]} (" in str(found.value)


def test_who_waits_at_the_core_is_not_lost():
    # Four seats and four places in a queue: the others wait at the picker for the load that the first began.
    made, tally = world(pods=2, pod=config(seats=4, queue=4))
    made.run([ask(0.001 * n, "x") for n in range(30)], until=0.05)
    check(made, tally)
    waiting = [each for each in made.fleet.state.flights.values() if each.row < 0]
    assert len(waiting) > 0


# -- arrivals


@pytest.mark.parametrize("text", ["", PIPELINE])
def test_every_fifth_arrival_dropped_is_found(monkeypatch, text):
    forget(monkeypatch, World, "_enter", number=5)
    with pytest.raises(AssertionError, match=r"\d+ arrivals were drawn, \d+ counted"):
        play(text)


def test_followers_that_never_come_are_found(monkeypatch):
    monkeypatch.setattr(World, "_follow", lambda *_: None)
    with pytest.raises(AssertionError, match=r"\d+ arrivals were drawn, \d+ counted"):
        play(PIPELINE)


def test_arrivals_that_nobody_counts_are_found(monkeypatch):
    made, tally = world()
    made.run([ask(0.0, "x"), ask(0.1, "x")])
    tally.windows[0].arrivals -= 1
    tally.windows[0].served -= 1
    with pytest.raises(AssertionError, match="2 arrivals were drawn, 1 counted, and the core was told of 2"):
        check(made, tally)


def test_what_is_planned_beyond_the_end_is_no_arrival():
    play(PIPELINE)
    made, tally = world()
    made.run([ask(0.0, "x"), ask(1.0, "x"), ask(5.0, "x"), ask(6.0, "x")], until=1.0)
    assert made.drawn == 2
    check(made, tally)
