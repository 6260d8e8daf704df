"""Triton's page, of younger and older backends, and its list of models with adapters."""

import json

import pytest

from lorapick.model.pods import GpuSource, PodReport
from lorapick.wire.engines import triton, trtllm
from lorapick.wire.exposition import ExpositionError
from lorapick.wire.models_list import ModelsList, ModelsListError

OLD = b"""
# TYPE nv_trt_llm_request_metrics gauge
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="context",version="1"} 1
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 4
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active",version="1"} 9
# TYPE nv_trt_llm_kv_cache_block_metrics gauge
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="tokens_per",model="tensorrt_llm",version="1"} 64
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 156
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="free",model="tensorrt_llm",version="1"} 468
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 624
"""


def test_older_backends_count_neither_waiting_requests_nor_a_share() -> None:
    expected = PodReport(waiting=5, running=4, kv_usage=0.25, block_size=64, gpu_blocks=624)
    assert triton.parse(OLD) == expected
    assert trtllm.parse(OLD) == expected, "configurations from before this engine had a name of its own"


def test_a_server_before_its_first_step_waits() -> None:
    page = (
        b'# TYPE nv_gpu_utilization gauge\nnv_gpu_utilization{gpu_uuid="GPU-1"} 0.0\nnv_inference_count{model="m"} 0\n'
    )
    assert triton.parse(page) == PodReport(gpu_utilization=0.0, gpu_source=GpuSource.POD)
    with pytest.raises(ExpositionError, match="not the metrics of Triton"):
        triton.parse(b"vllm:num_requests_running 1\n")


def listed(*names: str) -> ModelsList:
    return triton.parse_models(json.dumps({"data": [{"id": name} for name in names]}).encode())


def test_adapters_stand_behind_the_name_of_a_model() -> None:
    found = listed("ensemble", "ensemble_lora_doll", "preprocessing", "ensemble_lora_doll", "ensemble_lora_a_lora_b")
    assert found == ModelsList(base_models=("ensemble", "preprocessing"), registered=("doll", "a_lora_b"))


def test_a_model_whose_name_looks_so_is_a_model() -> None:
    assert listed("my_lora_model", "_lora_x", "my_lora_model_lora_ad", "my_lora_model_lora_") == ModelsList(
        base_models=("my_lora_model", "_lora_x", "my_lora_model_lora_"), registered=("ad",)
    )
    with pytest.raises(ModelsListError):
        triton.parse_models(b"{}")
