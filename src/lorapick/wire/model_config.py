"""A base model's `config.json` (Hugging Face) as its dimensions.

In: bytes. Out: `ModelShape`, or `ModelConfigError`. Not here: reading files, the model's linear layers one by one (see
`wire.model_modules`), weights. Of models that also see or hear, only the part for text: adapters served by engines
are attached there.

Key names and what a missing key means are those of Transformers 4.57's configuration classes.
"""

import difflib

import msgspec

from lorapick.model.units import Bytes
from lorapick.wire.model_kinds import FALCON, LAYOUTS, MIXTRAL, NEOX, QWEN_MOE, doubts_of, layout_of

CONFIG_FILE = "config.json"
LARGEST_CONFIG: Bytes = 1024 * 1024
"""Bytes of a `config.json` that is still believed."""
MOST_LAYERS = 1024
MOST_EXPERTS = 1024
MOST_MODULES = 400_000
"""Linear layers of one model; 94 layers of 128 experts have 36,472."""
WIDEST = 2**20
"""Of a layer's sides; vocabularies too."""

_WITH_PARTS = ("gemma3", "mistral3", "llava", "llava_next")
"""Models whose text part has a configuration of its own, `text_config`."""
_ABSENT: dict[str, dict[str, int]] = {
    "gemma": {"head_dim": 256},
    "gemma2": {"head_dim": 256},
    "gemma3_text": {
        "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208,
    },
    "qwen3": {"head_dim": 128},
    "glm": {"head_dim": 128}, "glm4": {"head_dim": 128}, "seed_oss": {"head_dim": 128}, "ernie4_5": {"head_dim": 128},
    "gpt_oss": {"head_dim": 64},
    "mistral": {"num_key_value_heads": 8},
    "mixtral": {"num_key_value_heads": 8},
}  # fmt: skip
"""What Transformers takes for a key that is not there. Gemma 3's text part is saved without what is usual."""


class ModelConfigError(ValueError):
    """A file does not describe a model that can be read; the message names file, key and value."""


class ModelShape(msgspec.Struct, frozen=True, kw_only=True):
    """Dimensions of a transformer, of its text part."""

    model_type: str
    """One of `LAYOUTS`; another one where `guessed`."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    """Heads of keys and values; fewer than `heads` under grouped-query attention."""
    head_dim: int
    intermediate: int
    """Width of a dense layer's feed-forward part; of each expert for Mixtral."""
    vocabulary: int
    experts: int = 0
    """Routed experts of each sparse layer; 0: there are none."""
    expert_intermediate: int = 0
    """Width of each routed expert."""
    shared_intermediate: int = 0
    """Width of the expert that every token passes through; 0: there is none."""
    sparse_layers: tuple[int, ...] = ()
    """Numbers of the layers with experts."""
    prefix: str = "model"
    """What module names begin with."""
    guessed: bool = False
    """Whether the type is not known here, and its layers are taken to be named like Llama's since its keys are."""
    head_bias: bool = False
    """Whether the head has a bias; it counts where the head is saved as a whole."""


class _Config(msgspec.Struct, frozen=True):
    """The keys that matter; every one may be absent."""

    model_type: str | None = None
    text_config: msgspec.Raw = msgspec.Raw()
    hidden_size: int | None = None
    intermediate_size: int | None = None
    num_hidden_layers: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    vocab_size: int | None = None
    num_local_experts: int | None = None
    num_experts: int | None = None
    moe_intermediate_size: int | None = None
    shared_expert_intermediate_size: int | None = None
    decoder_sparse_step: int | None = None
    mlp_only_layers: list[int] | None = None
    lm_head_bias: bool | None = None
    num_kv_heads: int | None = None
    new_decoder_architecture: bool | None = None
    multi_query: bool | None = None
    ffn_hidden_size: int | None = None


def parse_model_config(content: bytes, *, file: str) -> ModelShape:
    """Read a `config.json`.

    Raises:
        ModelConfigError: it is none, its `model_type` is not known here, or a dimension cannot be.
    """
    if len(content) > LARGEST_CONFIG:
        raise ModelConfigError(f"{file}: larger than {LARGEST_CONFIG} bytes, so not a model's {CONFIG_FILE}")
    config = _decode(content, file)
    if config.model_type in _WITH_PARTS:
        if not bytes(config.text_config):
            raise ModelConfigError(f"{file}: no text_config, which a {config.model_type} has")
        part = _decode(bytes(config.text_config), f"{file}: text_config")
        named = part.model_type or {"gemma3": "gemma3_text", "mistral3": "mistral"}.get(config.model_type, "llama")
        return _shape(msgspec.structs.replace(part, model_type=named), file=file, prefix="model.language_model")
    guessed = config.model_type not in LAYOUTS and config.model_type is not None
    if guessed:
        _require_plain(config, content, file=file)
    prefix = {FALCON: "transformer", NEOX: "gpt_neox"}.get(layout_of(config.model_type or ""), "model")
    return _shape(config, file=file, prefix=prefix, guessed=guessed)


def _require_plain(config: _Config, content: bytes, *, file: str) -> None:
    """Refuse an unknown type unless its keys are those of q, k, v, o and gate, up, down."""
    doubts = list(doubts_of(msgspec.json.decode(content, type=dict[str, object])))
    if doubts:
        raise ModelConfigError(
            f"{_unknown(config.model_type, file)}. By its keys it cannot be read: {'; '.join(doubts)}"
        )


