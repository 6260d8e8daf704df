"""Render the metrics page of Triton with its `tensorrtllm` backend from what an emulated pod knows.

In: the pod model's configuration and statistics. Out: the families that a picker reads, with their names and labels.
Not here: GPU families and those of single models, the emulator's own (see `emulator_page`), reading such pages (see
`wire.engines.triton`).
"""

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from lorapick.pod.values import PodConfig, PodStats


def families(*, config: PodConfig, stats: PodStats) -> Iterator[Metric]:
    """Yield the families of one page."""
    requests = {
        "active": stats.running + stats.waiting,
        "max": config.limits.max_num_seqs,
        "scheduled": stats.running,
        "context": 0,
        "waiting": stats.waiting,
    }
    yield _family("request", "request_type", values=requests)
    used = round(stats.kv_usage * config.kv_blocks)
    blocks = {
        "max": config.kv_blocks,
        "free": config.kv_blocks - used,
        "used": used,
        "tokens_per": config.block_size,
        "fraction": stats.kv_usage,
    }
    yield _family("kv_cache_block", "kv_cache_block_type", values=blocks)


def _family(kind: str, label: str, *, values: Mapping[str, float]) -> Metric:
    name = f"nv_trt_llm_{kind}_metrics"
    family = GaugeMetricFamily(name, f"TRT LLM {kind} metrics", labels=(label, "model", "version"))
    for what, value in values.items():
        family.add_metric((what, "tensorrt_llm", "1"), value)
    return family
