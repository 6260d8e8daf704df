from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.pods import GpuSource, LoadedAdapter, PodReport
from lorapick.wire.engines import DIALECTS, vllm
from lorapick.wire.exposition import ExpositionError

PAGE = (Path(__file__).parents[3] / "data" / "vllm-0.32-metrics.txt").read_bytes()
QUEUES = "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\n"


def read(*lines: str) -> PodReport:
    return vllm.parse("\n".join([QUEUES, *lines, ""]).encode())


def test_a_real_page_of_vllm_0_32_under_load() -> None:
    assert vllm.parse(PAGE) == PodReport(
        waiting=4,
        running=5,
        deferred=4,
        kv_usage=0.00219780219780219,
        preemptions=0,
        prompt_tokens=144,
        in_flight_adapters=("ad0", "ad1"),
        used=("ad4", "ad5", "ad2", "ad3", "ad0", "ad1"),
        used_until=1795990335.218214,
        max_loras=2,
        block_size=128,
        gpu_blocks=4096,
        process_start=1795990228.32,
    )


def test_a_fresh_pod_is_empty_not_full() -> None:
    report = read("# TYPE vllm:lora_requests_info gauge")
    assert (report.in_flight_adapters, report.max_loras, report.loaded) == (None, None, None)
    assert (report.running, report.waiting, report.deferred) == (1, 0, None)


def test_only_the_newest_series_of_activity_counts_and_both_labels_are_one_list() -> None:
    report = read(
        'vllm:lora_requests_info{max_lora="2",running_lora_adapters="a,b",waiting_lora_adapters="a,b"} 1.7e9',
        'vllm:lora_requests_info{max_lora="2",running_lora_adapters="c",waiting_lora_adapters="c,d"} 1.8e9',
        'vllm:lora_requests_info{max_lora="2",running_lora_adapters="",waiting_lora_adapters=""} 1.6e9',
    )
    assert report.in_flight_adapters == ("c", "d")
    assert (report.running_adapters, report.waiting_adapters) == (("c",), ("c", "d"))
    assert report.max_loras == 2


def test_labels_that_name_the_same_are_not_told_apart() -> None:
    report = read('vllm:lora_requests_info{max_lora="2",running_lora_adapters="a",waiting_lora_adapters="a"} 7')
    assert report.in_flight_adapters == ("a",)
    assert (report.running_adapters, report.waiting_adapters) == (None, None)


def test_series_of_the_same_instant_are_one_answer() -> None:
    report = read(
        'vllm:lora_requests_info{max_lora="4",running_lora_adapters="b",waiting_lora_adapters=""} 7',
        'vllm:lora_requests_info{max_lora="4",running_lora_adapters="a, b",waiting_lora_adapters=""} 7',
    )
    assert report.in_flight_adapters == ("b", "a")


def test_an_idle_pod_has_no_adapters_in_flight() -> None:
    report = read('vllm:lora_requests_info{max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} 7')
    assert report.in_flight_adapters == ()


def test_engines_of_one_pod_add_up() -> None:
    page = """
vllm:num_requests_running{engine="0",model_name="base"} 3
vllm:num_requests_running{engine="1",model_name="base"} 4
vllm:num_requests_waiting{engine="0",model_name="base"} 1
vllm:num_requests_waiting{engine="1",model_name="base"} 2
vllm:num_requests_waiting_by_reason{engine="0",reason="deferred"} 1
vllm:num_requests_waiting_by_reason{engine="1",reason="deferred"} 1
vllm:num_requests_waiting_by_reason{engine="1",reason="capacity"} 1
vllm:kv_cache_usage_perc{engine="0"} 0.2
vllm:kv_cache_usage_perc{engine="1"} 0.4
vllm:num_preemptions_total{engine="0"} 5
vllm:num_preemptions_total{engine="1"} 6
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100"} 1
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="100"} 1
"""
    report = vllm.parse(page.encode())
    assert report.kv_usage == pytest.approx(0.3)
    assert (report.running, report.waiting, report.deferred, report.preemptions) == (7, 3, 2, 11)
    assert (report.block_size, report.gpu_blocks) == (16, 200)


def test_names_of_older_versions() -> None:
    report = read(
        'vllm:gpu_cache_usage_perc{model_name="base"} 0.5', 'vllm:cache_config_info{num_gpu_blocks="None"} 1.0'
    )
    assert report.kv_usage == 0.5
    assert report.gpu_blocks is None


def test_waiting_is_the_sum_of_its_reasons_when_the_total_is_gone() -> None:
    page = b'vllm:num_requests_running 1\nvllm:num_requests_waiting_by_reason{reason="capacity"} 2\n'
    page += b'vllm:num_requests_waiting_by_reason{reason="deferred"} 3\n'
    report = vllm.parse(page)
    assert (report.waiting, report.deferred) == (5, 3)


def test_residency_that_the_engine_reports() -> None:
    report = read(
        'vllm:lora_requests_info{max_lora="2",running_lora_adapters="a",waiting_lora_adapters="a"} 7',
        "# TYPE vllm:lora_adapter_loaded gauge",
        'vllm:lora_adapter_loaded{adapter_name="a",level="gpu",pinned="true",rank="16"} 1',
        'vllm:lora_adapter_loaded{adapter_name="b",level="cpu",pinned="false",rank=""} 1',
        'vllm:lora_adapter_loaded{adapter_name="a",level="cpu",pinned="false",rank=""} 1',
        'vllm:lora_adapter_loaded{adapter_name="gone",level="gpu",pinned="false",rank="8"} 0',
        "# TYPE vllm:max_gpu_lora_adapters gauge",
        "vllm:max_gpu_lora_adapters 3",
    )
    assert report.loaded == (
        LoadedAdapter(name="a", on_gpu=True, pinned=True, rank=16),
        LoadedAdapter(name="b", on_gpu=False),
    )
    assert report.max_loras == 3


