"""`phases:` of scenario files."""

import pytest
from sim_helpers import SCENARIO

from lorapick.core.picking.policies import POLICIES
from lorapick.model.adapters import PinSpec
from lorapick.sim.build import specs_of
from lorapick.sim.fleet_changes import Ask, Drain, FailLoads, Fire, Join, Move, Pin, Restart, Unask, Unpin
from lorapick.sim.scenario_text import parse_scenario
from lorapick.sim.workload.changes import Reweigh, Scale, Split
from lorapick.sim.workload.popularity import Zipf
from lorapick.wire.config import ConfigError

TWO_FLOWS = SCENARIO.replace(
    "arrivals: {rate: 20/s, tokens: {prompt: 50, output: [4, 12]}}",
    """arrivals:
  - {name: one, rate: 20/s, tokens: {prompt: 50, output: 5}}
  - {name: burst, process: {burst: {count: 3, at: 1s}}, tokens: {prompt: 50, output: 5}}""",
)


def read(phase, text=SCENARIO):
    return parse_scenario(f"{text}\nphases:\n  - {phase}\n", file="s.yaml", policies=POLICIES)


def problems(phase, text=SCENARIO):
    with pytest.raises(ConfigError) as caught:
        read(phase, text)
    return str(caught.value)


def changes(phase, text=SCENARIO):
    scenario = read(phase, text)
    return [flow.changes for flow in scenario.workload.flows], scenario.changes


def test_a_split_makes_variants_that_pods_have():
    scenario = read('{at: 10s, over: 5s, change: {split: {top: 2, into: "{name}-exp", share: 0.5}}}')
    assert scenario.workload.flows[0].changes == (Split(at=10.0, top=2, share=0.5, into="{name}-exp", over=5.0),)
    assert [each.name for each in scenario.settings.adapters][4:] == ["adapter-1-exp", "adapter-2-exp"]


def test_variants_that_nobody_declared_are_on_the_pods_only():
    scenario = read("{at: 10s, change: {split: {top: 1, share: 0.5, declared: false}}}")
    assert [each.name for each in scenario.settings.adapters] == [f"adapter-{number}" for number in range(1, 5)]
    assert scenario.names()[4:] == ("adapter-1-experiment",)
    assert specs_of(scenario)[-1].name == "adapter-1-experiment"


def test_rates_and_popularity():
    traffic, pods = changes('{at: 10s, change: {rate: "+5%", popularity: {zipf: 2}}}')
    assert traffic == [(Scale(10.0, 1.05), Reweigh(10.0, Zipf(2.0)))]
    assert pods == ()


def test_changes_of_rate_leave_bursts_alone_and_flows_can_be_named():
    assert changes("{at: 1s, change: {rate: 2}}", TWO_FLOWS)[0] == [(Scale(1.0, 2.0),), ()]
    assert changes("{at: 1s, flow: one, change: {rate: 2}}", TWO_FLOWS)[0] == [(Scale(1.0, 2.0),), ()]


def test_restarts_and_pins():
    assert changes("{at: 10s, change: {restart: {pod: pod-02, down: 3s}}}")[1] == (
        Restart(at=10.0, pod="pod-02", down=3.0),
    )
    assert changes("{at: 0, change: {pin: {adapters: {top: 2}, pods: [pod-01], reserve: true}}}")[1] == (
        Pin(at=0.0, adapters=("adapter-1", "adapter-2"), pin=PinSpec(pods=("pod-01",), reserve=True)),
    )
    assert changes("{at: 1s, change: {unpin: [adapter-4]}}")[1] == (Unpin(at=1.0, adapters=("adapter-4",)),)


def test_pods_that_leave_and_come():
    assert changes("{at: 10s, change: {drain: {pod: pod-02, grace: 3s}}}")[1] == (
        Drain(at=10.0, pod="pod-02", grace=3.0),
    )
    joined = read("{at: 5s, change: {add: {pod: pod-03}}}\n  - {at: 9s, change: {restart: {pod: pod-03, down: 1s}}}")
    assert joined.changes == (Join(at=5.0, pod="pod-03"), Restart(at=9.0, pod="pod-03", down=1.0))
    assert (joined.fleet.names(), joined.fleet.later) == (("pod-01", "pod-02"), ("pod-03",))
    assert read("{at: 5s, change: {add: {pod: pod-01}}}").fleet.later == ()