def _unknown(model_type: str | None, file: str) -> str:
    near = difflib.get_close_matches(model_type or "", LAYOUTS, n=2)
    hint = f"; near: {', '.join(near)}" if near else ""
    return (
        f"{file}: model_type is {model_type!r}, whose layers are not known here{hint}; "
        f"there are {', '.join([*LAYOUTS, *_WITH_PARTS])}"
    )


def _decode(content: bytes, file: str) -> _Config:
    try:
        return msgspec.json.decode(content, type=_Config)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelConfigError(
            f"{file}: {error}; give the {CONFIG_FILE} that lies beside the model's weights"
        ) from None


def _shape(config: _Config, *, file: str, prefix: str, guessed: bool = False) -> ModelShape:
    model_type = config.model_type
    if model_type is None or not (guessed or model_type in LAYOUTS):
        raise ModelConfigError(_unknown(model_type, file))
    read = _Reader(config, model_type, file=file)
    heads = read.size("num_attention_heads")
    hidden = read.size("hidden_size")
    shape = ModelShape(
        model_type=model_type,
        layers=read.size("num_hidden_layers", most=MOST_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=read.kv_heads(heads),
        head_dim=read.head_dim(hidden, heads),
        intermediate=read.width(hidden),
        vocabulary=read.size("vocab_size"),
        prefix=prefix,
        head_bias=model_type == "phi" or bool(config.lm_head_bias),
        guessed=guessed,
    )
    if shape.heads % shape.kv_heads:
        raise ModelConfigError(f"{file}: {heads} heads cannot share {shape.kv_heads} key-value heads evenly")
    return _with_experts(shape, read)


class _Reader:
    """Takes sizes out of a configuration, and says what is wrong with them."""

    def __init__(self, config: _Config, model_type: str, *, file: str) -> None:
        self.config = config
        self.model_type = model_type
        self.file = file

    def size(self, key: str, *, absent: int | None = None, least: int = 1, most: int = WIDEST) -> int:
        """A number of this key; `absent` when the file has none and Transformers knows no better."""
        value: int | None = getattr(self.config, key)
        if value is None:
            value = _ABSENT.get(self.model_type, {}).get(key, absent)
        if value is None:
            raise ModelConfigError(f"{self.file}: no {key}, which a {self.model_type} has")
        if not least <= value <= most:
            raise ModelConfigError(f"{self.file}: {key} is {value}; it is from {least} to {most}")
        return value

    def kv_heads(self, heads: int) -> int:
        """Heads of keys and values."""
        layout = layout_of(self.model_type)
        if layout == NEOX:
            return heads
        if layout != FALCON:
            return self.size("num_key_value_heads", absent=heads)
        if self.config.new_decoder_architecture:
            return self.size("num_kv_heads", absent=heads)
        return heads if self.config.multi_query is False else 1

    def width(self, hidden: int) -> int:
        """Of the feed-forward part."""
        if layout_of(self.model_type) == FALCON:
            return self.size("ffn_hidden_size", absent=4 * hidden)
        return self.size("intermediate_size", absent=4 * hidden if self.model_type == "phi" else None)

    def head_dim(self, hidden: int, heads: int) -> int:
        """Width of a head; as long as the file names none, all heads side by side are as wide as the model."""
        if self.config.head_dim is None and "head_dim" not in _ABSENT.get(self.model_type, {}) and hidden % heads:
            raise ModelConfigError(
                f"{self.file}: hidden_size {hidden} is no multiple of {heads} heads, and no head_dim"
            )
        return self.size("head_dim", absent=hidden // heads)


def _with_experts(shape: ModelShape, read: _Reader) -> ModelShape:
    layout = layout_of(shape.model_type)
    if layout == MIXTRAL:
        experts = read.size("num_local_experts", absent=8 if shape.model_type == "mixtral" else 16, most=MOST_EXPERTS)
        found = msgspec.structs.replace(
            shape, experts=experts, expert_intermediate=shape.intermediate, sparse_layers=tuple(range(shape.layers))
        )
    elif layout == QWEN_MOE:
        found = _qwen_experts(shape, read)
    else:
        return shape
    if len(found.sparse_layers) * (3 * found.experts + 4) > MOST_MODULES:
        raise ModelConfigError(
            f"{read.file}: {len(found.sparse_layers)} layers of {found.experts} experts have more than "
            f"{MOST_MODULES} linear layers"
        )
    return found


def _qwen_experts(shape: ModelShape, read: _Reader) -> ModelShape:
    shared = shape.model_type == "qwen2_moe"
    step = read.size("decoder_sparse_step", absent=1, most=MOST_LAYERS)
    dense = frozenset(read.config.mlp_only_layers or ())
    return msgspec.structs.replace(
        shape,
        experts=read.size("num_experts", most=MOST_EXPERTS),
        expert_intermediate=read.size("moe_intermediate_size"),
        shared_intermediate=read.size("shared_expert_intermediate_size") if shared else 0,
        sparse_layers=tuple(n for n in range(shape.layers) if n not in dense and (n + 1) % step == 0),
    )
