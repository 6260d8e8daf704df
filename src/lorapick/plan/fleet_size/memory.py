"""What slots take from the KV memory of a simulated pod.

In: hardware, a model, the highest rank, slots. Out: KV blocks beside them. Not here: how a slot's bytes are reckoned
(see `plan.bill.reserve`), whether that many blocks are enough (the simulator shows it).
"""

from typing import NamedTuple

from lorapick.model.units import Bytes, Tokens
from lorapick.plan.bill.reserve import RANKS, kv_bytes_per_token, reserved
from lorapick.plan.sizes.models import BaseModel, read_model
from lorapick.sim.hardware import PRESETS, Hardware

MODELS = {
    "h100-llama8b": "llama-3.1-8b",
    "h100-llama8b-vllm085": "llama-3.1-8b",
    "h100-llama70b-int4": "llama-3.1-70b",
}
"""Base model of each hardware; a test holds it complete."""


class Memory(NamedTuple):
    """A pod's memory for KV and slots."""

    hardware: Hardware
    model: BaseModel
    rank: int
    slot: Bytes
    """Reserved for each slot; 0: slots take nothing (unified memory)."""
    pool: Bytes
    """KV cache of a pod without slots."""

    def blocks(self, slots: int) -> int:
        """KV blocks beside so many slots; not above 0: they do not fit."""
        return (self.pool - slots * self.slot) // (self.hardware.block_size * self.hardware.kv_bytes_per_token)

    def refusal(self, slots: int, *, longest: Tokens) -> str | None:
        """Why so many slots cannot be; None: they can.

        vLLM does not start when its KV cache cannot hold one request of the greatest length.
        """
        held = self.blocks(slots) * self.hardware.block_size
        if held >= longest:
            return None
        needed = -(-longest // self.hardware.block_size) * self.hardware.block_size
        most = (self.pool - needed * self.hardware.kv_bytes_per_token) // self.slot if self.slot else 0
        return (
            f"{slots} slots × {self.slot:,} B (rank {self.rank}) = {slots * self.slot:,} B leave "
            f"{max(0, held):,} KV tokens of {self.hardware.name}'s {self.pool:,} B, fewer than the longest request of "
            f"{longest:,}; at most {max(0, most)} slots leave enough"
        )


def memory(hardware: str, *, rank: int, model: str | None = None, unified: bool = False) -> Memory:
    """Of a pod with this hardware.

    Args:
        hardware: name of a preset.
        rank: highest that the engine takes, for which each slot is made.
        model: base, whose linear layers a slot has matrices for; None: the hardware's.
        unified: adapters and KV share pages, and slots reserve nothing.

    Raises:
        ValueError: vLLM does not take the rank, or nobody knows the model.
    """
    if rank not in RANKS:
        near = next((each for each in RANKS if each >= rank), RANKS[-1])
        raise ValueError(f"--rank {rank}: vLLM takes {', '.join(map(str, RANKS))}; take {near}")
    found = PRESETS[hardware]
    base = read_model(model or MODELS[hardware])
    pool = int((found.kv_tokens + found.kv_slots * found.tokens_of_slot(16)) * found.kv_bytes_per_token)
    return Memory(found, base, rank, 0 if unified else reserved(base, rank).total, pool)


def other_kv(found: Memory) -> str | None:
    """A note when the model's KV is not the hardware's; None: it is."""
    own, there = kv_bytes_per_token(found.model), found.hardware.kv_bytes_per_token
    if own == there:
        return None
    return (
        f"Only a slot's bytes are {found.model.name}'s. Times and KV tokens ({there:,} B each, {found.model.name} has "
        f"{own:,} B) are {found.hardware.name}'s."
    )
