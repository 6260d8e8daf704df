"""Whatever stands on an engine's pages: a report with figures that can be true, or the error that scrapers expect."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.pods import Engine, PodReport
from lorapick.wire.engines import DIALECTS
from lorapick.wire.engines.listing import EngineSettings
from lorapick.wire.engines.sglang_info import EngineSettingsError
from lorapick.wire.exposition import ExpositionError
from lorapick.wire.models_list import ModelsList, ModelsListError

FAMILIES = [
    "sglang:num_running_reqs", "sglang_num_queue_reqs", "sglang:num_queue_reqs", "sglang:token_usage",
    "sglang:cache_config_info", "sglang:page_size", "sglang:num_pages", "sglang:max_total_num_tokens",
    "sglang:lora_pool_slots_total", "sglang:num_retracted_requests_total", "trtllm_num_requests_running",
    "trtllm_num_requests_waiting", "trtllm_kv_cache_utilization", "trtllm_kv_cache_max_blocks",
    "trtllm_model_config_info", "nv_gpu_utilization", "nv_trt_llm_request_metrics", "nv_trt_llm_kv_cache_block_metrics",
    "lorax_queue_size", "lorax_batch_current_size", "vllm:num_requests_running", "vllm:lora_requests_info",
    "process_start_time_seconds", "lorapick_pod_gpu_utilization",
]  # fmt: skip
LABELS = [
    "tp_rank", "pp_rank", "dp_rank", "priority", "request_type", "kv_cache_block_type", "page_size", "num_pages",
    "running_lora_adapters", "max_lora", "model",
]  # fmt: skip
words = st.sampled_from(
    ["0", "1", "", "active", "scheduled", "waiting", "used", "max", "fraction", "tokens_per", "None"]
)
values = st.one_of(
    st.integers(-3, 10).map(str),
    st.floats(0, 1).map(repr),
    st.sampled_from(["NaN", "+Inf", "-Inf", "1e300", "1e-300", "99999999999999999999", "x", ""]),
)
lines = st.builds(
    lambda family, labels, value: (
        f"{family}{{{','.join(f'{name}={json.dumps(word)}' for name, word in labels)}}} {value}"
    ),
    st.sampled_from(FAMILIES),
    st.lists(st.tuples(st.sampled_from(LABELS), words), max_size=3, unique_by=lambda each: each[0]),
    values,
)
pages = st.one_of(
    st.lists(st.one_of(lines, st.sampled_from([f"# TYPE {name} gauge" for name in FAMILIES])), max_size=12).map(
        lambda found: "\n".join(found).encode()
    ),
    st.binary(max_size=80),
    st.builds(lambda start, rest: start.encode() + rest, st.sampled_from(FAMILIES), st.binary(max_size=40)),
)


def believable(report: PodReport) -> bool:
    counts = (
        report.waiting,
        report.running,
        report.preemptions,
        report.max_loras,
        report.block_size,
        report.gpu_blocks,
    )
    shares = (report.kv_usage, report.gpu_utilization, report.memory_pressure)
    return all(each is None or each >= 0 for each in counts) and all(each is None or 0 <= each <= 1 for each in shares)


@pytest.mark.parametrize("engine", Engine)
def test_any_page(engine: Engine) -> None:
    @given(pages)
    def holds(page: bytes) -> None:
        try:
            report = DIALECTS[engine].parse(page)
        except ExpositionError:
            return
        assert believable(report), report

    holds()


bodies = st.one_of(
    st.binary(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers(-2, 2**70) | st.text(max_size=8) | st.floats(allow_nan=False),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["data", "id", "parent", "root", "max_loras_per_batch", "max_loaded_loras", "lora_paths", "lora_name",
                 "pinned", "enable_lora"]
            ),
            inner,
            max_size=5,
        ),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode()),
)  # fmt: skip


@pytest.mark.parametrize("engine", [engine for engine in Engine if DIALECTS[engine].models_path is not None])
def test_any_list_of_models(engine: Engine) -> None:
    @given(bodies)
    def holds(body: bytes) -> None:
        try:
            found: Any = DIALECTS[engine].parse_models(body)
        except ModelsListError:
            return
        assert isinstance(found, ModelsList)
        assert len(set(found.registered)) == len(found.registered)

    holds()


@given(bodies)
def test_any_settings(body: bytes) -> None:
    parse = DIALECTS[Engine.SGLANG].parse_settings
    assert parse is not None
    try:
        found = parse(body)
    except EngineSettingsError:
        return
    assert isinstance(found, EngineSettings)
    assert found.max_loras is None or found.max_loras >= 1
    assert all(isinstance(name, str) for name in found.pinned)
