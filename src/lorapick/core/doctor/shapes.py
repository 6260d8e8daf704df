"""Shapes of well-known base models, as their public `config.json` gives them, and what follows for memory.

In: a model's name. Out: bytes of a LoRA slot per unit of rank, bytes of KV per token; None for models not listed here.
vLLM reserves each slot for `max_lora_rank` on every linear layer of the decoder, in two bytes a number, whatever the
adapters need; its measured cost on an H100 (Llama-3.1-8B, 401, 753, 1,451 tokens of KV for ranks 8, 16, 32) is 15 to
20 % above this formula at rank 16.
"""

from typing import NamedTuple

from lorapick.model.units import Bytes

NUMBER: Bytes = 2
"""Bytes of one number in FP16 or BF16; KV in FP8 takes half."""


class Shape(NamedTuple):
    """A decoder of equal layers."""

    layers: int
    hidden: int
    kv_width: int
    """KV heads x their width."""
    inner: int
    """Width of the MLP."""

    @property
    def slot_bytes_per_rank(self) -> Bytes:
        """A and B of q, k, v, o, gate, up and down of every layer, for one unit of rank."""
        attention = 2 * (self.hidden + self.hidden) + 2 * (self.hidden + self.kv_width)
        return self.layers * (attention + 3 * (self.hidden + self.inner)) * NUMBER

    @property
    def kv_bytes_per_token(self) -> Bytes:
        """K and V of every layer."""
        return self.layers * 2 * self.kv_width * NUMBER


SHAPES: dict[str, Shape] = {
    "llama-2-7b": Shape(32, 4096, 4096, 11008),
    "llama-2-13b": Shape(40, 5120, 5120, 13824),
    "llama-2-70b": Shape(80, 8192, 1024, 28672),
    "llama-3-8b": Shape(32, 4096, 1024, 14336),
    "llama-3.1-8b": Shape(32, 4096, 1024, 14336),
    "llama-3-70b": Shape(80, 8192, 1024, 28672),
    "llama-3.1-70b": Shape(80, 8192, 1024, 28672),
    "llama-3.3-70b": Shape(80, 8192, 1024, 28672),
    "llama-3.2-1b": Shape(16, 2048, 512, 8192),
    "llama-3.2-3b": Shape(28, 3072, 1024, 8192),
    "mistral-7b": Shape(32, 4096, 1024, 14336),
    "qwen2.5-0.5b": Shape(24, 896, 128, 4864),
    "qwen2.5-7b": Shape(28, 3584, 512, 18944),
    "qwen2.5-14b": Shape(48, 5120, 1024, 13824),
    "qwen2.5-32b": Shape(64, 5120, 1024, 27648),
    "qwen2.5-72b": Shape(80, 8192, 1024, 29568),
}
"""By the family's name and size, without organisation, version of the weights, or training."""


def shape_of(model: str | None) -> Shape | None:
    """The shape of `org/Name-8B-Instruct` and its like; None: not listed."""
    if not model:
        return None
    name = model.rpartition("/")[2].lower().removeprefix("meta-")
    fitting = [known for known in SHAPES if name == known or name.startswith(f"{known}-")]
    return SHAPES[max(fitting, key=len)] if fitting else None
