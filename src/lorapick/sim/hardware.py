"""Hardware that scenarios name: what a pod costs in time and has in memory, with where each number comes from.

In: a name. Out: coefficients as values. They are frozen: no scenario tunes them.
Not here: sizes that a scenario chooses (slots, seats, queue).
"""

from math import inf

import msgspec

from lorapick.model.units import Bytes, Seconds, Tokens
from lorapick.pod.values import StepCosts, SwapCosts


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU with one base model and one engine."""

    name: str
    step: StepCosts
    swap: SwapCosts
    prefill_per_token: Seconds
    kv_tokens: Tokens
    """Tokens of KV that fit beside `kv_slots` slots of rank 16."""
    kv_slots: int
    slot_tokens: tuple[float, float]
    """Tokens of KV that one slot costs: a fixed part, and per unit of the largest rank that the engine allows."""
    kv_bytes_per_token: Bytes
    block_size: Tokens
    weights: Bytes
    """Bytes of the base model's weights: what folding an adapter in or out has to touch."""
    memory_bandwidth: float = 3.35e12
    """Bytes per second of the GPU's memory; an H100 SXM's, by its data sheet."""
    adapter_size: Bytes
    """Bytes of a rank-16 adapter on q and v, FP16; other ranks in proportion."""
    extrapolated: bool
    """Whether a coefficient was carried over from another model or GPU instead of being fitted."""
    sources: tuple[str, ...]
    """Where the numbers come from, for reports."""

    @property
    def merge(self) -> Seconds:
        """One merge or unmerge: all weights are touched once."""
        return self.weights / self.memory_bandwidth

    def kv_blocks(self, slots: int, max_rank: int) -> int:
        """KV blocks beside so many slots that are reserved for this rank; not above 0: they do not fit."""
        reserved = self.kv_slots * self.tokens_of_slot(16)
        left = self.kv_tokens + reserved - slots * self.tokens_of_slot(max_rank)
        return int(left // self.block_size)

    def tokens_of_slot(self, max_rank: int) -> float:
        """Tokens of KV that one slot costs."""
        fixed, per_rank = self.slot_tokens
        return fixed + per_rank * max_rank


_CALIBRATED = StepCosts()
_ARTICLE = SwapCosts()
# What `lorapick calibrate` fits to the measured runs, at largest rank 16; a test holds them equal to its frozen file.
_FITTED = StepCosts(a=0.01327, b=0.0001002, c=0.0003853, d=6.822e-07, slot=2.509e-05, scan=5.286e-07)
_ACTIVATION = SwapCosts(deallocation=0.0, fragmentation=0.0, cpu_bandwidth=inf, initialisation=8e-3, warm_up=0.0)

# One decode step reads all weights once, so it scales with their bytes; what LoRA adds to it is launches, one set per
# layer, so it scales with layers; what a request adds is reading its KV, which scales with layers x KV width.
_PLAIN_8B = 10.54e-3
_LORA_8B = _CALIBRATED.a - _PLAIN_8B
_LAYERS = 80 / 32
_WEIGHTS_8B: Bytes = 16_060_000_000
_WEIGHTS_70B_INT4: Bytes = 35_000_000_000
_WEIGHTS = _WEIGHTS_70B_INT4 / _WEIGHTS_8B

PRESETS: dict[str, Hardware] = {
    each.name: each
    for each in (
        Hardware(
            name="h100-llama8b",
            step=_CALIBRATED,
            swap=_ARTICLE,
            prefill_per_token=33e-3 / 2048,
            kv_tokens=307_600,
            kv_slots=0,
            slot_tokens=(51.0, 43.75),
            kv_bytes_per_token=131_072,
            block_size=16,
            weights=_WEIGHTS_8B,
            adapter_size=13_631_488,
            extrapolated=False,
            sources=(
                (
                    "decode step: refit of 74 one-hour runs of Llama-3.1-8B, max rank 16, vLLM 0.8.5, one H100"
                    " (mean error 5.2 %)"
                ),
                "prefill: 2 FLOPs per parameter and token at half of the H100's 989.5 TFLOP/s",
                "KV memory: 307,600 tokens; a slot of rank 8, 16, 32 costs 401, 753, 1,451, as those runs report",
                "swap phases: the article, section 03 (best case)",
                "merging: 16.06 GB of weights, touched once, at 3.35 TB/s",
                "adapter: exact, 32 layers, q 4096x4096 and v 4096x1024 at rank 16 in FP16",
            ),
        ),
        Hardware(
            name="h100-llama8b-vllm085",
            step=_FITTED,
            swap=_ACTIVATION,
            prefill_per_token=1.611e-05,
            kv_tokens=307_600,
            kv_slots=0,
            slot_tokens=(51.0, 43.75),
            kv_bytes_per_token=131_072,
            block_size=16,
            weights=_WEIGHTS_8B,
            adapter_size=13_631_488,
            extrapolated=False,
            sources=(
                "decode step: fit of 151 one-hour runs of two 7-8B models, vLLM 0.8.5, one H100 (docs/calibration.md)",
                "prefill: 2 FLOPs per parameter and token at half of the H100's 989.5 TFLOP/s",
                "KV memory: as those runs report; a slot of rank 8, 16, 32 costs 401, 753, 1,451 tokens",
                "swap: 8 ms from host memory, transfer included, as the runs' authors measured; disk: the article's",
                "merging: 16.06 GB of weights, touched once, at 3.35 TB/s",
                "adapter: exact, 32 layers, q 4096x4096 and v 4096x1024 at rank 16 in FP16",
            ),
        ),
        Hardware(
            name="h100-llama70b-int4",
            step=StepCosts(
                a=_WEIGHTS * _PLAIN_8B + _LAYERS * _LORA_8B,
                b=_LAYERS * _CALIBRATED.b,
                c=_LAYERS * _CALIBRATED.c,
                d=_LAYERS * _CALIBRATED.d,
            ),
            swap=_ARTICLE,
            prefill_per_token=2 * 70e9 / (0.5 * 989.5e12),
            kv_tokens=91_552,
            kv_slots=4,
            slot_tokens=(0.0, 79.0),
            kv_bytes_per_token=327_680,
            block_size=16,
            weights=_WEIGHTS_70B_INT4,
            adapter_size=65_536_000,
            extrapolated=True,
            sources=(
                (
                    "decode step: EXTRAPOLATED from the 8B fit: without LoRA 10.54 ms x 35 GB / 16.06 GB of weights,"
                    " LoRA's part x 80 / 32 layers, a request's part x 80 / 32 layers (same KV heads)"
                ),
                "prefill: 2 FLOPs per parameter and token at half of the H100's 989.5 TFLOP/s",
                "KV memory: 30 GB beside 4 slots (the article), 327,680 bytes per token (80 layers, 8 KV heads of 128)",
                "a slot: 25.9 MB per rank, what vLLM reserves for all LoRA-capable modules of this model",
                "swap phases: the article, section 03 (best case)",
                "merging: 35 GB of weights, touched once, at 3.35 TB/s",
                "adapter: exact, q 8192x8192 and v 8192x1024 at rank 16 in FP16",
            ),
        ),
    )
}
"""By name."""
