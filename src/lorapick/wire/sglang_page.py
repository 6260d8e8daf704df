"""Render the engine part of an SGLang metrics page from what an emulated pod knows.

In: the pod model's configuration and statistics. Out: the families of SGLang 0.5.23 that a picker reads, with its names
and labels. Not here: latency histograms and the many other families, the emulator's own (see `emulator_page`), reading
such pages (see `wire.engines.sglang`).
"""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from lorapick.pod.values import PodConfig, PodStats

_LABELS = ("model_name", "engine_type", "tp_rank", "pp_rank")


def families(model_name: str, *, config: PodConfig, stats: PodStats) -> Iterator[Metric]:
    """Yield the families of one page. The slots count one for the base model, as SGLang's do."""
    labels = (model_name, "unified", "0", "0")
    slots = config.limits.max_loras + 1
    gauges = {
        "num_running_reqs": (stats.running, "The number of running requests."),
        "num_queue_reqs": (stats.waiting, "The number of requests in the waiting queue."),
        "token_usage": (stats.kv_usage, "The token usage."),
        "page_size": (config.block_size, "Tokens in a page of the KV cache."),
        "num_pages": (config.kv_blocks, "Pages of the KV cache."),
        "lora_pool_slots_used": (min(slots, len(stats.on_gpu) + 1), "LoRA slots in use."),
        "lora_pool_slots_total": (slots, "LoRA slots."),
    }
    for name, (value, text) in gauges.items():
        family = GaugeMetricFamily(f"sglang:{name}", text, labels=_LABELS)
        family.add_metric(labels, value)
        yield family
    retracted = CounterMetricFamily("sglang:num_retracted_requests", "Requests that were retracted.", labels=_LABELS)
    retracted.add_metric(labels, stats.preemptions)
    yield retracted
