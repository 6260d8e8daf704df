"""`pipelines:` of scenario files, and what becomes of them in a run."""

from collections import Counter

import pytest

from lorapick.core.picking.policies import POLICIES
from lorapick.sim.build import arrivals_of, world_of
from lorapick.sim.observer import Observer
from lorapick.sim.run import run
from lorapick.sim.scenario_text import parse_scenario
from lorapick.sim.workload.lengths import FixedLength, Sizes
from lorapick.sim.workload.spec import After, Follow
from lorapick.wire.config.problems import ConfigError

SCENARIO = """
name: pipeline
source: made up
assumes: [nothing]
fleet: {{pods: 2, slots: 2, cpu_slots: 4, mode: inline}}
adapters: {{names: [extract, judge, write]}}
arrivals: {{rate: 2/s, adapters: [extract], tokens: {{prompt: 20, output: 5}}}}
pipelines: {pipelines}
run: {{for: 1m, window: 10s}}
"""


def read(pipelines):
    return parse_scenario(SCENARIO.format(pipelines=pipelines), file="s.yaml", policies=POLICIES)


def test_an_edge_says_what_follows_and_when():
    found = read(
        "[{first: extract, then: judge}, {first: judge, then: write, probability: 0.5, after: arrival,"
        " delay: [100ms, 2s], tokens: {prompt: 9, output: 3}}]"
    )
    assert found.workload.follows == (
        Follow(first="extract", then="judge"),
        Follow(
            first="judge",
            then="write",
            probability=0.5,
            after=After.ARRIVAL,
            delay=(0.1, 2.0),
            sizes=Sizes(FixedLength(9), FixedLength(3)),
        ),
    )


@pytest.mark.parametrize(
    ("pipelines", "message"),
    [
        ("[{first: extract}]", 'the key "then" is missing'),
        ("[{first: extract, then: nobody}]", "is no adapter of this scenario"),
        ("[{first: extract, then: judge}, {first: judge, then: extract}]", "it may not come back"),
        ("[{first: extract, then: judge, delay: [2s, 1s]}]", "[shortest, longest]"),
        ("[{first: extract, then: judge, probability: 2}]", "a share"),
        ("[{first: extract, then: judge, after: never}]", "after"),
    ],
)
def test_what_cannot_be_is_told(pipelines, message):
    with pytest.raises(ConfigError, match=r"s\.yaml:\d") as error:
        read(pipelines)
    assert message in str(error.value)


class Times(Observer):
    """When requests came and when they were answered."""

    def __init__(self):
        self.came, self.left, self.world = {}, {}, None

    def arrived(self, arrival):
        self.came[arrival.id] = (arrival.adapter, self.world.kernel.now)

    def ended(self, request_id, outcome, *, now):
        self.left[request_id] = now


def test_a_follower_comes_when_its_first_was_answered():
    scenario = read("[{first: extract, then: judge, delay: 250ms}, {first: judge, then: write}]")
    seen = Times()
    seen.world = world_of(scenario, policy="weighted", seed=1, observer=seen)
    seen.world.run(arrivals_of(scenario, 1))
    counts = Counter(adapter for adapter, _ in seen.came.values())
    assert counts["extract"] > 80
    for request_id, (adapter, came) in seen.came.items():
        if adapter == "extract":
            if seen.left[request_id] + 0.25 < 60.0:
                assert seen.came[f"{request_id}.0"] == ("judge", pytest.approx(seen.left[request_id] + 0.25))
        else:
            first = request_id.rpartition(".")[0]
            assert came >= seen.left[first]


@pytest.mark.parametrize("after", ["end", "arrival"])
def test_followers_are_counted_and_kept_apart_by_seed_alone(after):
    scenario = read(f"[{{first: extract, then: judge, probability: 0.5, after: {after}}}]")
    one, two = (run(scenario, policy=policy).whole for policy in ("weighted", "round-robin"))
    assert one.arrivals == one.served + one.in_flight
    assert abs(one.arrivals - two.arrivals) <= 1, "the same pipelines under every policy, but for the last moment"