def test_an_upgrade_takes_one_pod_after_the_other():
    assert changes("{at: 2s, change: {upgrade: {every: 8s, down: 3s, drain: 4s}}}")[1] == (
        Drain(at=2.0, pod="pod-01", grace=4.0, down=3.0),
        Drain(at=10.0, pod="pod-02", grace=4.0, down=3.0),
    )


def test_what_operators_and_events_say():
    assert changes("{at: 1s, change: {load: {adapter: adapter-4, replicas: 2, selector: {zone: a}, for: 5s}}}")[1] == (
        Ask(at=1.0, adapters=("adapter-4",), replicas=2, selector={"zone": "a"}, lasts=5.0),
    )
    assert changes("{at: 1s, change: {unload: {adapters: {top: 2}, pods: [pod-01]}}}")[1] == (
        Unask(at=1.0, adapters=("adapter-1", "adapter-2"), pods=("pod-01",)),
    )
    assert changes("{at: 1s, change: {move: {adapter: adapter-1, from: pod-01, to: pod-02}}}")[1] == (
        Move(at=1.0, adapter="adapter-1", source="pod-01", target="pod-02"),
    )
    assert changes("{at: 1s, change: {trigger: {event: login, attributes: {tenant: t}}}}")[1] == (
        Fire(at=1.0, event="login", attributes={"tenant": "t"}),
    )
    assert changes("{at: 1s, change: {fail_loads: {share: 0.3}}}")[1] == (FailLoads(at=1.0, share=0.3),)


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        ("{change: {rate: 2}}", 'phases[0]: the key "at" is missing'),
        ("{at: 1s}", 'the key "change" is missing'),
        ("{at: 1h, change: {rate: 2}}", "must lie within the run"),
        ("{at: 1s, change: {rates: 2}}", 'did you mean "rate"?'),
        ("{at: 1s, change: {split: {top: 9, share: 0.5}}}", "top is 9; at most the number of adapters, 4"),
        ('{at: 1s, change: {split: {top: 1, share: 0.5, into: "x"}}}', "it must contain {name}"),
        ("{at: 1s, change: {split: {top: 1}}}", 'the key "share" is missing'),
        ("{at: 1s, change: {split: {top: 1, share: 1, declared: maybe}}}", "phases[0].change.split.declared"),
        ("{at: 1s, change: {split: {top: 1, share: 1, declare: no}}}", 'did you mean "declared"?'),
        (
            (
                "{at: 1s, change: {split: {top: 1, share: 1, declared: false}}}\n"
                "  - {at: 2s, change: {split: {top: 1, share: 1}}}"
            ),
            "declared: false makes adapter-1-experiment, which is declared as an adapter or by another split",
        ),
        ("{at: 1s, change: {restart: {pod: pod-09, down: 1s}}}", 'must be "pod-01" or "pod-02"'),
        ("{at: 1s, change: {restart: {pod: pod-01}}}", 'the key "down" is missing'),
        ("{at: 1s, change: {pin: {pods: [pod-01]}}}", "must have either adapter or adapters"),
        ("{at: 1s, change: {pin: {adapters: {top: 1}}}}", "a pin needs replicas, pods or selector"),
        ("{at: 1s, change: {drain: {pod: pod-09, grace: 1s}}}", 'must be "pod-01" or "pod-02"'),
        ("{at: 1s, change: {upgrade: {every: 5s, down: 3s, drain: 4s}}}", "must be at least drain and down together"),
        ("{at: 15s, change: {upgrade: {every: 9s, down: 3s, drain: 4s}}}", "reaches the last pod at 24s"),
        ("{at: 1s, change: {upgrade: {every: 9s, down: 3s}}}", 'the key "drain" is missing'),
        ("{at: 1s, change: {load: {}}}", "must have either adapter or adapters"),
        ("{at: 1s, change: {move: {adapter: adapter-1, from: pod-01}}}", 'the key "to" is missing'),
        ("{at: 1s, change: {fail_loads: {share: 2}}}", "must be a share"),
        ("{at: 1s, flow: two, change: {rate: 2}}", 'there is no flow "two"; flows are main'),
    ],
)
def test_mistakes(phase, message):
    assert message in problems(phase)
