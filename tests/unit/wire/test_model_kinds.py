"""Layers by model type, as Transformers names them, and types that are not known."""

import json

import pytest

from lorapick.wire.model_config import ModelConfigError, parse_model_config
from lorapick.wire.model_kinds import GATED, doubts_of, layout_of
from lorapick.wire.model_modules import outer_modules, projections

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 128}  # fmt: skip
PLAIN = {"hidden_act": "silu", **SIZES}
ATTENTION = {"q_proj": (64, 64), "k_proj": (32, 64), "v_proj": (32, 64), "o_proj": (64, 64)}
WIDE = {"q_proj": (512, 64), "k_proj": (256, 64), "v_proj": (256, 64), "o_proj": (64, 512)}
GATES = {"gate_proj": (96, 64), "up_proj": (96, 64), "down_proj": (64, 96)}
IN_ONE = {"gate_up_proj": (192, 64), "down_proj": (64, 96)}
FALCON = {"dense": (64, 64), "dense_h_to_4h": (256, 64), "dense_4h_to_h": (64, 256)}


def shape_of(model_type, **more):
    return parse_model_config(json.dumps({"model_type": model_type, **SIZES, **more}).encode(), file="c")


@pytest.mark.parametrize(
    ("model_type", "more", "layer"),
    [
        *((each, {}, ATTENTION | GATES) for each in ("olmo2", "olmo3", "granite", "cohere2", "stablelm", "exaone4")),
        *((each, {}, WIDE | GATES) for each in ("seed_oss", "ernie4_5")),
        *((each, {}, WIDE | IN_ONE) for each in ("glm", "glm4")),
        ("starcoder2", {}, ATTENTION | {"c_fc": (96, 64), "c_proj": (64, 96)}),
        ("gpt_oss", {"head_dim": 16, "num_local_experts": 4}, ATTENTION),
        ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}, {"query_key_value": (128, 64)} | FALCON),
        ("falcon", {}, {"query_key_value": (96, 64)} | FALCON),
        ("falcon", {"multi_query": False}, {"query_key_value": (192, 64)} | FALCON),
        ("gpt_neox", {}, {"query_key_value": (192, 64), "dense": (64, 64), "dense_h_to_4h": (96, 64),
                          "dense_4h_to_h": (64, 96)}),
    ],
)  # fmt: skip
def test_layers_are_those_that_transformers_makes_of_the_same_configuration(model_type, more, layer):
    assert {each.name: (each.outputs, each.inputs) for each in projections(shape_of(model_type, **more))} == layer


def test_whole_names_of_those_that_are_named_otherwise():
    falcon, neox = shape_of("falcon"), shape_of("gpt_neox")
    assert [each.module for each in (*projections(falcon), *outer_modules(falcon))] == [
        "transformer.h.0.self_attention.query_key_value", "transformer.h.0.self_attention.dense",
        "transformer.h.0.mlp.dense_h_to_4h", "transformer.h.0.mlp.dense_4h_to_h",
        "transformer.word_embeddings", "lm_head",
    ]  # fmt: skip
    assert next(projections(neox)).module == "gpt_neox.layers.0.attention.query_key_value"
    assert [each.module for each in outer_modules(neox)] == ["gpt_neox.embed_in", "embed_out"]


def test_an_unknown_type_with_plain_keys_is_read_and_marked():
    shape = shape_of("llama9", hidden_act="silu", layer_types=["sliding_attention"], rope_scaling=None)
    assert (shape.guessed, shape.model_type, layout_of("llama9")) == (True, "llama9", GATED)
    assert {each.name for each in projections(shape)} == {*ATTENTION, *GATES}
    assert not shape_of("olmo2").guessed


@pytest.mark.parametrize(
    ("model_type", "changes", "why"),
    [
        ("deepseek_v3", {"q_lora_rank": 24, "kv_lora_rank": 16}, "q_lora_rank, kv_lora_rank speak of other layers"),
        ("qwen3_next", {"linear_num_value_heads": 4, "num_experts": 2}, "linear_num_value_heads, num_experts speak"),
        ("strange", {"num_key_value_heads": None}, "it lacks num_key_value_heads"),
        ("strange", {"hidden_act": "relu2"}, "hidden_act is 'relu2', which may have no gate"),
        ("strange", {"layer_types": ["linear_attention"]}, "layer_types has 'linear_attention'"),
    ],
)
def test_what_keeps_an_unknown_type_from_being_read_is_said(model_type, changes, why):
    with pytest.raises(ModelConfigError, match=f"c: model_type is '{model_type}', whose layers .*{why}"):
        shape_of(model_type, **(PLAIN | changes))
    assert list(doubts_of(PLAIN | changes)) and not list(doubts_of(PLAIN))
