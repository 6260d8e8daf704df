"""Scenario files whose pods have roles: reading them, and runs in which nothing is lost or counted twice."""

import pytest
from sim_helpers import SCENARIO

from lorapick.core.picking.policies import POLICIES
from lorapick.model.disaggregation import Choice, Decide
from lorapick.model.pods import Role
from lorapick.sim.build import arrivals_of, pods_of, world_of
from lorapick.sim.metrics import METRICS
from lorapick.sim.run import Options, run
from lorapick.sim.scenario_text import parse_scenario
from lorapick.sim.tally import Tally
from lorapick.wire.config import ConfigError

ROLES = "{prefill: {pods: 2, slots: 1}, decode: 2}"
SPLIT = "settings:\n  disaggregation: {decide: tokens, uncached_tokens: 100, link_latency: 5ms}\n"
FAULTS = """phases:
  - {at: 5s, change: {restart: {pod: pod-01, down: 1s}}}
  - {at: 7s, change: {restart: {pod: pod-03, down: 1s}}}
  - {at: 9s, change: {restart: {pod: pod-04, down: 1s}}}
"""
LONG = {
    "fleet.pods": "4",
    "fleet.mode": "inline",
    "fleet.roles": ROLES,
    "arrivals.tokens": "{prompt: [50, 2000], output: [4, 40]}",
    "arrivals.rate": "12/s",
    "run.for": "11s",
    "run.warm_up": "1s",
}


def tiny(text="", **overrides):
    return parse_scenario(SCENARIO + text, file="s.yaml", policies=POLICIES, overrides=overrides)


def problems(**overrides):
    with pytest.raises(ConfigError) as caught:
        tiny(**overrides)
    return [problem.message for problem in caught.value.problems]


# -- the file


def test_the_first_pods_have_the_roles_and_their_slots():
    scenario = tiny(**{"fleet.pods": "5", "fleet.roles": ROLES, "fleet.slots": "3"})
    pods = pods_of(scenario.fleet)
    assert [each.role.value for each in pods] == ["prefill", "prefill", "decode", "decode", "both"]
    assert [each.limits.max_loras for each in pods] == [1, 1, 3, 3, 3]
    world = world_of(scenario, policy="cost", seed=1, observer=Tally(start=0.0, window=1.0))
    few, many = (world.pods[name].engine.config for name in ("pod-01", "pod-03"))
    assert (few.limits.max_loras, many.limits.max_loras) == (1, 3)
    assert few.kv_blocks > many.kv_blocks


def test_without_roles_all_pods_do_both():
    assert {each.role for each in pods_of(tiny().fleet)} == {Role.BOTH}
    assert tiny(**{"fleet.roles": "{}"}).fleet == tiny().fleet


def test_more_slots_than_host_memory_has_room_for_take_more_of_it():
    scenario = tiny(**{"fleet.roles": "{prefill: {pods: 1, slots: 6}, decode: 1}"})
    assert [each.limits.max_cpu_loras for each in pods_of(scenario.fleet)] == [6, 4]


def test_the_pickers_part_is_its_settings():
    settings = tiny("settings:\n  disaggregation: {choice: independent, decide: always}\n").settings
    assert settings.disaggregation.choice is Choice.INDEPENDENT
    assert settings.disaggregation.decide is Decide.ALWAYS


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"fleet.roles": "{prefill: 2, decode: 1}"}, "gives roles to 3 pods, and there are 2"),
        ({"fleet.roles": "{prefill: 2}"}, "leaves no pod that decodes"),
        ({"fleet.roles": "{encode: 1}"}, 'must be "both", "prefill" or "decode"'),
        ({"fleet.roles": "{prefill: {slots: 1}}"}, 'the key "pods" is missing'),
        ({"fleet.roles": "{prefill: 0}"}, "must be a whole number of at least 1"),
        ({"fleet.roles": "{prefill: 1}", "fleet.mode": "inline", "fleet.memory": "unified"}, "needs memory: slots"),
        ({"fleet.roles": "{prefill: {pods: 1, slots: 900}, decode: 1}"}, "leave no memory for KV"),
    ],
)
def test_what_cannot_be_is_refused(overrides, words):
    assert any(words in message for message in problems(**overrides)), problems(**overrides)


# -- runs


