"""From scenarios to worlds."""

import pytest
from sim_helpers import SCENARIO

from lorapick.core.picking.policies import POLICIES
from lorapick.model.adapters import PinSpec
from lorapick.model.events import PodReported
from lorapick.model.tiers import Tier
from lorapick.pod.values import SwapMode
from lorapick.sim.build import arrivals_of, names_of, pod_config, retention_of, settings_of, specs_of, world_of
from lorapick.sim.hardware import PRESETS
from lorapick.sim.run import run
from lorapick.sim.scenario_text import parse_scenario
from lorapick.sim.tally import Tally

SPLIT = 'phases:\n  - {at: 10s, change: {split: {top: 1, into: "{name}-b", share: 0.5}}}\n'
PINS = """phases:
  - {at: 6s, change: {pin: {adapters: {top: 1}, pods: [pod-01]}}}
  - {at: 8s, change: {unpin: {top: 1}}}
"""


def tiny(text="", **overrides):
    return parse_scenario(SCENARIO + text, file="s.yaml", policies=POLICIES, overrides=overrides)


def test_pods_are_what_the_hardware_says():
    config = pod_config(tiny(**{"fleet.mode": "inline"}))
    preset = PRESETS["h100-llama8b"]
    assert (config.step, config.swap) == (preset.step, preset.swap)
    # 307,600 tokens less two slots of 751 tokens each.
    assert config.kv_blocks == (307_600 - 2 * 751) // 16
    assert (config.mode, config.limits.max_loras, config.limits.max_num_seqs) == (SwapMode.INLINE, 2, 16)


def test_slots_take_from_kv_what_was_measured():
    small, large = PRESETS["h100-llama8b"], PRESETS["h100-llama70b-int4"]
    assert [round(small.tokens_of_slot(rank)) for rank in (8, 16, 32)] == [401, 751, 1451]
    # The war story's fix: 4 more slots took about 2 of the 30 GB.
    taken = (large.kv_blocks(4, 16) - large.kv_blocks(8, 16)) * 16 * large.kv_bytes_per_token
    assert 1.4e9 < taken < 2.1e9


def test_variants_of_pods():
    fleet = {"fleet.mode": "inline", "fleet.memory": "unified", "fleet.kernel": "segmented", "fleet.merging": "by_load"}
    config = pod_config(tiny(**fleet))
    assert (config.memory.value, config.kernel.value, config.merging.mode.value) == ("unified", "segmented", "by_load")
    # Nothing is reserved in a unified pool.
    assert config.kv_blocks == 307_600 // 16


@pytest.mark.parametrize(
    ("hardware", "seconds"),
    [("h100-llama8b", 4.8e-3), ("h100-llama8b-vllm085", 4.8e-3), ("h100-llama70b-int4", 10.4e-3)],
)
def test_a_merge_touches_the_weights_that_there_are(hardware, seconds):
    # 16.06 GB in FP16, 35 GB in INT4, at 3.35 TB/s.
    config = pod_config(tiny(**{"fleet.mode": "inline", "fleet.merging": "always", "fleet.hardware": hardware}))
    assert config.merging.seconds == pytest.approx(seconds, rel=0.01)


def test_sizes_follow_from_ranks_unless_given():
    specs = specs_of(tiny(**{"adapters.rank": "[16, 64]"}))
    assert [(spec.rank, spec.size) for spec in specs[:2]] == [(16, 13_631_488), (64, 4 * 13_631_488)]
    assert {spec.size for spec in specs_of(tiny(**{"adapters.size": "5MB"}))} == {5_000_000}


def test_70b_adapters_are_the_articles():
    # R1.1: rank 16 on q and v of Llama-3.1-70B has 65.536 MB.
    assert PRESETS["h100-llama70b-int4"].adapter_size == 2 * 80 * 16 * (8192 + 8192 + 8192 + 1024)
    assert PRESETS["h100-llama8b"].adapter_size == 2 * 32 * 16 * (4096 + 4096 + 4096 + 1024)
    assert PRESETS["h100-llama70b-int4"].extrapolated and not PRESETS["h100-llama8b"].extrapolated


