"""Demands as lists and as scenarios, and the memory that slots take."""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lorapick.plan.fleet_size.demand import DemandError, Unsaid, read_demand, run_length, unsaid_lengths
from lorapick.plan.fleet_size.memory import MODELS, memory, other_kv
from lorapick.plan.fleet_size.report import GPU_HOUR
from lorapick.plan.scenario_files import load_scenario
from lorapick.sim.hardware import PRESETS
from lorapick.sim.workload.lengths import FixedLength, UniformLength
from lorapick.sim.workload.popularity import shares


def listed(tmp_path, text, *, name="demand.txt", limit=1.0, **unsaid):
    file = tmp_path / name
    file.write_text(text)
    return read_demand(str(file), Unsaid(**unsaid), limit=limit)


def test_rates_of_a_list_are_the_scenarios(tmp_path):
    scenario = listed(tmp_path, "legal 6\nmedical 3  # per second\nsales 1\n")
    (flow,) = scenario.workload.flows
    assert (flow.process.rate, flow.adapters) == (10.0, ("legal", "medical", "sales"))
    assert shares(flow.popularity, 3).tolist() == pytest.approx([0.6, 0.3, 0.1])
    assert (flow.sizes.prompt, flow.sizes.output) == (FixedLength(1155), FixedLength(211))
    assert scenario.settings.picking.policy == "weighted"
    assert scenario.fleet.limits.max_cpu_loras == 3, "all lie in host memory"


@pytest.mark.parametrize(
    ("unsaid", "names"),
    [
        ({}, ("prompt", "output")),
        ({"prompt": "9"}, ("output",)),
        ({"overrides": {"arrivals.tokens.output": "{lognormal: {mean: 80, cv: 1}}"}}, ("prompt",)),
        ({"overrides": {"arrivals.tokens": "{prompt: 9, output: 9}"}}, ()),
    ],
)
def test_which_token_counts_nobody_gave(tmp_path, unsaid, names):
    scenario = listed(tmp_path, "legal 6\n", **unsaid)
    assert unsaid_lengths(scenario, Unsaid(**unsaid)) == names
    assert unsaid_lengths(load_scenario("saas-50"), Unsaid()) == ()


def test_what_a_list_does_not_say_is_taken_from_options(tmp_path):
    scenario = listed(
        tmp_path, "legal\nmedical\n", rate=3.0, zipf=1.0, prompt="[50, 60]", output="9", seconds=50.0,
        hardware="h100-llama70b-int4", overrides={"fleet.max_num_seqs": "99", "fleet.mode": "inline"},
    )  # fmt: skip
    (flow,) = scenario.workload.flows
    assert shares(flow.popularity, 2).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert (flow.process.rate, flow.sizes.prompt, flow.sizes.output) == (3.0, UniformLength(50, 60), FixedLength(9))
    assert (scenario.run.length, scenario.run.warm_up) == (50.0, 10.0)
    fleet = scenario.fleet
    assert (fleet.hardware, fleet.limits.max_num_seqs, fleet.mode) == ("h100-llama70b-int4", 99, "inline")


def test_a_document_has_ranks_and_pins_by_replicas(tmp_path):
    text = "adapters: [{name: a, rate: 2, rank: 32, pin: {replicas: 2}}, {name: b, rate: 1}]"
    scenario = listed(tmp_path, text, name="demand.yaml")
    assert scenario.adapters.ranks == (32, 16)
    assert [each.pin and each.pin.replicas for each in scenario.settings.adapters] == [2, None]


def test_runs_are_long_enough_for_a_p95():
    assert 0.8 * run_length(50.0, 1.0) == pytest.approx(60, abs=1), "never below a minute"
    assert 0.8 * run_length(4.0, 1.0) * 4.0 == pytest.approx(2000, abs=5), "100 requests above the P95"
    assert 0.8 * run_length(1e5, 30.0) == pytest.approx(600, abs=1), "long beside the limit"


