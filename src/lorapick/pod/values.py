"""Values of the pod model: its configuration, what goes in, what comes out.

Not here: behaviour (see `pod.engine`).
"""

from enum import StrEnum

import msgspec

from lorapick.model.pods import PodLimits
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, BlockId, Bytes, Ratio, RequestId, Seconds, Tokens


class SwapMode(StrEnum):
    """How a pod brings an adapter into a GPU slot."""

    DRAIN = "drain"
    """The article: finish the running batch, load all adapters that wait, go on."""
    INLINE = "inline"
    """vLLM today: the load happens inside the step and blocks it; no drain."""


class StepCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one decode step: a + b·B + c·A + d·B·A with B requests and A distinct adapters in the batch.

    Defaults: refit of 74 real runs, Llama-3.1-8B, max rank 16, vLLM 0.8.5, H100 (mean error 5.2 %).
    """

    a: Seconds = 13.76e-3
    b: Seconds = 0.132e-3
    c: Seconds = 0.403e-3
    d: Seconds = 0.0005e-3


class SwapCosts(msgspec.Struct, frozen=True, kw_only=True):
    """The five phases of a swap [R1.3]; the drain is what the batch takes and has no constant."""

    deallocation: Seconds = 5e-3
    fragmentation: Seconds = 5e-3
    """Added to the deallocation when the leaving adapter's size differs from the arriving one's (2-10 ms)."""
    cpu_bandwidth: float = 16.7e9
    """Bytes per second from host memory: the article's observed 50 MB in 3 ms."""
    disk_bandwidth: float = 5e9
    """Bytes per second from NVMe: 50 MB in 10 ms."""
    initialisation: Seconds = 20e-3
    warm_up: Seconds = 75e-3
    """Cold caches and autotuning: 50-100 ms."""


class PodConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One emulated pod."""

    limits: PodLimits = PodLimits()
    mode: SwapMode = SwapMode.INLINE
    step: StepCosts = StepCosts()
    swap: SwapCosts = SwapCosts()
    prefill_per_token: Seconds = 33e-3 / 2048
    """Seconds per uncached prompt token (8B at half of the H100's peak)."""
    block_size: Tokens = 16
    kv_blocks: int = 18_875
    """KV blocks of `block_size` tokens (302,000 tokens on the calibrated H100)."""
    max_model_len: Tokens = 8192
    load_failure_share: Ratio = 0.0
    """Share of loads that fail at the end of their transfer, drawn with the `draw` the pod was given."""


class AdapterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter as the pod's disk has it."""

    name: AdapterName
    rank: int = 16
    size: Bytes = 65_536_000


class PodRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the engine sees it."""

    id: RequestId
    adapter: AdapterName | None
    """None: the base model."""
    prompt_tokens: Tokens
    output_tokens: Tokens
    """At least 1."""
    blocks: tuple[BlockId, ...] = ()
    """Ids of the prompt's full KV blocks, chained and seeded by the adapter."""


class PodEvent(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Something the pod did at `t`."""

    t: Seconds


class RequestStarted(PodEvent, frozen=True, kw_only=True):
    """Joined the batch: its prefill begins. Comes once, also when the request is preempted and joins again.

    `hit` is whether its adapter was on the GPU when it was scheduled without waiting for a load; True for the base
    model.
    """

    request_id: RequestId
    hit: bool
    cached_tokens: Tokens


class FirstToken(PodEvent, frozen=True, kw_only=True):
    """The first output token exists."""

    request_id: RequestId


class RequestFinished(PodEvent, frozen=True, kw_only=True):
    """All output tokens exist."""

    request_id: RequestId
    output_tokens: Tokens
    cached_tokens: Tokens
    waited_for_load: bool


class RequestFailed(PodEvent, frozen=True, kw_only=True):
    """The engine gave up (its adapter could not be loaded)."""

    request_id: RequestId
    why: str


class SwapStarted(PodEvent, frozen=True, kw_only=True):
    """Began to bring an adapter into a slot. `waited`: at least one request waits for it (then it is a swap)."""

    adapter: AdapterName
    tier_from: Tier
    waited: bool


class SwapEnded(PodEvent, frozen=True, kw_only=True):
    """The adapter is usable; seconds by phase."""

    adapter: AdapterName
    tier_from: Tier
    waited: bool
    drain: Seconds
    deallocation: Seconds
    transfer: Seconds
    initialisation: Seconds
    warm_up: Seconds


class SwapFailed(PodEvent, frozen=True, kw_only=True):
    """The load failed."""

    adapter: AdapterName
    why: str


class AdapterEvicted(PodEvent, frozen=True, kw_only=True):
    """Left the GPU (`tier` CPU or DISK) or the host level (`tier` DISK)."""

    adapter: AdapterName
    tier: Tier


class TimeSpent(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod's time went, in seconds; adds up to the clock."""

    prefill: Seconds = 0.0
    decode: Seconds = 0.0
    drain: Seconds = 0.0
    """Idle room of drain windows: of each second in which the batch ran down because a load waited, the share of the
    seats taken when the drain began that have become empty since. The rest of that second is decode. (The length of
    the window itself is in `SwapEnded.drain`.)"""
    deallocation: Seconds = 0.0
    transfer: Seconds = 0.0
    initialisation: Seconds = 0.0
    warm_up: Seconds = 0.0
    idle: Seconds = 0.0


class PodStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a scrape would see, plus what only an emulator knows."""

    running: int
    waiting: int
    deferred: int
    """Waiting requests whose adapter no running request uses while `max_loras` other adapters run."""
    kv_usage: Ratio
    on_gpu: tuple[AdapterName, ...]
    """Least recently used first. A name comes twice when a copy from before an unload still holds a slot."""
    on_cpu: tuple[AdapterName, ...]
    """Host-memory level, those on the GPU included, least recently used first."""
    loading: tuple[AdapterName, ...]
    in_flight: tuple[AdapterName, ...]
    """Adapters with requests in flight, waiting or running, oldest first (vLLM's `lora_requests_info`)."""
    swaps: int
    loads: int
    load_failures: int
    evictions: int
    preemptions: int
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    queried_tokens: int
    finished: int
    hits: int
    misses: int
    time: TimeSpent
