"""Values of the pod model: its configuration, what goes in, what comes out.

Not here: behaviour (see `pod.engine`).
"""

from enum import StrEnum

import msgspec

from lorapick.model.pods import PodLimits
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, BlockId, Bytes, Ratio, RequestId, Seconds, Tokens

SPEEDS = (0.001, 10_000.0)
"""Model seconds per real second, slowest and fastest, at which a pod may be run."""


class SwapMode(StrEnum):
    """How a pod brings an adapter into a GPU slot."""

    DRAIN = "drain"
    """The article: finish the running batch, load all adapters that wait, go on."""
    INLINE = "inline"
    """vLLM today: the load happens inside the step and blocks it; no drain."""


class Memory(StrEnum):
    """Where adapters lie on the GPU."""

    SLOTS = "slots"
    """vLLM: a fixed reservation for `max_loras` adapters beside the KV pool."""
    UNIFIED = "unified"
    """S-LoRA (arXiv 2311.03285): adapters and KV blocks share one pool of pages, so adapters compete with context."""


class Kernel(StrEnum):
    """What the LoRA part of a step costs; see `pod.kernels`."""

    DISTINCT = "distinct"
    """By the number of distinct adapters in the batch, whatever their ranks (vLLM: each slot has the largest rank)."""
    PADDED = "padded"
    """Also by the highest rank in the batch, to which all are padded (Punica's BGMV, CaraServe arXiv 2401.11240)."""
    SEGMENTED = "segmented"
    """By the sum of the ranks (Punica's SGMV, arXiv 2310.18547; S-LoRA's MBGMV): small adapters are cheap."""


class Merging(StrEnum):
    """Whether an adapter is folded into the weights of the base model; see `pod.folding`."""

    NEVER = "never"
    ALWAYS = "always"
    """One adapter at a time, always folded in; for another one the weights are written again."""
    BY_LOAD = "by_load"
    """dLoRA (OSDI'24): folded in while one adapter has most of the work, unmerged when others wait too long."""


class StepCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one decode step: a + b·B + c·A + d·B·A with B requests and A distinct adapters in the batch.

    Defaults: refit of 74 real runs, Llama-3.1-8B, max rank 16, vLLM 0.8.5, H100 (mean error 5.2 %).
    """

    a: Seconds = 13.76e-3
    b: Seconds = 0.132e-3
    c: Seconds = 0.403e-3
    d: Seconds = 0.0005e-3
    slot: Seconds = 0.0
    """Per configured slot, used or not: kernels that walk over all of them."""
    scan: Seconds = 0.0
    """Per waiting request that is passed over because its adapter would be one too many: vLLM's scheduler looks at
    each of them in every step."""
    reference_rank: int = 16
    """Rank at which `c` and `d` hold, for the kernels whose cost follows the rank."""
    rank_slope: float = 0.29
    """Kernel `padded`: growth of `c` per `reference_rank` above it. The refits have c = 0.403 ms at rank 16 and
    0.520 ms at rank 32 (Llama-3.1-8B): 0.520 / 0.403 - 1."""


class MergePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When an adapter is folded into the base weights, and what it costs."""

    mode: Merging = Merging.NEVER
    seconds: Seconds = 140e9 / 3.35e12
    """One merge or one unmerge: it touches all the weights. 140 GB (70B, FP16) at an H100's 3.35 TB/s; less with tensor
    parallelism, more when they are written back at the same bandwidth."""
    share: Ratio = 0.7
    """`by_load`: merge when one adapter has at least this share of the requests that wait or run."""
    patience: Seconds = 1.0
    """The longest that a request of another adapter waits before the folded one has to give way."""


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
    """KV blocks of `block_size` tokens (302,000 tokens on the calibrated H100); `unified`: pages, also of adapters."""
    max_model_len: Tokens = 8192
    max_batched_tokens: Tokens | None = None
    """Tokens computed in one step at most: one per running request, and the prompts of those that join (vLLM's
    `max_num_batched_tokens`). Prompts are not split: the last to join may exceed it, and the next steps have so much
    less. None: no limit."""
    memory: Memory = Memory.SLOTS
    kernel: Kernel = Kernel.DISTINCT
    merging: MergePolicy = MergePolicy()
    kv_bytes_per_token: Bytes = 131_072
    """`unified`: a page holds `block_size` times this. 32 layers × 8 KV heads × 128 × K and V × 2 bytes (8B, FP16)."""
    unload_frees: bool = False
    """An unload waits until nobody uses the adapter, and then drops its weights from both memory levels (SGLang).
    False: it forgets the name, and the weights stay until the LRU moves on (vLLM)."""
    kv_hold: Seconds = 480.0
    """For how long the KV of a request of which only the prompt was wanted stays in memory when nobody releases it;
    vLLM's `VLLM_NIXL_ABORT_REQUEST_TIMEOUT`."""
    load_failure_share: Ratio = 0.0
    """Share of loads that fail at the end of their transfer, drawn with the `draw` the pod was given."""


class AdapterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter as the pod's disk has it."""

    name: AdapterName
    rank: int = 16
    size: Bytes = 65_536_000


class ReceivedKv(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """KV of a whole prompt that another pod computed."""

    adapter: AdapterName | None
    """Under which it was computed; None: the base model. It is of no use to any other."""


class PodRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request as the engine sees it."""

    id: RequestId
    adapter: AdapterName | None
    """None: the base model."""
    prompt_tokens: Tokens
    output_tokens: Tokens
    """At least 1."""
    blocks: tuple[BlockId, ...] = ()
    """Ids of the prompt's full KV blocks, chained and seeded by the adapter."""
    prefill_only: bool = False
    """Only its prompt is wanted: it has one output token, and its KV blocks stay in use until `release_kv`, or until
    `PodConfig.kv_hold` is over."""
    kv: ReceivedKv | None = None
    """The prompt's KV has come from another pod: the request needs its blocks and no prompt compute. None: it has to
    be computed."""


class PodEvent(msgspec.Struct, frozen=True, kw_only=True, tag=True, gc=False):
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


class KvExpired(PodEvent, frozen=True, kw_only=True):
    """Nobody fetched the KV of a request of which only the prompt was wanted; its blocks are free again."""

    request_id: RequestId


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


class AdapterUnloaded(PodEvent, frozen=True, kw_only=True):
    """An unload that was asked for is done; comes only where it frees (`PodConfig.unload_frees`)."""

    adapter: AdapterName


class AdapterMerged(PodEvent, frozen=True, kw_only=True):
    """The adapter was folded into the base weights: from now on nothing else runs."""

    adapter: AdapterName


class AdapterUnmerged(PodEvent, frozen=True, kw_only=True):
    """The base weights are their own again."""

    adapter: AdapterName


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
    merge: Seconds = 0.0
    """Folding adapters into the base weights and out of them."""


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
    """Adapters with a request in flight that has a token, oldest first. As in vLLM's `lora_requests_info`: who only
    waits, for a seat or for a load, is not named."""
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
    merged: AdapterName | None = None
    """The adapter that is folded into the base weights."""
    kv_held: int = 0
    """Requests that are over and whose KV waits to be fetched by another pod."""