def test_a_scenario_stays_as_it_is_but_for_what_is_overridden(tmp_path):
    assert read_demand("saas-50", Unsaid(), limit=1.0).workload == load_scenario("saas-50").workload
    file = tmp_path / "own.yaml"
    file.write_text(
        "{name: own, source: test, assumes: [none], fleet: {pods: 1, slots: 2}, adapters: {count: 2}, run: {for: 60s},"
        " arrivals: {rate: 2/s, tokens: {prompt: 9, output: 9}}}"
    )
    found = read_demand(str(file), Unsaid(seconds=30.0, hardware="h100-llama70b-int4"), limit=1.0)
    assert (found.name, found.run.length, found.fleet.hardware) == ("own", 30.0, "h100-llama70b-int4")


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("", "demand.txt", "lists no adapters"),
        ("[]", "demand.yaml", "lists no adapters"),
        ("a\nb\n", "demand.txt", "--rate"),
        ("a 0\n", "demand.txt", "0 requests per second in all"),
        ("a -1\n", "demand.txt", "0 or more"),
        ("a 1\na 2\n", "demand.txt", "more than once"),
        ("+ a\n- b\n", "demand.txt", "give the list itself"),
        ("{a: 50, b: 50}", "demand.yaml", "give the list itself"),
        ("a,b 1\n", "demand.txt", "no number"),
        ("t,adapter\n1,a\n", "demand.csv", "lorapick plan pins"),
        ("{pods: 3}: [", "demand.yaml", "demand.yaml"),
        ("[{name: a, rate: 1, pin: {pods: [pod-01]}}]", "demand.yaml", "pin it by replicas"),
        ("fleet: 3", "scenario.yaml", "fleet"),
    ],
)
def test_what_is_no_demand_is_refused_with_the_reason(tmp_path, text, name, words):
    with pytest.raises(ValueError, match=r"(?s).*" + words.replace("(", r"\(")):
        listed(tmp_path, text, name=name)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "demand.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"demand\.txt"):
        read_demand(str(tmp_path / "demand.txt"), Unsaid(), limit=1.0)


@pytest.mark.parametrize(
    ("source", "unsaid", "words"),
    [
        ("saas-51", {}, 'did you mean "saas-50"'),
        (".", {}, "a directory"),
        ("saas-50", {"rate": 3.0}, "arrivals.rate"),
        ("saas-50", {"output": "3"}, "arrivals.tokens"),
        ("saas-50", {"seconds": 10.0}, "warm-up of 120s"),
        ("saas-50", {"seconds": 0.0}, "simulated seconds"),
        ("saas-50", {"overrides": {"fleet.slots": "3"}}, "--slots"),
        ("restart", {}, "pod-03"),
    ],
)
def test_what_contradicts_a_scenario_is_refused(source, unsaid, words):
    with pytest.raises(DemandError) as refused:
        read_demand(source, Unsaid(**unsaid), limit=1.0)
    assert words in str(refused.value)


# -- memory


def test_each_hardware_has_a_model_and_a_slot_as_large_as_measured():
    assert list(MODELS) == list(PRESETS)
    for name, hardware in PRESETS.items():
        found = memory(name, rank=16)
        assert found.slot / hardware.kv_bytes_per_token == pytest.approx(hardware.tokens_of_slot(16), rel=0.07)
        assert found.blocks(8) == pytest.approx(hardware.kv_blocks(8, 16), rel=0.02)
        assert other_kv(found) is None


def test_slots_that_leave_too_little_are_refused_with_how_many_fit():
    found = memory("h100-llama8b", rank=64)
    most = next(slots for slots in range(1000) if found.refusal(slots + 1, longest=8192) is not None)
    words = found.refusal(most + 1, longest=8192)
    assert f"at most {most} slots" in words and "rank 64" in words and f"{(most + 1) * found.slot:,} B" in words
    assert found.refusal(most, longest=8192) is None
    assert found.refusal(most + 1, longest=16) is None, "shorter requests fit"


def test_other_models_and_ranks():
    assert memory("h100-llama8b", rank=32).slot == 2 * memory("h100-llama8b", rank=16).slot
    assert memory("h100-llama8b", rank=16, unified=True).slot == 0
    qwen = memory("h100-llama8b", rank=16, model="qwen2.5-7b")
    assert "57,344 B" in other_kv(qwen)
    with pytest.raises(ValueError, match="take 32"):
        memory("h100-llama8b", rank=17)


def test_the_price_is_that_of_the_bill():
    assert GPU_HOUR.value == 2.5


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | st.text(alphabet="ab -+:{}[],#\n0.1e", max_size=60).map(str.encode))
@pytest.mark.parametrize("name", ["demand.txt", "demand.yaml"])
def test_any_bytes_are_a_demand_or_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    names = None
    with contextlib.suppress(ValueError):
        names = read_demand(str(tmp_path / name), Unsaid(rate=2.0), limit=1.0).adapters.names
    assert names is None or names
