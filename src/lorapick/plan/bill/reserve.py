"""What an engine sets aside for each adapter slot, whatever adapter comes into it, and what a token of KV takes.

In: a model's dimensions, the highest rank that the engine allows. Out: bytes. Not here: budgets (see `slots`),
measurements (see `slot_check`).

vLLM makes, at start, one A and one B of the highest rank for every linear layer that could be adapted, for every slot
(`create_lora_weights` of `vllm/lora/layers`). Of Llama and its kin it does so for embeddings and output head too. Until
2025 each slot also had room for extra tokens: in the adapted embeddings, in the adapted head, and in the base's own
embeddings, whose table grew with the slots.
"""

import math
from typing import NamedTuple

from lorapick.model.units import Bytes, Tokens
from lorapick.plan.sizes.models import BaseModel
from lorapick.wire.model_modules import parameters_per_rank

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM 0.32 takes for `max_lora_rank`."""
_WITH_EMBEDDINGS = ("llama", "mistral", "mixtral", "phi3")
"""Model types whose embeddings and head vLLM can adapt. Qwen's and Gemma's it cannot."""
_VOCABULARY_STEP: Tokens = 256
"""vLLM rounds the adapted head's vocabulary up to this."""


class Reservation(NamedTuple):
    """Bytes of one slot."""

    layers: Bytes
    """Linear layers of attention and feed-forward parts."""
    embeddings: Bytes
    """Embeddings and head; 0: they cannot be adapted."""
    extra_tokens: Bytes
    """Room for tokens that adapters add; 0 in newer engines."""

    @property
    def total(self) -> Bytes:
        """All of it."""
        return sum(self)


def reserved(model: BaseModel, max_rank: int, *, extra_tokens: Tokens = 0, width: Bytes = 2) -> Reservation:
    """Bytes that one slot takes.

    Args:
        model: the base.
        max_rank: the engine's `max_lora_rank`.
        extra_tokens: the engine's `lora_extra_vocab_size`: 256 in vLLM 0.8.5, none in 0.32.
        width: bytes of a number; 2 for FP16 and BF16.
    """
    shape = model.shape
    layers = parameters_per_rank(shape) * max_rank * width
    if shape.model_type not in _WITH_EMBEDDINGS:
        return Reservation(layers, 0, 0)
    tokens = shape.vocabulary + extra_tokens
    padded = math.ceil(tokens / _VOCABULARY_STEP) * _VOCABULARY_STEP
    embeddings = (tokens + padded + 2 * shape.hidden) * max_rank * width
    return Reservation(layers, embeddings, 3 * extra_tokens * shape.hidden * width)


def kv_bytes_per_token(model: BaseModel, *, width: Bytes = 2) -> Bytes:
    """Bytes of one token's keys and values, all layers."""
    shape = model.shape
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * width
