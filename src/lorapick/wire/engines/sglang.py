"""SGLang's metrics page (0.4 to 0.5.23; needs `--enable-metrics`).

In: the page. Out: a `PodReport`. Not here: the adapters in host memory, which SGLang tells in `/v1/models`.

Series are told apart by `dp_rank` (engines, which add up) and by `tp_rank` and `pp_rank` (parts of one engine, which
repeat the engine's figures).
"""

from lorapick.model.pods import GpuSource, PodReport
from lorapick.wire.engines.readings import PROCESS_START, Readings

_RUNNING = "sglang:num_running_reqs"
_WAITING = "sglang:num_queue_reqs"
_KV = "sglang:token_usage"
_RETRACTED = "sglang:num_retracted_requests_total"
_CACHE = "sglang:cache_config_info"
_SLOTS = "sglang:lora_pool_slots_total"
_PAGE_SIZE = "sglang:page_size"
_PAGES = "sglang:num_pages"
_FAMILIES = (PROCESS_START, _RUNNING, _KV, _WAITING, _RETRACTED, _CACHE, _SLOTS)
_FIRST_RANK = {"tp_rank": "0", "pp_rank": "0"}


def parse(page: bytes) -> PodReport:
    """Read one page.

    Raises:
        ExpositionError: the page is not SGLang's, or a line that matters is malformed.
    """
    read = Readings(page, _FAMILIES)
    read.need((_RUNNING, _WAITING), engine="SGLang (started with --enable-metrics)")
    block = read.label_number(_CACHE, "page_size", total=False)
    blocks = read.label_number(_CACHE, "num_pages", total=True)
    if block is None:
        read.also((_PAGE_SIZE, _PAGES))  # newer versions: gauges of their own
        block = read.largest(_PAGE_SIZE, where=_FIRST_RANK)
        blocks = read.count(_PAGES, where=_FIRST_RANK)
    gpu, memory = read.emulated()
    slots = read.largest(_SLOTS, where=_FIRST_RANK)  # `--max-loras-per-batch`, which counts the base model as one
    return PodReport(
        waiting=read.count(_WAITING, where=_FIRST_RANK),
        running=read.count(_RUNNING, where=_FIRST_RANK),
        kv_usage=read.share(_KV, where=_FIRST_RANK),
        gpu_utilization=gpu,
        gpu_source=GpuSource.UNKNOWN if gpu is None else GpuSource.POD,
        memory_pressure=memory,
        preemptions=read.count(_RETRACTED, where=_FIRST_RANK),
        max_loras=None if slots is None else max(1, slots - 1),
        block_size=block,
        gpu_blocks=blocks,
        process_start=read.process_start(),
        doubts=read.doubts,
    )
