"""SGLang, TensorRT-LLM, LoRAX, DCGM: shapes of their pages, written after their documentation."""

import pytest

from lorapick.model.pods import Engine, GpuSource, PodReport
from lorapick.wire.engines import DIALECTS, dcgm, lorax, sglang, trtllm
from lorapick.wire.exposition import ExpositionError


def test_every_engine_has_a_dialect() -> None:
    assert list(DIALECTS) == list(Engine)


def test_sglang_adds_engines_and_counts_each_once() -> None:
    page = """
process_start_time_seconds 1.7e9
sglang:num_running_reqs{dp_rank="0",model_name="m",tp_rank="0"} 3.0
sglang:num_running_reqs{dp_rank="0",model_name="m",tp_rank="1"} 3.0
sglang:num_running_reqs{dp_rank="1",model_name="m",tp_rank="0"} 4.0
sglang:token_usage{dp_rank="0",model_name="m",tp_rank="0"} 0.1
sglang:token_usage{dp_rank="1",model_name="m",tp_rank="0"} 0.3
sglang:num_queue_reqs{dp_rank="0",model_name="m",tp_rank="0"} 2.0
sglang:num_retracted_requests_total{dp_rank="0",model_name="m",tp_rank="0"} 5.0
sglang:cache_config_info{num_pages="1000",page_size="64"} 1.0
sglang:lora_pool_slots_total{dp_rank="0",model_name="m",tp_rank="0"} 8.0
"""
    assert sglang.parse(page.encode()) == PodReport(
        waiting=2,
        running=7,
        kv_usage=0.2,
        preemptions=5,
        max_loras=7,
        block_size=64,
        gpu_blocks=1000,
        process_start=1.7e9,
    )


def test_sglang_without_labels_and_with_gauges_for_the_cache() -> None:
    page = b"sglang:num_running_reqs 1\nsglang:num_queue_reqs 0\nsglang:page_size 1\nsglang:num_pages 5000\n"
    assert sglang.parse(page) == PodReport(waiting=0, running=1, block_size=1, gpu_blocks=5000)


def test_trtllm_serve() -> None:
    page = b"""
trtllm_num_requests_waiting{model_name="m"} 2.0
trtllm_num_requests_running{model_name="m"} 3.0
trtllm_kv_cache_utilization{model_name="m"} 0.25
trtllm_kv_cache_tokens_per_block{model_name="m"} 32.0
trtllm_kv_cache_max_blocks{model_name="m"} 900.0
"""
    assert trtllm.parse(page) == PodReport(waiting=2, running=3, kv_usage=0.25, block_size=32, gpu_blocks=900)


def test_triton() -> None:
    page = b"""
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active",version="1"} 9
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 4
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 5
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.4
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="tensorrt_llm",version="1"} 64
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 700
"""
    assert trtllm.parse(page) == PodReport(
        waiting=5, running=4, kv_usage=0.4, gpu_utilization=0.5, gpu_source=GpuSource.POD, block_size=64, gpu_blocks=700
    )


def test_trtllm_refuses_another_engines_page() -> None:
    with pytest.raises(ExpositionError, match="not the metrics of TensorRT-LLM"):
        trtllm.parse(b"vllm:num_requests_running 1\n")


def test_lorax_before_and_under_load() -> None:
    assert lorax.parse(b"") == PodReport()
    page = b"# TYPE lorax_queue_size gauge\nlorax_queue_size 3\n\n"
    page += b"# TYPE lorax_batch_current_size gauge\nlorax_batch_current_size 8\n"
    assert lorax.parse(page) == PodReport(waiting=3, running=8)
    with pytest.raises(ExpositionError, match="not the metrics of LoRAX"):
        lorax.parse(b"<html>")


GPUS = b"""
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",pod="pod-1"} 40
DCGM_FI_DEV_GPU_UTIL{gpu="1",pod="pod-1"} 60
DCGM_FI_DEV_GPU_UTIL{gpu="2",pod="pod-2"} 98
DCGM_FI_DEV_GPU_UTIL{gpu="3",pod=""} 0
"""


def test_dcgm_by_pod_and_by_machine() -> None:
    assert dcgm.parse(GPUS, pod="pod-1") == 0.5
    assert dcgm.parse(GPUS, pod="pod-2") == 0.98
    assert dcgm.parse(GPUS, pod="pod-9") is None
    assert dcgm.parse(b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 40\nDCGM_FI_DEV_GPU_UTIL{gpu="1"} 60\n', pod="pod-1") == 0.5


def test_dcgm_says_when_there_is_no_such_figure() -> None:
    # The exporter writes the largest number for "blank".
    assert dcgm.parse(b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 9223372036854775794\n', pod="p") is None
    with pytest.raises(ExpositionError, match="not the metrics of a DCGM exporter"):
        dcgm.parse(b"up 1\n", pod="p")
