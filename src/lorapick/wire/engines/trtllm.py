"""TensorRT-LLM's metrics page, that of `trtllm-serve` (1.0 to 1.3; needs `return_perf_metrics: true`).

In: the page (`/prometheus/metrics`; `/metrics` there is JSON). Out: a `PodReport`. Not here: adapters, of which the
server says nothing; the page of Triton, which old configurations have under this engine's name (see `triton`).

Gauges have their first values after the first step of the engine, and are shared by processes: the page of a pod that
nobody has asked anything yet is empty, or has other families only. It is a pod that waits, not one that fails.
"""

from lorapick.model.pods import GpuSource, PodReport
from lorapick.wire.engines import triton
from lorapick.wire.engines.readings import PROCESS_START, Readings
from lorapick.wire.exposition import ExpositionError

_RUNNING = "trtllm_num_requests_running"
_WAITING = "trtllm_num_requests_waiting"
_KV = "trtllm_kv_cache_utilization"
_BLOCK = "trtllm_kv_cache_tokens_per_block"
_BLOCKS = "trtllm_kv_cache_max_blocks"
_FAMILIES = (PROCESS_START, _RUNNING, _WAITING, _KV, _BLOCK, _BLOCKS)
_ANY = b"trtllm_"


def parse(page: bytes) -> PodReport:
    """Read one page.

    Raises:
        ExpositionError: the page is not TensorRT-LLM's, or a line that matters is malformed.
    """
    if triton.is_page(page):
        return triton.parse(page)
    if page.strip() and _ANY not in page:
        raise ExpositionError(
            f"nothing named {_ANY.decode()}* in a page of {len(page)} bytes that begins with "
            f"{page[:60].decode(errors='backslashreplace')!r}: not the metrics of TensorRT-LLM (trtllm-serve has them "
            "at /prometheus/metrics, with return_perf_metrics)"
        )
    read = Readings(page, _FAMILIES)
    gpu, memory = read.emulated()
    return PodReport(
        waiting=read.count(_WAITING),
        running=read.count(_RUNNING),
        kv_usage=read.share(_KV),
        gpu_utilization=gpu,
        gpu_source=GpuSource.UNKNOWN if gpu is None else GpuSource.POD,
        memory_pressure=memory,
        block_size=read.largest(_BLOCK),
        gpu_blocks=read.count(_BLOCKS),
        process_start=read.process_start(),
        doubts=read.doubts,
    )
