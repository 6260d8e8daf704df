"""The linear layers of a base model, one by one, under the names that PEFT finds them by.

In: a `ModelShape`. Out: `Projection`s in the model's order. Not here: which of them an adapter is attached to (see
`wire.peft_targets`).

Experts are named as in Transformers 4, each with linear layers of its own; Transformers 5 keeps all experts of a layer
in one tensor, which PEFT reaches by `target_parameters` instead.
"""

from collections.abc import Iterator

import msgspec

from lorapick.wire.model_config import FUSED, LAYOUTS, MIXTRAL, PLAIN, ModelShape


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
        place = f"{shape.prefix}.layers.{layer}"
        yield from _attention(shape, f"{place}.self_attn")
        yield from _experts(shape, place) if layer in sparse else _feed_forward(shape, f"{place}.mlp")


def outer_modules(shape: ModelShape) -> tuple[Projection, Projection]:
    """Embeddings and head: adapters may name them, `all-linear` does not."""
    return (
        Projection(f"{shape.prefix}.embed_tokens", shape.vocabulary, shape.hidden),
        Projection("lm_head", shape.hidden, shape.vocabulary, bias=shape.head_bias),
    )


def parameters_per_rank(shape: ModelShape) -> int:
    """Parameters of an adapter of rank 1 on every linear layer of `projections`.

    What an engine reserves for each slot is this times its `max_lora_rank`, whatever adapters really target.
    """
    return sum(each.parameters_per_rank for each in projections(shape) if not each.router)


def _attention(shape: ModelShape, place: str) -> Iterator[Projection]:
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    layout = LAYOUTS[shape.model_type]
    if layout == FUSED:
        yield Projection(f"{place}.qkv_proj", shape.hidden, queries + 2 * keys)
    else:
        yield Projection(f"{place}.q_proj", shape.hidden, queries)
        yield Projection(f"{place}.k_proj", shape.hidden, keys)
        yield Projection(f"{place}.v_proj", shape.hidden, keys)
    yield Projection(f"{place}.dense" if layout == PLAIN else f"{place}.o_proj", queries, shape.hidden)


def _feed_forward(shape: ModelShape, place: str) -> Iterator[Projection]:
    layout = LAYOUTS[shape.model_type]
    if layout == PLAIN:
        yield Projection(f"{place}.fc1", shape.hidden, shape.intermediate)
        yield Projection(f"{place}.fc2", shape.intermediate, shape.hidden)
    elif layout == FUSED:
        yield Projection(f"{place}.gate_up_proj", shape.hidden, 2 * shape.intermediate)
        yield Projection(f"{place}.down_proj", shape.intermediate, shape.hidden)
    else:
        yield from _gated(shape, place, width=shape.intermediate)


def _gated(shape: ModelShape, place: str, *, width: int) -> Iterator[Projection]:
    yield Projection(f"{place}.gate_proj", shape.hidden, width)
    yield Projection(f"{place}.up_proj", shape.hidden, width)
    yield Projection(f"{place}.down_proj", width, shape.hidden)


def _experts(shape: ModelShape, layer: str) -> Iterator[Projection]:
    mixtral = LAYOUTS[shape.model_type] == MIXTRAL
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