def test_a_declared_residency_without_series_means_that_nothing_is_loaded() -> None:
    assert read("# HELP vllm:lora_adapter_loaded x", "# TYPE vllm:lora_adapter_loaded gauge").loaded == ()


def test_an_emulated_pod_may_state_what_no_engine_does() -> None:
    report = read("lorapick_pod_gpu_utilization 0.45", "lorapick_pod_memory_pressure 0.91")
    assert (report.gpu_utilization, report.gpu_source, report.memory_pressure) == (0.45, GpuSource.POD, 0.91)


def test_figures_that_cannot_be_true_are_unknown_and_named() -> None:
    page = """
vllm:num_requests_running -3
vllm:num_requests_waiting NaN
vllm:kv_cache_usage_perc 57
vllm:num_preemptions_total +Inf
process_start_time_seconds NaN
"""
    report = vllm.parse(page.encode())
    assert (report.running, report.waiting, report.kv_usage, report.preemptions) == (None, None, None, None)
    assert report.process_start is None
    assert report.doubts == (
        "vllm:num_requests_waiting is nan; a count is finite and at least 0",
        "vllm:num_requests_running is -3; a count is finite and at least 0",
        "vllm:kv_cache_usage_perc is 57; a share is between 0 and 1",
        "vllm:num_preemptions_total is inf; a count is finite and at least 0",
    )


def test_a_share_just_over_one_is_one() -> None:
    assert read("vllm:kv_cache_usage_perc 1.01").kv_usage == 1.0


@pytest.mark.parametrize(
    "page", [b"", b"<html>502 Bad Gateway</html>", b'{"error": 1}', b"sglang:num_running_reqs 1\n"]
)
def test_a_page_of_something_else_says_what_it_begins_with(page: bytes) -> None:
    with pytest.raises(ExpositionError) as caught:
        vllm.parse(page)
    assert str(caught.value) == (
        f"no vllm:num_requests_running or vllm:num_requests_waiting in a page of {len(page)} bytes that begins with "
        f"{page.decode()!r}: not the metrics of vLLM, or an engine that is not up yet"
    )


@given(st.integers(0, len(PAGE)), st.integers(0, 60), st.binary(max_size=60))
def test_a_damaged_page_gives_a_report_or_the_typed_error(start: int, length: int, noise: bytes) -> None:
    damaged = PAGE[:start] + noise + PAGE[start + length :]
    for engine, dialect in DIALECTS.items():
        try:
            assert isinstance(dialect.parse(damaged), PodReport), engine
        except ExpositionError:
            continue


MANY = ",".join(f"n{at}" for at in range(100_000))
IN_FLIGHT = 'vllm:lora_requests_info{{max_lora="4",running_lora_adapters="{}",waiting_lora_adapters="{}"}} 7'


@pytest.mark.parametrize(
    "lines",
    [
        [IN_FLIGHT.format(MANY, "")],
        [IN_FLIGHT.format("a", MANY)],
        [IN_FLIGHT.format(",".join(f"n{at}" for at in range(part, part + 3000)), "") for part in (0, 3000)],
        [IN_FLIGHT.format(f"n{at}", "") for at in range(5000)],
        [f'vllm:lora_adapter_loaded{{adapter_name="n{at}",level="gpu"}} 1' for at in range(5000)],
        [f'vllm:num_requests_waiting_by_reason{{reason="{at}"}} 1' for at in range(5000)],
    ],
)
def test_a_page_of_very_many_names_is_refused_before_it_takes_the_pickers_time(lines: list[str]) -> None:
    with pytest.raises(ExpositionError, match="limit"):
        read(*lines)


def test_as_many_names_as_are_allowed() -> None:
    names = [f"n{at}" for at in range(4096)]
    assert read(IN_FLIGHT.format(",".join(names), "")).in_flight_adapters == tuple(names)


def test_the_record_of_use_goes_on_where_the_last_page_ended() -> None:
    lines = [
        f'vllm:lora_requests_info{{max_lora="2",running_lora_adapters="{names}",waiting_lora_adapters="{names}"}} {at}'
        for names, at in (("a,b", 5), ("b", 6), ("c", 7), ("", 8))
    ]
    page = "\n".join([QUEUES, *lines, ""]).encode()
    first = vllm.parse(page)
    assert (first.used, first.used_until) == (("a", "b", "c"), 8.0)
    assert vllm.parse(page, used_since=5.0).used == ("b", "c")
    assert vllm.parse(page, used_since=8.0).used == ()


def test_only_the_newest_sets_count_for_the_record_of_use() -> None:
    lines = [
        f'vllm:lora_requests_info{{max_lora="2",running_lora_adapters="a{at}",waiting_lora_adapters="a{at}"}} {at}'
        for at in range(1, 701)
    ]
    used = vllm.parse("\n".join([QUEUES, *lines, ""]).encode()).used
    assert (len(used), used[0], used[-1]) == (512, "a189", "a700")
