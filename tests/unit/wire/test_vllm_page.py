"""The engine part of a vLLM metrics page, checked with Prometheus's own parser and histogram."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Histogram as PrometheusHistogram
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from lorapick.model.pods import PodLimits
from lorapick.pod.values import PodConfig, PodStats, TimeSpent
from lorapick.wire.vllm_page import (
    HISTOGRAMS,
    Histogram,
    LoraRequestsInfo,
    PageFacts,
    RequestHistograms,
    ResidentAdapter,
    families,
    token_bounds,
)

REAL_PAGE = Path(__file__).parents[2] / "data" / "vllm-0.32-metrics.txt"


def stats(**changes: object) -> PodStats:
    values: dict[str, object] = {
        "running": 3,
        "waiting": 5,
        "deferred": 2,
        "kv_usage": 0.25,
        "on_gpu": ("ad1",),
        "on_cpu": ("ad0", "ad1"),
        "loading": (),
        "in_flight": ("ad1",),
        "swaps": 4,
        "loads": 5,
        "load_failures": 1,
        "evictions": 2,
        "preemptions": 7,
        "prompt_tokens": 100,
        "output_tokens": 50,
        "cached_tokens": 32,
        "queried_tokens": 100,
        "finished": 9,
        "hits": 6,
        "misses": 3,
        "time": TimeSpent(prefill=1.0, decode=2.0, transfer=1.0, idle=6.0),
    }
    return PodStats(**(values | changes))


def facts(**changes: object) -> PageFacts:
    values: dict[str, object] = {
        "model_name": "base",
        "config": PodConfig(limits=PodLimits(max_loras=2)),
        "stats": stats(),
        "histograms": RequestHistograms(1024),
        "finished": {"length": 8},
        "lora_requests": LoraRequestsInfo(),
        "created": 1.796e9,
    }
    return PageFacts(**(values | changes))


def parsed(page: PageFacts) -> dict[str, Metric]:
    class Page(Collector):
        def collect(self):
            return families(page)

    registry = CollectorRegistry()
    registry.register(Page())
    text = generate_latest(registry).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(page: dict[str, Metric], family: str, **labels: str) -> float:
    found = [s.value for s in page[family].samples if labels.items() <= s.labels.items()]
    assert len(found) == 1, f"{family} {labels}: {found}"
    return found[0]


def test_queues_add_up_and_name_the_adapter_budget() -> None:
    page = parsed(facts())
    assert value(page, "vllm:num_requests_running") == 3
    assert value(page, "vllm:num_requests_waiting") == 5
    assert value(page, "vllm:num_requests_waiting_by_reason", reason="deferred") == 2
    assert value(page, "vllm:num_requests_waiting_by_reason", reason="capacity") == 3


def test_model_name_is_always_the_base_model() -> None:
    for family in parsed(facts()).values():
        for sample in family.samples:
            assert sample.labels.get("model_name", "base") == "base", sample


def test_counters_tell_cached_from_computed_tokens() -> None:
    page = parsed(facts())
    assert value(page, "vllm:prompt_tokens_by_source", source="local_compute") == 68
    assert value(page, "vllm:prompt_tokens_by_source", source="local_cache_hit") == 32
    assert value(page, "vllm:prefix_cache_queries") == 100
    assert value(page, "vllm:request_success", finished_reason="length") == 8
    assert value(page, "vllm:request_success", finished_reason="abort") == 0


def test_no_lora_series_before_the_first_step_and_never_one_less_after() -> None:
    lora = LoraRequestsInfo()
    assert parsed(facts(lora_requests=lora))["vllm:lora_requests_info"].samples == []
    lora.step(["ad0"], wall=100.0)
    lora.step(["ad0", "ad1"], wall=101.0)
    lora.step(["ad1", "ad0"], wall=102.0)
    lora.step([], wall=103.0)
    lora.step(["ad0"], wall=104.0)
    samples = parsed(facts(lora_requests=lora))["vllm:lora_requests_info"].samples
    shown = {sample.labels["running_lora_adapters"]: sample.value for sample in samples}
    assert shown == {"ad0": 104.0, "ad0,ad1": 101.0, "ad1,ad0": 102.0, "": 103.0}
    for sample in samples:
        assert sample.labels["waiting_lora_adapters"] == sample.labels["running_lora_adapters"]
        assert sample.labels["max_lora"] == "2"


def test_residency_families_exist_only_when_reported() -> None:
    assert "vllm:lora_adapter_loaded" not in parsed(facts())
    resident = (
        ResidentAdapter(name="ad1", level="gpu", rank=16),
        ResidentAdapter(name="ad0", level="cpu", rank=8),
    )
    page = parsed(facts(resident=resident))
    assert value(page, "vllm:lora_adapter_loaded", adapter_name="ad1", level="gpu", rank="16", pinned="false") == 1
    assert value(page, "vllm:lora_adapter_loaded", adapter_name="ad0", level="cpu") == 1
    assert value(page, "vllm:num_gpu_loaded_lora_adapters") == 1
    assert value(page, "vllm:num_cpu_loaded_lora_adapters") == 2
    assert value(page, "vllm:max_gpu_lora_adapters") == 2


def test_cache_size_is_told() -> None:
    page = parsed(facts(config=PodConfig(block_size=128, kv_blocks=4096, max_model_len=1024)))
    (sample,) = page["vllm:cache_config_info"].samples
    told = {name: sample.labels[name] for name in ("block_size", "num_gpu_blocks", "kv_cache_size_tokens")}
    assert told == {"block_size": "128", "num_gpu_blocks": "4096", "kv_cache_size_tokens": "524288"}


def test_histograms_have_the_real_page_s_bounds() -> None:
    real = {f.name: f for f in text_string_to_metric_families(REAL_PAGE.read_text())}
    page = parsed(facts())
    for name in HISTOGRAMS:
        assert bounds(page[f"vllm:{name}"]) == bounds(real[f"vllm:{name}"]), name


def bounds(family: Metric) -> list[str]:
    return [sample.labels["le"] for sample in family.samples if sample.name.endswith("_bucket")]


@given(st.integers(1, 10**7))
def test_token_bounds_rise_and_stop_at_the_longest(longest: int) -> None:
    found = token_bounds(longest)
    assert list(found) == sorted(set(found))
    assert found[0] == 1.0 and found[-1] <= longest < found[-1] * 2.5


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(1, 5)), max_size=20))
def test_histogram_equals_prometheus_own(observed: list[tuple[float, int]]) -> None:
    own = Histogram((0.5, 1.0, 10.0))
    registry = CollectorRegistry()
    theirs = PrometheusHistogram("x", "x", buckets=(0.5, 1.0, 10.0), registry=registry)
    for seen, times in observed:
        own.observe(seen, times)
        for _ in range(times):
            theirs.observe(seen)
    samples = {(s.name, s.labels.get("le")): s.value for family in registry.collect() for s in family.samples}
    assert own.buckets() == [(le, samples["x_bucket", le]) for le in ("0.5", "1.0", "10.0", "+Inf")]
    assert own.total == pytest.approx(samples["x_sum", None])
