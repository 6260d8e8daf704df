"""`trace:` and `clients:` of scenario files: whole scenarios, since they are about files."""

import gzip
import pickle
from collections import Counter

import pytest

from lorapick.plan.capacity import scaled
from lorapick.plan.scenario_files import load_scenario
from lorapick.sim.build import arrivals_of
from lorapick.sim.run import run
from lorapick.sim.workload.changes import Reweigh
from lorapick.sim.workload.lengths import SizePairs, SizeSplit, TableLength
from lorapick.sim.workload.popularity import Weights, Zipf
from lorapick.sim.workload.processes import Windows
from lorapick.sim.workload.spec import ReplayKey
from lorapick.wire.config.problems import ConfigError

MOONCAKE = b"""{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [1, 2]}
{"timestamp": 3000, "input_length": 600, "output_length": 0, "hash_ids": [1, 3]}
{"timestamp": 6000, "input_length": 1024, "output_length": 7, "hash_ids": [1, 2]}
"""
SERVEGEN = b"""7,0,1.0,1.0,Gamma,1.0,1.0
7,600,3.0,1.0,Gamma,1.0,1.0
9,0,2.0,1.0,Gamma,1.0,1.0
9,600,4.0,1.0,Gamma,1.0,1.0
"""
SCENARIO = """
name: recorded
source: made up
assumes: [nothing]
fleet: {{pods: 2, slots: 2, cpu_slots: 4, mode: inline}}
adapters: {{names: [a, b, c], popularity: {{zipf: 1.0}}}}
arrivals: {arrivals}
run: {{for: 5m, window: 10s}}
phases: {phases}
"""


@pytest.fixture
def scenario(tmp_path):
    """Writes a scenario beside its recordings."""
    (tmp_path / "mooncake.jsonl.gz").write_bytes(gzip.compress(MOONCAKE))
    (tmp_path / "clients.csv").write_bytes(SERVEGEN)
    (tmp_path / "table.json").write_text("[[40, 0.5],\n [100, 1]]\n")
    (tmp_path / "noise.txt").write_bytes(b"no trace\n")

    def write(arrivals, phases="[]"):
        file = tmp_path / "scenario.yaml"
        file.write_text(SCENARIO.format(arrivals=arrivals, phases=phases))
        return load_scenario(str(file))

    return write


def refusal(scenario, arrivals, phases="[]"):
    with pytest.raises(ConfigError) as error:
        scenario(arrivals, phases)
    return str(error.value)


def test_a_trace_is_played_with_the_scenarios_adapters(scenario):
    found = scenario("{trace: {file: mooncake.jsonl.gz, key: prefix, prefix_blocks: 2, speed: 0.5}}")
    (trace,) = found.workload.traces
    assert (trace.name, trace.replay.adapters, trace.replay.popularity) == ("main", ("a", "b", "c"), Zipf(1.0))
    assert trace.replay.key is ReplayKey.PREFIX
    first, second, third = arrivals_of(found, 1)
    assert [each.t for each in (first, second, third)] == [0.0, 6.0, 12.0]
    assert [each.id for each in (first, second, third)] == ["main-1", "main-2", "main-3"]
    assert (first.prompt_tokens, second.output_tokens, len(first.blocks)) == (1024, 1, 64)
    assert first.adapter == third.adapter
    assert first.blocks == third.blocks


def test_traces_and_flows_are_merged_in_order_of_time(scenario):
    found = scenario(
        "[{name: old, trace: {file: mooncake.jsonl.gz}, adapters: [c]},"
        " {name: new, rate: 1/s, tokens: {prompt: 8, output: 2}, adapters: [a, b]}]"
    )
    times = [(each.t, each.id.split("-")[0]) for each in arrivals_of(found, 1)]
    assert times == sorted(times, key=lambda each: each[0])
    assert Counter(name for _, name in times)["old"] == 3


def test_a_run_replays_a_trace_and_so_does_another_process(scenario):
    found = scenario("{trace: {file: mooncake.jsonl.gz}}")
    again = pickle.loads(pickle.dumps(found))
    one, two = (run(each, policy="weighted").whole for each in (found, again))
    assert one.served == one.arrivals == 3
    assert one == two


def test_what_ships_is_found_by_its_name(scenario):
    found = scenario("{trace: {file: traces/AzureLLMInferenceTrace_2023_conv.csv.zst}}")
    assert sum(1 for _ in arrivals_of(found, 1)) == pytest.approx(5.53 * 300, rel=0.3)


def test_phases_change_the_mix_of_a_trace_and_never_its_rates(scenario):
    found = scenario("{trace: {file: mooncake.jsonl.gz}}", "[{at: 1m, change: {popularity: uniform}}]")
    (change,) = found.workload.traces[0].replay.changes
    assert (type(change), change.at) == (Reweigh, 60.0)
    assert "trace.speed" in refusal(scenario, "{trace: {file: mooncake.jsonl.gz}}", "[{at: 1m, change: {rate: '+5%'}}]")
    both = "[{name: t, trace: {file: mooncake.jsonl.gz}}, {name: f, rate: 1/s, tokens: {prompt: 8, output: 2}}]"
    found = scenario(both, "[{at: 1m, change: {rate: '+5%'}}]")
    assert (len(found.workload.flows[0].changes), found.workload.traces[0].replay.changes) == (1, ())


def test_capacity_plays_traces_faster(scenario):
    found = scaled(scenario("{trace: {file: mooncake.jsonl.gz, speed: 2}}"), 3.0)
    assert [each.t for each in arrivals_of(found, 1)] == [0.0, 0.5, 1.0]


CLIENTS = "clients: {file: clients.csv, span: [0s, 20m]}, tokens: {prompt: 10, output: 5}"


