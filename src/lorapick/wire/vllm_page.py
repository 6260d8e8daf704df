"""Render the engine part of a vLLM 0.32 metrics page from what an emulated pod knows.

In: `PageFacts` (the pod model's statistics, request histograms, the adapters seen in flight).
Out: Prometheus metric families with vLLM's names, labels, buckets and semantics, the awkward ones included.
Not here: the HTTP route, process and HTTP families (see `live.podserver.metrics`), what only an emulator knows (see
`emulator_page`), clocks (times come as arguments), or reading such pages (see `wire.engines.vllm`).

Families that need a look at every engine step (`vllm:iteration_tokens_total`) are left out, and those of which a pod
model has no notion (multimodal caches, sleep state) are constant; a test lists each difference to a real page.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from lorapick.model.units import AdapterName, Seconds, Tokens
from lorapick.pod.values import PodConfig, PodStats

_TTFT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0)
_TTFT_LONG = (2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0)
_TOKEN_GAP = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
_LATENCY = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)
_LATENCY_LONG = (120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)

HISTOGRAMS: dict[str, tuple[str, tuple[float, ...] | None]] = {
    "request_prompt_tokens": ("Number of prefill tokens processed.", None),
    "request_generation_tokens": ("Number of generation tokens processed.", None),
    "request_max_num_generation_tokens": ("Histogram of maximum number of requested generation tokens.", None),
    "request_params_n": ("Histogram of the n request parameter.", (1.0, 2.0, 5.0, 10.0, 20.0)),
    "request_params_max_tokens": ("Histogram of the max_tokens request parameter.", None),
    "time_to_first_token_seconds": ("Histogram of time to first token in seconds.", _TTFT + _TTFT_LONG),
    "inter_token_latency_seconds": ("Histogram of inter-token latency in seconds.", _TOKEN_GAP),
    "request_time_per_output_token_seconds": (
        "Histogram of time_per_output_token_seconds per request.",
        _TOKEN_GAP,
    ),
    "e2e_request_latency_seconds": ("Histogram of e2e request latency in seconds.", _LATENCY + _LATENCY_LONG),
    "request_queue_time_seconds": (
        "Histogram of time spent in WAITING phase for request.",
        _LATENCY + _LATENCY_LONG,
    ),
    "request_inference_time_seconds": (
        "Histogram of time spent in RUNNING phase for request.",
        _LATENCY + _LATENCY_LONG,
    ),
    "request_prefill_time_seconds": (
        "Histogram of time spent in PREFILL phase for request.",
        _LATENCY + _LATENCY_LONG,
    ),
    "request_decode_time_seconds": (
        "Histogram of time spent in DECODE phase for request.",
        _LATENCY + _LATENCY_LONG,
    ),
    "request_prefill_kv_computed_tokens": (
        "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
        None,
    ),
}
"""Name without `vllm:`, help text, upper bounds; None: 1, 2, 5 times powers of ten up to the longest sequence."""

FINISHED_REASONS = ("stop", "length", "abort", "error", "repetition")
_QUEUE_REASONS_HELP = (
    "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; 'deferred' = "
    "deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all reasons equals "
    "vllm:num_requests_waiting."
)
_SLEEP_HELP = (
    "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; weights_offloaded = 1 "
    "means sleep level 1; discard_all = 1 means sleep level 2."
)
_CACHED_BY_SOURCE_HELP = (
    "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to DRAM), disk, "
    "p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; sums to "
    "vllm:prefix_cache_hits + vllm:external_prefix_cache_hits."
)


def token_bounds(longest: Tokens) -> tuple[float, ...]:
    """Bucket bounds of token counts: 1, 2, 5, 10, 20, 50, ... not above `longest`."""
    bounds: list[float] = []
    scale = 1
    while scale <= longest:
        bounds.extend(float(step * scale) for step in (1, 2, 5) if step * scale <= longest)
        scale *= 10
    return tuple(bounds)


class Histogram:
    """Cumulative histogram that can take one value many times at once (token gaps of a whole answer)."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count `value` `times` times; a value equal to a bound belongs to that bound's bucket."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def buckets(self) -> list[tuple[str, float]]:
        """Upper bound as text and count of values at or below it, `+Inf` last."""
        running = 0
        rows: list[tuple[str, float]] = []
        for bound, count in zip((*self.bounds, inf), self.counts, strict=True):
            running += count
            rows.append(("+Inf" if bound == inf else repr(bound), float(running)))
        return rows


