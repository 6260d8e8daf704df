"""Render the metrics page of `trtllm-serve` from what an emulated pod knows.

In: the pod model's configuration and statistics. Out: the families of TensorRT-LLM 1.3 that a picker reads, with its
names and labels, and the one that it writes at its start. Not here: histograms and the many other families, the
emulator's own (see `emulator_page`), reading such pages (see `wire.engines.trtllm`).
"""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from lorapick.pod.values import PodConfig, PodStats

_LABELS = ("model_name", "engine_type")


def families(model_name: str, *, config: PodConfig, stats: PodStats) -> Iterator[Metric]:
    """Yield the families of one page; before the first step of the engine there are no gauges."""
    labels = (model_name, "trtllm")
    info = GaugeMetricFamily("trtllm_model_config_info", "What model is served.", labels=_LABELS)
    info.add_metric(labels, 1)
    yield info
    if stats.time.prefill + stats.time.decode <= 0:
        return
    gauges = {
        "num_requests_running": (stats.running, "Requests that are active."),
        "num_requests_waiting": (stats.waiting, "Requests that are queued."),
        "kv_cache_utilization": (stats.kv_usage, "Share of the KV cache in use."),
        "kv_cache_tokens_per_block": (config.block_size, "Tokens in a block of the KV cache."),
        "kv_cache_max_blocks": (config.kv_blocks, "Blocks of the KV cache."),
    }
    for name, (value, text) in gauges.items():
        family = GaugeMetricFamily(f"trtllm_{name}", text, labels=_LABELS)
        family.add_metric(labels, value)
        yield family