def test_the_busiest_client_is_the_first_adapter(scenario):
    flows = scenario(f"{{{CLIENTS}, rate: 10/s}}").workload.flows
    assert [(each.name, each.adapters) for each in flows] == [("a", ("a",)), ("b", ("b",))]
    assert [window.rate for window in flows[0].process.windows] == [4.0, 8.0]
    assert [window.rate for window in flows[1].process.windows] == [2.0, 6.0]


def test_measured_shares_with_a_process_of_its_own(scenario):
    (flow,) = scenario(f"{{{CLIENTS}, rate: 10/s, process: {{gamma: {{cv: 2}}}}}}").workload.flows
    assert (flow.name, flow.adapters, flow.popularity) == ("main", ("a", "b"), Weights((7200.0, 4800.0)))
    assert (flow.process.rate, flow.process.cv) == (10.0, 2.0)


def test_clients_of_several_entries_have_names_of_their_own(scenario):
    flows = scenario(f"[{{name: x, {CLIENTS}}}, {{name: y, {CLIENTS}, priority: 3}}]").workload.flows
    assert [each.name for each in flows] == ["x-a", "x-b", "y-a", "y-b"]
    assert [each.priority for each in flows] == [0, 0, 3, 3]
    assert isinstance(flows[0].process, Windows)


@pytest.mark.parametrize(
    ("arrivals", "message"),
    [
        ("{trace: {file: nowhere.csv}}", "no file nowhere.csv comes with lorapick"),
        ("{trace: {file: noise.txt}}", "noise.txt:1: the first line is"),
        ("{trace: {key: row}}", 'the key "file" is missing'),
        ("{trace: {file: mooncake.jsonl.gz, key: user}}", "key"),
        ("{trace: {file: mooncake.jsonl.gz, speed: 0}}", "speed"),
        ("{trace: {file: mooncake.jsonl.gz}, rate: 3/s}", "unknown key"),
        ("{trace: {file: mooncake.jsonl.gz}, popularity: {weights: [1, 2]}}", "weights"),
        ("{clients: {file: noise.txt, span: [0s, 10m]}, tokens: {prompt: 1, output: 1}}", "noise.txt"),
        ("{clients: {file: clients.csv, span: [10m, 0s]}, tokens: {prompt: 1, output: 1}}", "[begin, end]"),
        ("{clients: {file: clients.csv, span: [1h, 2h]}, tokens: {prompt: 1, output: 1}}", "requests in the span"),
        ("{clients: {file: clients.csv, span: [0s, 10m]}}", 'the key "tokens" is missing'),
        (f"{{{CLIENTS}, popularity: uniform}}", "were measured"),
    ],
)
def test_what_cannot_be_is_told_with_its_line(scenario, arrivals, message):
    said = refusal(scenario, arrivals)
    assert message in said
    assert "scenario.yaml:7" in said


PLAIN = "{{rate: 10/s, tokens: {}}}"


def test_lengths_of_a_traces_requests(scenario):
    found = scenario(PLAIN.format("{trace: mooncake.jsonl.gz}"))
    (flow,) = found.workload.flows
    # The second request has no answer.
    assert flow.sizes == SizePairs(((1024, 5), (1024, 7)))
    assert {(each.prompt_tokens, each.output_tokens) for each in arrivals_of(found, 1)} == {(1024, 5), (1024, 7)}
    assert pickle.loads(pickle.dumps(found)).workload == found.workload


def test_lengths_by_a_table_of_both_together(scenario):
    found = scenario(PLAIN.format("{cdf: table.json, prompt_share: 0.75}"))
    (flow,) = found.workload.flows
    assert flow.sizes == SizeSplit(TableLength(((40, 0.5), (100, 1.0))), 0.75)
    drawn = list(arrivals_of(found, 1))
    assert len(drawn) > 100
    assert all(each.prompt_tokens + each.output_tokens <= 100 for each in drawn)
    assert all(each.prompt_tokens >= 2 * each.output_tokens for each in drawn if each.output_tokens > 3)
    comes_with_lorapick = scenario(PLAIN.format("{cdf: traces/fleetsim_azure_cdf.json, prompt_share: 0.8}"))
    assert comes_with_lorapick.workload.flows[0].sizes.total.points[0][0] == 64


def test_clients_and_pipelines_take_lengths_from_recordings_too(scenario):
    tokens = "{trace: mooncake.jsonl.gz}"
    found = scenario("{clients: {file: clients.csv, span: [0s, 20m]}, rate: 5/s, tokens: " + tokens + "}")
    assert {flow.sizes for flow in found.workload.flows} == {SizePairs(((1024, 5), (1024, 7)))}
    pipeline = "[]\npipelines: [{first: a, then: b, tokens: " + tokens + "}]"
    followed = scenario("{rate: 5/s, tokens: {prompt: 1, output: 1}}", pipeline)
    assert followed.workload.follows[0].sizes == SizePairs(((1024, 5), (1024, 7)))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("{trace: absent.csv}", "tokens.trace: no file absent.csv"),
        ("{trace: noise.txt}", "noise.txt:1: the first line"),
        ("{trace: mooncake.jsonl.gz, prompt_share: 0.5}", "prompt_share"),
        ("{cdf: table.json}", 'the key "prompt_share" is missing'),
        ("{cdf: table.json, prompt_share: 2}", "prompt_share: must be"),
        ("{cdf: noise.txt, prompt_share: 0.5}", "a list of [tokens, cumulative share] is needed"),
        ("{prompt: 5}", 'the key "output" is missing'),
    ],
)
def test_lengths_that_cannot_be_had(scenario, tokens, message):
    assert message in refusal(scenario, PLAIN.format(tokens))
