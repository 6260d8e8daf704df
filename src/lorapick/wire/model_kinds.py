"""How each `model_type` names its linear layers, and whether one that is not known may be read by its keys.

In: a configuration's keys and values. Out: a layout, or why there is none. Not here: sizes (see `wire.model_config`),
layers one by one (see `wire.model_modules`).

Names are those of Transformers 4.57's modeling files.
"""

import re
from collections.abc import Iterator, Mapping

GATED = "gated"
GATED_IN_ONE = "gated-in-one"
FUSED = "fused"
PLAIN = "plain"
STARCODER = "starcoder"
ATTENTION_ONLY = "attention-only"
FALCON = "falcon"
NEOX = "neox"
MIXTRAL = "mixtral"
QWEN_MOE = "qwen-moe"
LAYOUTS = {
    "llama": GATED, "mistral": GATED, "qwen2": GATED, "qwen3": GATED,
    "gemma": GATED, "gemma2": GATED, "gemma3_text": GATED,
    "olmo2": GATED, "olmo3": GATED, "granite": GATED, "cohere": GATED, "cohere2": GATED, "stablelm": GATED,
    "smollm3": GATED, "exaone4": GATED, "seed_oss": GATED, "ernie4_5": GATED,
    "glm": GATED_IN_ONE, "glm4": GATED_IN_ONE, "starcoder2": STARCODER, "gpt_oss": ATTENTION_ONLY,
    "falcon": FALCON, "gpt_neox": NEOX,
    "phi": PLAIN, "phi3": FUSED, "phimoe": MIXTRAL,
    "mixtral": MIXTRAL, "qwen2_moe": QWEN_MOE, "qwen3_moe": QWEN_MOE,
}  # fmt: skip
"""By `model_type`. Experts of gpt_oss are no linear layers but tensors, which PEFT reaches by `target_parameters`."""
_NEEDED = (
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size",
    "hidden_act",
)  # fmt: skip
_ELSE = re.compile(r"expert|moe|lora_rank|mamba|ssm|linear_|conv|ffn|recurrent|block_type|cross_att|encoder|^n_layer")
"""In keys that speak of layers other than q, k, v, o and gate, up, down."""
_GATES = ("silu", "swish")
"""Activations that are used with a gate; feed-forward parts with others may have none."""
_ATTENTION = ("full_attention", "sliding_attention", "chunked_attention")


def layout_of(model_type: str) -> str:
    """How its layers are named; one that is not known has been found to be like Llama's (see `doubts_of`)."""
    return LAYOUTS.get(model_type, GATED)


def doubts_of(keys: Mapping[str, object]) -> Iterator[str]:
    """Why a configuration of an unknown type is not read as q, k, v, o and gate, up, down; nothing: it may be."""
    missing = [key for key in _NEEDED if keys.get(key) is None]
    if missing:
        yield f"it lacks {', '.join(missing)}"
    others = [key for key, value in keys.items() if value and key not in _NEEDED and _ELSE.search(key)]
    if others:
        yield f"{', '.join(others[:6])} speak of other layers"
    act = keys.get("hidden_act")
    if act is not None and act not in _GATES:
        yield f"hidden_act is {act!r}, which may have no gate"
    kinds = keys.get("layer_types")
    if isinstance(kinds, list) and (strange := [kind for kind in kinds if kind not in _ATTENTION]):
        yield f"layer_types has {strange[0]!r}"
