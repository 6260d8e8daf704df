"""A base model's `config.json`, as dimensions."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.wire import model_config
from lorapick.wire.model_config import LAYOUTS, ModelConfigError, parse_model_config
from lorapick.wire.model_modules import projections

SMALL = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}
EXPERTS = {"num_experts": 4, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 32, "num_local_experts": 4}


def parsed(**changes):
    config = {key: value for key, value in (SMALL | changes).items() if value is not None}
    return parse_model_config(json.dumps(config).encode(), file="c")


def test_dimensions_are_read():
    shape = parsed(architectures=["LlamaForCausalLM"], rope_scaling=None, torch_dtype="bfloat16")
    assert (shape.layers, shape.hidden, shape.heads, shape.kv_heads) == (2, 64, 4, 2)
    assert (shape.head_dim, shape.intermediate, shape.vocabulary) == (16, 128, 100)
    assert (shape.experts, shape.sparse_layers, shape.prefix) == (0, (), "model")


def test_what_a_missing_key_means():
    assert parsed(num_key_value_heads=None).kv_heads == 4
    assert parsed(model_type="gemma").head_dim == 256
    assert parsed(model_type="qwen3").head_dim == 128
    assert parsed(model_type="qwen3", head_dim=32).head_dim == 32
    assert parsed(model_type="phi", intermediate_size=None).intermediate == 256
    assert parsed(num_attention_heads=5, num_key_value_heads=5, head_dim=7).head_dim == 7


def test_the_text_part_of_a_model_that_sees():
    text = {key: SMALL[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers")}
    shape = parse_model_config(json.dumps({"model_type": "gemma3", "text_config": text}).encode(), file="c")
    assert (shape.model_type, shape.hidden, shape.heads, shape.kv_heads) == ("gemma3_text", 64, 8, 4)
    assert (shape.head_dim, shape.vocabulary, shape.prefix) == (256, 262208, "model.language_model")
    named = parse_model_config(json.dumps({"model_type": "mistral3", "text_config": SMALL}).encode(), file="c")
    assert named.model_type == "llama"
    with pytest.raises(ModelConfigError, match="c: no text_config, which a gemma3 has"):
        parse_model_config(b'{"model_type": "gemma3"}', file="c")


def test_which_layers_have_experts():
    assert parsed(model_type="mixtral", num_local_experts=4).sparse_layers == (0, 1)
    many = {"model_type": "qwen2_moe", "num_hidden_layers": 6, **EXPERTS}
    assert parsed(**many).sparse_layers == (0, 1, 2, 3, 4, 5)
    assert parsed(**many, decoder_sparse_step=2).sparse_layers == (1, 3, 5)
    assert parsed(**many, decoder_sparse_step=2, mlp_only_layers=[3]).sparse_layers == (1, 5)
    assert parsed(**many).shared_intermediate == 32
    assert parsed(**(many | {"model_type": "qwen3_moe"})).shared_intermediate == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "lama"}, "c: model_type is 'lama', whose layers are not known here; near: llama"),
        ({"model_type": None}, "c: model_type is None"),
        ({"hidden_size": None}, "c: no hidden_size, which a llama has"),
        ({"hidden_size": 0}, "c: hidden_size is 0; it is from 1 to 1048576"),
        ({"hidden_size": -64}, "c: hidden_size is -64"),
        ({"hidden_size": "64"}, "c: Expected `int"),
        ({"num_hidden_layers": 10**9}, "c: num_hidden_layers is 1000000000; it is from 1 to 1024"),
        ({"num_attention_heads": 3, "num_key_value_heads": 3}, "hidden_size 64 is no multiple of 3 heads"),
        ({"num_key_value_heads": 3}, "4 heads cannot share 3 key-value heads"),
        ({"model_type": "mixtral", "num_local_experts": 5000}, "num_local_experts is 5000; it is from 1 to 1024"),
        ({"model_type": "qwen3_moe"}, "no num_experts, which a qwen3_moe has"),
        (
            {"model_type": "mixtral", "num_local_experts": 1024, "num_hidden_layers": 1000},
            "1000 layers of 1024 experts have more than 400000",
        ),
    ],
)
def test_what_is_wrong_is_named(changes, message):
    with pytest.raises(ModelConfigError, match=message):
        parsed(**changes)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b" " * (model_config.LARGEST_CONFIG + 1)]
)
def test_what_is_no_configuration_at_all(content):
    with pytest.raises(ModelConfigError, match=r"^c: "):
        parse_model_config(content, file="c")


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 9), st.integers(), st.floats(), st.text(max_size=3), st.just([1])
)
KEYS = st.sampled_from([*SMALL, *EXPERTS, "head_dim", "decoder_sparse_step", "mlp_only_layers", "text_config"])


@given(st.sampled_from([*LAYOUTS, "gemma3"]), st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_configuration_is_read_or_refused(model_type, changes):
    config = SMALL | EXPERTS | {"model_type": model_type, "text_config": SMALL} | changes
    with contextlib.suppress(ModelConfigError):
        shape = parse_model_config(json.dumps(config).encode(), file="c")
        assert all(each.inputs > 0 and each.outputs > 0 for each in projections(shape))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content):
    with pytest.raises(ModelConfigError):
        parse_model_config(content, file="c")
