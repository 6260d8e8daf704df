"""`phases:` of scenario files."""

import pytest
from sim_helpers import SCENARIO

from lorapick.core.picking.policies import POLICIES
from lorapick.model.adapters import PinSpec
from lorapick.sim.build import specs_of
from lorapick.sim.fleet_changes import Pin, Restart, Unpin
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
        ("{at: 1s, flow: two, change: {rate: 2}}", 'there is no flow "two"; flows are main'),
    ],
)
def test_mistakes(phase, message):
    assert message in problems(phase)
