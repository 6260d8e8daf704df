"""Render what an emulated pod knows and no real engine tells, as families of their own prefix, `lorapick_pod_`.

In: the pod model's statistics, a utilisation. Out: Prometheus metric families, to stand last on the pod's page.
Not here: vLLM's families (see `vllm_page`), reading them (see `wire.engines.readings`).
"""

from collections.abc import Iterator

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from lorapick.model.units import Ratio, Seconds
from lorapick.pod.values import PodConfig, PodStats, SwapMode

_MEMORY_FIXED = 40 / 80
_MEMORY_KV = 30 / 80
_MEMORY_ADAPTERS = 10 / 80
"""The article's pod of 80 GB: 35 for the base model and 5 of workspace, 30 of KV cache, 10 for adapters."""


class Truths(msgspec.Struct, frozen=True, kw_only=True):
    """What the families show."""

    config: PodConfig
    stats: PodStats
    second: Seconds = 1.0
    """Real seconds per second of the pod model: the page speaks in what clients can measure."""
    gpu_utilization: Ratio | None = None
    """Busy share since the last look that is half a second old, swaps included, as a GPU's counter would have it. None:
    no time yet."""


def families(truths: Truths) -> Iterator[Metric]:
    """Yield the families of one page."""
    yield from _counts(truths.stats)
    yield from _times(truths)
    text = "Share of the time since the last look in which the GPU was not idle, swaps included."
    yield _gauge("gpu_utilization", text, truths.gpu_utilization)
    text = "Share of GPU memory in use; drain mode only, since engines that work inline reserve all of it at the start."
    stats = truths.stats
    pressure = memory_pressure(truths.config, kv_usage=stats.kv_usage, slots_used=len(stats.on_gpu))
    yield _gauge("memory_pressure", text, pressure)


def memory_pressure(config: PodConfig, *, kv_usage: Ratio, slots_used: int) -> Ratio | None:
    """Share of GPU memory in use as the article counts it: weights, KV in use, adapters in slots. None: inline mode."""
    if config.mode is not SwapMode.DRAIN:
        return None
    slots = min(1.0, slots_used / config.limits.max_loras)
    return _MEMORY_FIXED + _MEMORY_KV * kv_usage + _MEMORY_ADAPTERS * slots


def _counts(stats: PodStats) -> Iterator[Metric]:
    counts = {
        "swaps": (stats.swaps, "Loads begun while a request waited for them."),
        "loads": (stats.loads, "Loads of an adapter into a GPU slot."),
        "load_failures": (stats.load_failures, "Loads that failed."),
        "evictions": (stats.evictions, "Adapters that left a GPU slot."),
        "hits": (stats.hits, "Requests whose adapter was on the GPU when they ran."),
        "misses": (stats.misses, "Requests that waited for a load."),
    }
    for name, (value, text) in counts.items():
        yield CounterMetricFamily(f"lorapick_pod_{name}", text, value=value)


def _times(truths: Truths) -> Iterator[Metric]:
    time = truths.stats.time
    spent = {phase: getattr(time, phase) * truths.second for phase in time.__struct_fields__}
    seconds = CounterMetricFamily("lorapick_pod_seconds", "Where the pod's time went.", labels=["phase"])
    for phase, value in spent.items():
        seconds.add_metric([phase], value)
    yield seconds
    busy = sum(spent.values()) - spent["idle"]
    useful = (spent["prefill"] + spent["decode"]) / busy if busy > 0 else None
    yield _gauge("useful_time_ratio", "Prefill and decode seconds per busy second.", useful)


def _gauge(name: str, text: str, value: float | None) -> Metric:
    """A gauge that is declared but has no sample while its value is unknown."""
    family = GaugeMetricFamily(f"lorapick_pod_{name}", text)
    if value is not None:
        family.add_metric([], value)
    return family