def test_variants_of_a_split_are_on_every_disk():
    scenario = tiny(SPLIT)
    assert names_of(scenario)[-1] == "adapter-1-b"
    assert specs_of(scenario)[-1].name == "adapter-1-b"
    asked = {arrival.adapter for arrival in arrivals_of(scenario, 1)}
    assert "adapter-1-b" in asked


def test_arrivals_are_the_same_for_the_same_seed():
    one, again, other = ([*arrivals_of(tiny(), seed)] for seed in (1, 1, 2))
    assert one == again != other
    assert one[-1].t < 20.0


def test_without_prefix_caching_prompts_share_nothing():
    shared = tiny(**{"arrivals.shared_prefix": "160"})
    assert all(len(arrival.blocks) >= 10 for arrival in arrivals_of(shared, 1))
    alone = tiny(**{"arrivals.shared_prefix": "160", "fleet.prefix_caching": "false"})
    assert all(arrival.blocks == () and arrival.prompt_tokens == 210 for arrival in arrivals_of(alone, 1))


def test_pins_are_told_to_the_picker():
    world = world_of(tiny(PINS), policy="weighted", seed=1, observer=Tally(start=0.0, window=1.0))
    world.kernel.run(7.0)
    assert world.fleet.state.pins == {"adapter-1": PinSpec(pods=("pod-01",))}
    world.kernel.run(9.0)
    assert world.fleet.state.pins == {}


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="'best' is unknown"):
        world_of(tiny(), policy="best", seed=1, observer=Tally(start=0.0, window=1.0))


def test_what_follows_llm_d_looks_as_often_as_llm_d():
    def intervals(**overrides):
        scenario = tiny(**overrides)
        return {name: settings_of(scenario, name).scrape.interval for name in ("weighted", "gie-default", "gie-lora")}

    assert intervals() == {"weighted": 1.0, "gie-default": 0.05, "gie-lora": 0.05}
    # Who says how often everybody looks means everybody; who names a policy means that one.
    assert set(intervals(**{"settings.scrape.interval": "250ms"}).values()) == {0.25}
    own = intervals(**{"scrape_intervals.gie-lora": "1s", "scrape_intervals.weighted": "100ms"})
    assert own == {"weighted": 0.1, "gie-default": 0.05, "gie-lora": 1.0}
    assert settings_of(tiny(), "gie-lora").picking.policy == "gie-lora"


def test_pods_are_looked_at_that_often():
    def scrapes(policy):
        world = world_of(tiny(), policy=policy, seed=1, observer=Tally(start=0.0, window=1.0))
        seen = []
        world.heard = lambda event, _: seen.append(event) if isinstance(event, PodReported) else None
        world.run(arrivals_of(tiny(), 1), until=10.0)
        return len(seen)

    # Two pods for ten seconds.
    assert scrapes("weighted") == pytest.approx(20, abs=2)
    assert scrapes("gie-lora") == pytest.approx(400, abs=2)


def test_a_retention_policy_knows_what_loads_cost():
    assert retention_of(tiny()) is None
    make = retention_of(tiny(**{"fleet.retention": "cost", "adapters.rank": "[16, 64]"}))
    policy = make()
    assert (policy.name, make() is policy) == ("cost", False)
    for name in ("adapter-1", "adapter-2"):
        policy.used(name, 0.0)
    # As often asked for; the larger one costs more to bring back, and from disk everything costs more.
    assert policy.worth("adapter-2", now=1.0) > policy.worth("adapter-1", now=1.0)
    assert policy.worth("adapter-1", now=1.0, leaves_for=Tier.DISK) > policy.worth("adapter-1", now=1.0)


def test_pods_let_go_whom_the_policy_says():
    def loads(policy):
        scenario = tiny(**{"fleet.retention": policy, "fleet.pods": "1"})
        return run(scenario, policy="weighted").whole.loads

    assert loads("lru") == run(tiny(**{"fleet.pods": "1"}), policy="weighted").whole.loads
    assert loads("lru") != loads("lfu")