class RequestHistograms:
    """All per-request histograms of the page, by name without `vllm:`."""

    def __init__(self, max_model_len: Tokens) -> None:
        longest = token_bounds(max_model_len)
        self._by_name = {name: Histogram(bounds or longest) for name, (_, bounds) in HISTOGRAMS.items()}

    def __getitem__(self, name: str) -> Histogram:
        return self._by_name[name]


class LoraRequestsInfo:
    """`vllm:lora_requests_info` as vLLM keeps it: activity, never residency.

    One series per combination of names ever seen, never removed; its value is the unix time of the last engine step
    at which it was current. Before the first step there is no series. Both labels carry the same names, in the order
    in which the adapters got their first token, joined with an unescaped comma.
    """

    def __init__(self) -> None:
        self.series: dict[str, Seconds] = {}

    def step(self, in_flight: Iterable[AdapterName], *, wall: Seconds) -> None:
        """Note an engine step that ended at unix time `wall` with these adapters in flight."""
        self.series[",".join(in_flight)] = wall

    def renew(self, in_flight: Iterable[AdapterName], *, wall: Seconds) -> None:
        """These were in flight up to `wall`."""
        names = ",".join(in_flight)
        self.series[names] = max(self.series.get(names, wall), wall)


class ResidentAdapter(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `vllm:lora_adapter_loaded`."""

    name: AdapterName
    level: str
    """`gpu`: holds a slot; `cpu`: in the host level only."""
    rank: int | None


class PageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the engine part of a page shows."""

    model_name: str
    config: PodConfig
    stats: PodStats
    histograms: RequestHistograms
    finished: Mapping[str, int]
    """Ended requests by vLLM's `finished_reason`; an absent reason counts 0."""
    lora_requests: LoraRequestsInfo
    created: Seconds
    """Unix time at which the counters began."""
    received_tokens: Tokens = 0
    """Prompt tokens whose KV came from other pods."""
    resident: tuple[ResidentAdapter, ...] | None = None
    """None: this vLLM does not report residency (0.32 and before)."""


def families(facts: PageFacts) -> Iterator[Metric]:
    """Yield the metric families of one page."""
    yield from _queues(facts)
    yield from _token_counters(facts)
    yield from _outcomes(facts)
    for name, (text, _) in HISTOGRAMS.items():
        yield _histogram(facts, name, text)
    yield _lora_requests(facts)
    if facts.resident is not None:
        yield from _residency(facts, facts.resident)
    yield _cache_config(facts.config)


def _labels(facts: PageFacts) -> dict[str, str]:
    return {"engine": "0", "model_name": facts.model_name}


def _gauge(facts: PageFacts, name: str, *, text: str, values: Mapping[str, float] | float, label: str = "") -> Metric:
    """A gauge with vLLM's two labels, and one more when `values` is a mapping by that label's value."""
    family = GaugeMetricFamily(f"vllm:{name}", text)
    by_label = values if isinstance(values, Mapping) else {"": values}
    for key, value in by_label.items():
        labels = _labels(facts)
        if label:
            labels[label] = key
        family.add_sample(f"vllm:{name}", labels, float(value))
    return family


def _counter(facts: PageFacts, name: str, *, text: str, values: Mapping[str, float] | float, label: str = "") -> Metric:
    """A counter with vLLM's two labels, and one more when `values` is a mapping by that label's value."""
    family = CounterMetricFamily(f"vllm:{name}", text)
    by_label = values if isinstance(values, Mapping) else {"": values}
    for key, value in by_label.items():
        labels = _labels(facts)
        if label:
            labels[label] = key
        family.add_sample(f"vllm:{name}_total", labels, float(value))
        family.add_sample(f"vllm:{name}_created", labels, facts.created)
    return family


def _histogram(facts: PageFacts, name: str, text: str) -> Metric:
    family = HistogramMetricFamily(f"vllm:{name}", text)
    labels = _labels(facts)
    histogram = facts.histograms[name]
    rows = histogram.buckets()
    for bound, count in rows:
        family.add_sample(f"vllm:{name}_bucket", labels | {"le": bound}, count)
    family.add_sample(f"vllm:{name}_count", labels, rows[-1][1])
    family.add_sample(f"vllm:{name}_sum", labels, histogram.total)
    family.add_sample(f"vllm:{name}_created", labels, facts.created)
    return family


def _queues(facts: PageFacts) -> Iterator[Metric]:
    stats = facts.stats
    yield _gauge(
        facts, "num_requests_running", text="Number of requests in model execution batches.", values=stats.running
    )
    yield _gauge(
        facts, "num_requests_waiting", text="Number of requests waiting to be processed.", values=stats.waiting
    )
    reasons = {"capacity": stats.waiting - stats.deferred, "deferred": stats.deferred}
    yield _gauge(facts, "num_requests_waiting_by_reason", text=_QUEUE_REASONS_HELP, values=reasons, label="reason")
    sleep = {"awake": 1, "weights_offloaded": 0, "discard_all": 0}
    yield _gauge(facts, "engine_sleep_state", text=_SLEEP_HELP, values=sleep, label="sleep_state")
    yield _gauge(facts, "kv_cache_usage_perc", text="KV-cache usage. 1 means 100 percent usage.", values=stats.kv_usage)


def _token_counters(facts: PageFacts) -> Iterator[Metric]:
    stats, got = facts.stats, facts.received_tokens
    hit = stats.cached_tokens
    text = "Prefix cache {}, in terms of number of {} tokens."
    yield _counter(facts, "prefix_cache_queries", text=text.format("queries", "queried"), values=stats.queried_tokens)
    yield _counter(facts, "prefix_cache_hits", text=text.format("hits", "cached"), values=hit)
    text = "External prefix cache {} from KV connector cross-instance cache sharing, in terms of number of {} tokens."
    yield _counter(facts, "external_prefix_cache_queries", text=text.format("queries", "queried"), values=got)
    yield _counter(facts, "external_prefix_cache_hits", text=text.format("hits", "cached"), values=got)
    text = "Multi-modal cache {}, in terms of number of {} items."
    yield _counter(facts, "mm_cache_queries", text=text.format("queries", "queried"), values=0)
    yield _counter(facts, "mm_cache_hits", text=text.format("hits", "cached"), values=0)
    yield _counter(
        facts, "num_preemptions", text="Cumulative number of preemption from the engine.", values=stats.preemptions
    )
    yield _counter(facts, "prompt_tokens", text="Number of prefill tokens processed.", values=stats.prompt_tokens)
    by_source = {"local_compute": stats.prompt_tokens - hit - got, "local_cache_hit": hit, "external_kv_transfer": got}
    yield _counter(
        facts, "prompt_tokens_by_source", text="Number of prompt tokens by source.", values=by_source, label="source"
    )
    yield _counter(
        facts, "prompt_tokens_cached", text="Number of cached prompt tokens (local + external).", values=hit + got
    )
    by_tier = {"device": hit, "host": 0, "p2p": got, "disk": 0, "external_unspecified": 0}
    yield _counter(facts, "prompt_tokens_cached_by_source", text=_CACHED_BY_SOURCE_HELP, values=by_tier, label="source")
    yield _counter(
        facts, "generation_tokens", text="Number of generation tokens processed.", values=stats.output_tokens
    )


def _outcomes(facts: PageFacts) -> Iterator[Metric]:
    finished = {reason: facts.finished.get(reason, 0) for reason in FINISHED_REASONS}
    text = "Count of successfully processed requests."
    yield _counter(facts, "request_success", text=text, values=finished, label="finished_reason")
    text = "Number of admission attempts rejected by a queue limit, by reason."
    rejections = CounterMetricFamily("vllm:admission_rejections", text)
    for reason in ("max_num_queued_reqs", "max_num_queued_tokens"):
        labels = {"model_name": facts.model_name, "reason": reason}
        rejections.add_sample("vllm:admission_rejections_total", labels, 0.0)
        rejections.add_sample("vllm:admission_rejections_created", labels, facts.created)
    yield rejections


def _lora_requests(facts: PageFacts) -> Metric:
    family = GaugeMetricFamily("vllm:lora_requests_info", "Running stats on lora requests.")
    for names, wall in facts.lora_requests.series.items():
        labels = {
            "max_lora": str(facts.config.limits.max_loras),
            "running_lora_adapters": names,
            "waiting_lora_adapters": names,
        }
        family.add_sample("vllm:lora_requests_info", labels, wall)
    return family


def _residency(facts: PageFacts, resident: Sequence[ResidentAdapter]) -> Iterator[Metric]:
    """The families of vLLM's open pull request 54830."""
    text = "LoRA adapters that are loaded: 1 while the adapter is resident."
    family = GaugeMetricFamily("vllm:lora_adapter_loaded", text)
    for adapter in resident:
        labels = _labels(facts) | {"adapter_name": adapter.name, "level": adapter.level, "pinned": "false"}
        labels["rank"] = "" if adapter.rank is None else str(adapter.rank)
        family.add_sample("vllm:lora_adapter_loaded", labels, 1.0)
    yield family
    stats = facts.stats
    slots = facts.config.limits.max_loras
    yield _gauge(facts, "num_gpu_loaded_lora_adapters", text="LoRA adapters in GPU slots.", values=len(stats.on_gpu))
    yield _gauge(
        facts, "num_cpu_loaded_lora_adapters", text="LoRA adapters in the host cache.", values=len(stats.on_cpu)
    )
    yield _gauge(facts, "max_gpu_lora_adapters", text="GPU slots for LoRA adapters.", values=slots)


_CACHE_CONFIG = {
    "_block_size_resolved": "True",
    "cache_dtype": "auto",
    "cache_hit_alignment_tokens": "None",
    "enable_mamba_shared_prefix_checkpoint": "False",
    "enable_prefix_caching": "True",
    "engine": "0",
    "gpu_memory_utilization": "0.92",
    "hash_block_size": "None",
    "is_attention_free": "False",
    "kv_cache_dtype_skip_layers": "[]",
    "kv_cache_layout": "None",
    "kv_cache_memory_bytes": "None",
    "kv_offloading_backend": "native",
    "kv_offloading_size": "None",
    "kv_sharing_fast_prefill": "False",
    "mamba_block_size": "None",
    "mamba_cache_dtype": "auto",
    "mamba_cache_mode": "none",
    "mamba_page_size_padded": "None",
    "mamba_ssm_cache_dtype": "float32",
    "num_cpu_blocks": "None",
    "num_gpu_blocks_override": "None",
    "prefix_cache_retention_interval": "0",
    "prefix_caching_hash_algo": "sha256",
    "prefix_match_unit": "None",
    "replayssm_buffer_len": "16",
    "skip_page_size_padded": "None",
    "sliding_window": "None",
    "swa_bounded_replay": "True",
    "use_kda_recoverssm": "False",
    "use_replayssm": "False",
    "user_specified_block_size": "False",
}
"""Labels of `vllm:cache_config_info` that say nothing about an emulated pod, with a plain vLLM's values."""


def _cache_config(config: PodConfig) -> Metric:
    family = GaugeMetricFamily("vllm:cache_config_info", "Information of the LLMEngine CacheConfig")
    tokens = config.block_size * config.kv_blocks
    labels = _CACHE_CONFIG | {
        "block_size": str(config.block_size),
        "effective_attention_block_size": str(config.block_size),
        "kv_cache_max_concurrency": str(tokens / config.max_model_len),
        "kv_cache_size_tokens": str(tokens),
        "num_gpu_blocks": str(config.kv_blocks),
    }
    family.add_sample("vllm:cache_config_info", labels, 1.0)
    return family