@pytest.mark.parametrize("policy", ["round-robin", "weighted", "cost"])
def test_nothing_is_lost_between_two_pods(policy):
    report = run(tiny(SPLIT + FAULTS, **LONG), policy=policy, options=Options(check_every=20))
    whole = report.whole
    ended = whole.served + whole.failed + whole.rejected + whole.abandoned
    assert ended + whole.in_flight == whole.arrivals > 80
    begun = whole.handed["begun"]
    assert 0.5 * whole.arrivals < begun < whole.arrivals  # short prompts stay whole
    assert whole.handed["fetched"] + whole.handed.get("alone", 0) <= begun
    assert whole.handed["fetched"] > 0.7 * begun
    assert whole.transfer.count >= whole.handed["fetched"]
    assert report.bounds is None
    prefill, decode = report.sides
    assert (prefill.role, prefill.pods, decode.role, decode.pods) == (Role.PREFILL, 2, Role.DECODE, 2)
    assert prefill.loads + decode.loads == whole.loads
    assert prefill.hits + decode.hits == whole.hits + whole.prefill_hits
    assert prefill.misses + decode.misses == whole.misses + whole.prefill_misses
    assert prefill.gpu.plus(decode.gpu).total == pytest.approx(4 * whole.length)


def played(slots):
    """A whole run with so many slots on each pod that prefills, and what its picker counted."""
    roles = f"{{prefill: {{pods: 2, slots: {slots}}}, decode: 2}}"
    scenario = tiny(SPLIT, **LONG | {"fleet.roles": roles, "run.warm_up": "0s"})
    worlds = []
    report = run(scenario, policy="cost", options=Options(prepare=worlds.append))
    return report, worlds[0].fleet.state.tally.splits, scenario


def test_sides_do_what_they_are_for():
    report, splits, scenario = played(slots=4)
    prefill, decode = report.sides
    prompts = [each.prompt_tokens for each in arrivals_of(scenario, scenario.run.seed)]
    short = sum(tokens < 100 for tokens in prompts[: report.whole.arrivals])
    assert short > 0
    assert splits == {"split": report.whole.arrivals - short, "alone": short}
    # What the pods that decode prefill are the short prompts.
    assert decode.share("prefill") < 0.01 * prefill.share("prefill")
    assert decode.share("decode") > 3 * prefill.share("decode")
    assert METRICS["split_share"].of(report.whole) > 0.9
    assert METRICS["tpot_p95_ms"].of(report.whole) > 10
    assert METRICS["transfer_p95_ms"].of(report.whole) >= 5
    assert METRICS["goodput"].of(report.whole) is None  # nothing was promised


def test_where_no_pod_that_prefills_has_a_slot_the_prompt_stays():
    report, splits, _ = played(slots=1)
    prefill, decode = report.sides
    roomy, _, _ = played(slots=4)
    stayed = splits["nobody_prefills"]
    # Four adapters, two slots: who finds both in use, or a load there, is prefilled where it is decoded.
    assert stayed > 10
    assert splits.total() == report.whole.arrivals == roomy.whole.arrivals
    assert report.whole.handed["begun"] == splits["split"]
    # The same prompts are prefilled, here or there.
    whole, moved = (sum(side.gpu.prefill for side in each.sides) for each in (roomy, report))
    assert moved == pytest.approx(whole, rel=0.05)
    share = decode.gpu.prefill / (prefill.gpu.prefill + decode.gpu.prefill)
    assert share == pytest.approx(stayed / splits.total(), abs=0.05)


def test_goodput_is_what_keeps_the_promise():
    kept = {"settings.slo": "{ttft_p95: 100ms, latency_p95: 120ms}", "fleet.mode": "inline"}
    whole = run(tiny(**kept), policy="cost").whole
    assert 0 < whole.good < whole.served
    assert METRICS["goodput"].of(whole) == whole.good / whole.length
    assert run(tiny(latency_limit="60s"), policy="cost").whole.good == whole.served


def test_without_disaggregation_nobody_counts_any():
    whole = run(tiny(), policy="cost").whole
    assert (whole.handed, whole.transfer.count, whole.prefill_hits) == ({}, 0, 0)
    assert METRICS["split_share"].of(whole) == 0
    assert METRICS["prefill_hit_ratio"].of(whole) is None
