"""Pods: what discovery says of them, and what one scrape of them says."""

from enum import StrEnum

import msgspec

from lorapick.model.units import AdapterName, PodName, Ratio, Seconds


class Engine(StrEnum):
    """Model server software; each has one driver file in `live` and one metrics dialect in `wire`."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"
    """TensorRT-LLM's own server, `trtllm-serve`."""
    TRITON = "triton"
    """Triton with its `tensorrtllm` backend, behind its OpenAI frontend."""
    LORAX = "lorax"


class Role(StrEnum):
    """Part of a disaggregated fleet that a pod plays [R4.1]."""

    BOTH = "both"
    PREFILL = "prefill"
    DECODE = "decode"


class PodLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of a pod. Defaults are `defaults:` of the configuration, not the engine's own."""

    max_loras: int = 4
    """GPU slots; also the most distinct adapters in one batch (vLLM)."""
    max_cpu_loras: int = 16
    """Adapters in the engine's host-memory level, those on the GPU included (vLLM)."""
    max_lora_rank: int = 64
    max_num_seqs: int = 64
    max_queue: int = 8
    """Queue depth at which the pod takes no more requests; the filter's and the score's number."""


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """One model-server replica, as discovery names it."""

    name: PodName
    address: str
    """`ip:port`, the value of the destination header."""
    role: Role = Role.BOTH
    zone: str | None = None
    labels: dict[str, str] = {}
    engine: Engine = Engine.VLLM
    base_model: str = "base"
    """Name under which clients ask for the base model on this pod."""
    limits: PodLimits = PodLimits()
    eviction: str = "lru"
    """How its engine evicts adapters: a name of `core.retention.policies.EVICTIONS`; SGLang may be told `fifo`."""
    kv_events: str | None = None
    """ZMQ endpoint on which this pod publishes its KV events (`tcp://10.0.0.7:5557`); None: it publishes none."""
    dcgm_url: str | None = None
    """A DCGM exporter's metrics page for this pod's GPU; None: none."""
    draining: bool = False
    """It is about to leave: discovery says so with a `PodDraining` too."""


class LoadedAdapter(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a pod's own residency report."""

    name: AdapterName
    on_gpu: bool | None
    """None: in the engine's memory, it does not say on which level (SGLang's list of models)."""
    pinned: bool = False
    """The engine itself never evicts it."""
    rank: int | None = None


class GpuSource(StrEnum):
    """Where a GPU utilisation figure came from; said in every explanation."""

    POD = "pod"
    DCGM = "dcgm"
    STAND_IN = "running/max_num_seqs"
    UNKNOWN = "unknown"


class PodReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One successful scrape. None: the page did not say."""

    waiting: int | None = None
    running: int | None = None
    deferred: int | None = None
    """Part of `waiting` held back by the adapter budget (vLLM `reason="deferred"`)."""
    kv_usage: Ratio | None = None
    gpu_utilization: Ratio | None = None
    gpu_source: GpuSource = GpuSource.UNKNOWN
    memory_pressure: Ratio | None = None
    preemptions: int | None = None
    """Counter since the pod's start."""
    prompt_tokens: int | None = None
    """Of all prompts that were prefilled since the pod's start, cached ones included."""
    in_flight_adapters: tuple[AdapterName, ...] | None = None
    """Adapters with requests in flight (vLLM `lora_requests_info`): activity, never residency. None: no series yet."""
    running_adapters: tuple[AdapterName, ...] | None = None
    """Names under that series' label `running_lora_adapters`, when the other label does not name the same; None: both
    name `in_flight_adapters`, as with a real vLLM."""
    waiting_adapters: tuple[AdapterName, ...] | None = None
    """Names under the label `waiting_lora_adapters`, likewise."""
    used: tuple[AdapterName, ...] = ()
    """Adapters that the engine ran since the scrape before (the first one of ours: since its own start), whoever sent
    the requests, in the order of their last step, oldest first."""
    used_until: Seconds | None = None
    """Time of the last of these steps on the pod's own clock; None: it does not say."""
    loaded: tuple[LoadedAdapter, ...] | None = None
    """The pod's own residency report; None: this engine does not report."""
    registered: tuple[AdapterName, ...] | None = None
    """Names that the engine accepts (`/v1/models`); None: not asked in this scrape."""
    base_models: tuple[str, ...] | None = None
    max_loras: int | None = None
    """GPU slots for adapters; SGLang's `max_loras_per_batch` less the one that the base model takes."""
    max_cpu_loras: int | None = None
    """Adapters in the engine's host-memory level, those on the GPU included."""
    block_size: int | None = None
    """Tokens in a KV block."""
    gpu_blocks: int | None = None
    process_start: Seconds | None = None
    """Wall-clock start of the pod's process; another value means a restart."""
    attributes: tuple[tuple[str, float], ...] = ()
    """Metrics that a configuration names, as far as the page has them (`CustomMetric`)."""
    doubts: tuple[str, ...] = ()
    """Figures of the page that cannot be true (a negative count, a share of 7) and were taken as unknown."""


class SilentWhy(StrEnum):
    """Why a scrape brought nothing."""

    REFUSED = "refused"
    TIMEOUT = "timeout"
    STATUS = "status"
    GARBAGE = "garbage"
