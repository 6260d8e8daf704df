"""The linear layers of a base model, one by one, under the names that PEFT finds them by.

In: a `ModelShape`. Out: `Projection`s in the model's order. Not here: which of them an adapter is attached to (see
`wire.peft_targets`).

Experts are named as in Transformers 4, each with linear layers of its own; Transformers 5 keeps all experts of a layer
in one tensor, which PEFT reaches by `target_parameters` instead.
"""

from collections.abc import Iterator

import msgspec

from lorapick.wire.model_config import ModelShape
from lorapick.wire.model_kinds import (
    ATTENTION_ONLY,
    FALCON,
    FUSED,
    GATED_IN_ONE,
    MIXTRAL,
    NEOX,
    PLAIN,
    STARCODER,
    layout_of,
)

_IN_ONE = {FALCON: ("h", "self_attention"), NEOX: ("layers", "attention")}
"""Names of layers and of their attention, where queries, keys and values are one `query_key_value`."""
_UP_AND_DOWN = {
    PLAIN: ("fc1", "fc2"),
    STARCODER: ("c_fc", "c_proj"),
    FALCON: ("dense_h_to_4h", "dense_4h_to_h"),
    NEOX: ("dense_h_to_4h", "dense_4h_to_h"),
}
"""Feed-forward parts without a gate."""
_ENDS = {FALCON: ("word_embeddings", "lm_head"), NEOX: ("embed_in", "embed_out")}
"""Embeddings and head, where they are not named as in Llama."""


class Projection(msgspec.Struct, frozen=True):
    """A matrix W of `outputs` × `inputs` (d × k)."""

    module: str
    """Its whole name, as `model.layers.0.self_attn.q_proj`."""
    inputs: int
    """k: columns of the adapter's A (r × k)."""
    outputs: int
    """d: rows of the adapter's B (d × r)."""
    bias: bool = False
    """Whether the base model adds a vector to its outputs; known of the head only."""
    router: bool = False
    """Whether it chooses experts: its outputs are few, so a rank above them is usual and useless."""

    @property
    def name(self) -> str:
        """Its last part, as `q_proj`."""
        return self.module.rpartition(".")[2]

    @property
    def weights(self) -> int:
        """Parameters of the base model's own."""
        return self.inputs * self.outputs + self.bias * self.outputs

    @property
    def parameters_per_rank(self) -> int:
        """Of both matrices: r·(k + d) parameters for rank r."""
        return self.inputs + self.outputs


def projections(shape: ModelShape) -> Iterator[Projection]:
    """Every linear layer between embeddings and head: those that `all-linear` means."""
    sparse = frozenset(shape.sparse_layers)
    for layer in range(shape.layers):
        layers, attention = _IN_ONE.get(layout_of(shape.model_type), ("layers", "self_attn"))
        place = f"{shape.prefix}.{layers}.{layer}"
        yield from _attention(shape, f"{place}.{attention}")
        yield from _experts(shape, place) if layer in sparse else _feed_forward(shape, f"{place}.mlp")


def outer_modules(shape: ModelShape) -> tuple[Projection, Projection]:
    """Embeddings and head: adapters may name them, `all-linear` does not."""
    embeddings, head = _ENDS.get(layout_of(shape.model_type), ("embed_tokens", "lm_head"))
    return (
        Projection(f"{shape.prefix}.{embeddings}", shape.vocabulary, shape.hidden),
        Projection(head, shape.hidden, shape.vocabulary, bias=shape.head_bias),
    )


def parameters_per_rank(shape: ModelShape) -> int:
    """Parameters of an adapter of rank 1 on every linear layer of `projections`.

    What an engine reserves for each slot is this times its `max_lora_rank`, whatever adapters really target.
    """
    return sum(each.parameters_per_rank for each in projections(shape) if not each.router)


def _attention(shape: ModelShape, place: str) -> Iterator[Projection]:
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    layout = layout_of(shape.model_type)
    if layout in (FUSED, *_IN_ONE):
        name = "qkv_proj" if layout == FUSED else "query_key_value"
        yield Projection(f"{place}.{name}", shape.hidden, queries + 2 * keys)
    else:
        yield Projection(f"{place}.q_proj", shape.hidden, queries)
        yield Projection(f"{place}.k_proj", shape.hidden, keys)
        yield Projection(f"{place}.v_proj", shape.hidden, keys)
    yield Projection(f"{place}.dense" if layout in (PLAIN, *_IN_ONE) else f"{place}.o_proj", queries, shape.hidden)


def _feed_forward(shape: ModelShape, place: str) -> Iterator[Projection]:
    layout = layout_of(shape.model_type)
    if layout == ATTENTION_ONLY:
        return
    if layout in _UP_AND_DOWN:
        up, down = _UP_AND_DOWN[layout]
        yield Projection(f"{place}.{up}", shape.hidden, shape.intermediate)
        yield Projection(f"{place}.{down}", shape.intermediate, shape.hidden)
    elif layout in (FUSED, GATED_IN_ONE):
        yield Projection(f"{place}.gate_up_proj", shape.hidden, 2 * shape.intermediate)
        yield Projection(f"{place}.down_proj", shape.intermediate, shape.hidden)
    else:
        yield from _gated(shape, place, width=shape.intermediate)


def _gated(shape: ModelShape, place: str, *, width: int) -> Iterator[Projection]:
    yield Projection(f"{place}.gate_proj", shape.hidden, width)
    yield Projection(f"{place}.up_proj", shape.hidden, width)
    yield Projection(f"{place}.down_proj", width, shape.hidden)


def _experts(shape: ModelShape, layer: str) -> Iterator[Projection]:
    mixtral = layout_of(shape.model_type) == MIXTRAL
    place = f"{layer}.block_sparse_moe" if mixtral else f"{layer}.mlp"
    width = shape.expert_intermediate
    yield Projection(f"{place}.gate", shape.hidden, shape.experts, router=True)
    for number in range(shape.experts):
        expert = f"{place}.experts.{number}"
        if mixtral:
            yield Projection(f"{expert}.w1", shape.hidden, width)
            yield Projection(f"{expert}.w2", width, shape.hidden)
            yield Projection(f"{expert}.w3", shape.hidden, width)
        else:
            yield from _gated(shape, expert, width=width)
    if shape.shared_intermediate:
        yield from _gated(shape, f"{place}.shared_expert", width=shape.shared_intermediate)
        yield Projection(f"{place}.shared_expert_gate", shape.hidden, 1, router=True)
