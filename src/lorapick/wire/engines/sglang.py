"""SGLang's metrics page (0.4 to 0.5.23; needs `--enable-metrics`).

In: the page. Out: a `PodReport`. Not here: the adapters in host memory, which SGLang tells in `/v1/models`.

Series are told apart by `dp_rank` (engines, which add up) and by `tp_rank` and `pp_rank` (parts of one engine, which
repeat the engine's figures). With `--enable-priority-scheduling` the counts of requests have a series for each
`priority` besides, whose sum is the series with an empty one.
Names begin with `sglang:`; collectors that allow no colon in a name pass them on as `sglang_`.
"""

from lorapick.model.pods import GpuSource, PodReport
from lorapick.wire.engines.readings import PROCESS_START, Readings

_PREFIXES = ("sglang:", "sglang_")
_RUNNING, _WAITING = "num_running_reqs", "num_queue_reqs"
_KV = "token_usage"
_RETRACTED = "num_retracted_requests_total"
_CACHE = "cache_config_info"
_SLOTS = "lora_pool_slots_total"
_PAGE_SIZE, _PAGES = "page_size", "num_pages"
_TOKENS = "max_total_num_tokens"
_NAMES = (_RUNNING, _KV, _WAITING, _RETRACTED, _CACHE, _SLOTS)
_MORE = (_PAGE_SIZE, _PAGES, _TOKENS)
_FIRST_RANK = {"tp_rank": "0", "pp_rank": "0"}
_ALL_PRIORITIES = {**_FIRST_RANK, "priority": ""}


def parse(page: bytes) -> PodReport:
    """Read one page.

    Raises:
        ExpositionError: the page is not SGLang's, or a line that matters is malformed.
    """
    prefix = _PREFIXES[0] if _PREFIXES[0].encode() in page or _PREFIXES[1].encode() not in page else _PREFIXES[1]
    read = Readings(page, (PROCESS_START, *(prefix + name for name in _NAMES)))
    read.need((prefix + _RUNNING, prefix + _WAITING), engine="SGLang (started with --enable-metrics)")
    block, blocks = _cache(read, prefix)
    gpu, memory = read.emulated()
    slots = read.largest(prefix + _SLOTS, where=_FIRST_RANK)  # `--max-loras-per-batch`; the base model counts as one
    return PodReport(
        waiting=_requests(read, prefix + _WAITING),
        running=_requests(read, prefix + _RUNNING),
        kv_usage=read.share(prefix + _KV, where=_FIRST_RANK),
        gpu_utilization=gpu,
        gpu_source=GpuSource.UNKNOWN if gpu is None else GpuSource.POD,
        memory_pressure=memory,
        preemptions=read.count(prefix + _RETRACTED, where=_FIRST_RANK),
        max_loras=None if slots is None else max(1, slots - 1),
        block_size=block,
        gpu_blocks=blocks,
        process_start=read.process_start(),
        doubts=read.doubts,
    )


def _requests(read: Readings, family: str) -> int | None:
    """Over priorities: their sum where the engine gives one, else whatever there is."""
    total = read.count(family, where=_ALL_PRIORITIES)
    return total if total is not None else read.count(family, where=_FIRST_RANK)


def _cache(read: Readings, prefix: str) -> tuple[int | None, int | None]:
    """Tokens in a page, and pages: as labels, as gauges of their own, or by the tokens that all pages hold."""
    info = prefix + _CACHE
    block = read.label_number(info, "page_size", total=False)
    if block is not None:
        return block, read.label_number(info, "num_pages", total=True)
    read.also([prefix + name for name in _MORE])
    block = read.largest(prefix + _PAGE_SIZE, where=_FIRST_RANK)
    blocks = read.count(prefix + _PAGES, where=_FIRST_RANK)
    if blocks is None and block:
        tokens = read.count(prefix + _TOKENS, where=_FIRST_RANK)
        blocks = None if tokens is None else tokens // block
    return block, blocks
