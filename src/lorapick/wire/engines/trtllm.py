"""Metrics pages of TensorRT-LLM: `trtllm-serve`, and Triton's `tensorrtllm` backend.

In: the page. Out: a `PodReport`. Not here: adapters; neither server says anything about them.
"""

from lorapick.model.pods import GpuSource, PodReport
from lorapick.model.units import Ratio
from lorapick.wire.engines.readings import PROCESS_START, Readings

_RUNNING = "trtllm_num_requests_running"
_WAITING = "trtllm_num_requests_waiting"
_KV = "trtllm_kv_cache_utilization"
_BLOCK = "trtllm_kv_cache_tokens_per_block"
_BLOCKS = "trtllm_kv_cache_max_blocks"
_SERVE = (PROCESS_START, _RUNNING, _WAITING, _KV, _BLOCK, _BLOCKS)

_TRITON_REQUESTS = "nv_trt_llm_request_metrics"
_TRITON_KV = "nv_trt_llm_kv_cache_block_metrics"
_TRITON_GPU = "nv_gpu_utilization"
_TRITON = (_TRITON_GPU, _TRITON_REQUESTS, _TRITON_KV)


def parse(page: bytes) -> PodReport:
    """Read one page of either server.

    Raises:
        ExpositionError: the page is neither's, or a line that matters is malformed.
    """
    read = Readings(page, _TRITON)
    if read.samples(_TRITON_REQUESTS):
        return _triton(read)
    read.also(_SERVE)
    read.need((_RUNNING, _WAITING, _TRITON_REQUESTS), engine="TensorRT-LLM")
    return PodReport(
        waiting=read.count(_WAITING),
        running=read.count(_RUNNING),
        kv_usage=read.share(_KV),
        block_size=read.largest(_BLOCK),
        gpu_blocks=read.count(_BLOCKS),
        process_start=read.process_start(),
        doubts=read.doubts,
    )


def _triton(read: Readings) -> PodReport:
    gpu: Ratio | None = read.share(_TRITON_GPU)
    return PodReport(
        waiting=read.count(_TRITON_REQUESTS, where={"request_type": "waiting"}),
        running=read.count(_TRITON_REQUESTS, where={"request_type": "scheduled"}),
        kv_usage=read.share(_TRITON_KV, where={"kv_cache_block_type": "fraction"}),
        gpu_utilization=gpu,
        gpu_source=GpuSource.UNKNOWN if gpu is None else GpuSource.POD,
        block_size=read.largest(_TRITON_KV, where={"kv_cache_block_type": "tokens_per"}),
        gpu_blocks=read.count(_TRITON_KV, where={"kv_cache_block_type": "max"}),
        doubts=read.doubts,
    )
