"""A model's linear layers, under the names that PEFT finds them by."""

import json

from lorapick.wire.model_config import parse_model_config
from lorapick.wire.model_modules import outer_modules, parameters_per_rank, projections

SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 9}


def shape_of(model_type, **more):
    return parse_model_config(
        json.dumps({"model_type": model_type, "num_key_value_heads": 2, **SIZES, **more}).encode(), file="c"
    )


def modules(model_type, **more):
    """Names below the layer, with d × k."""
    return {
        each.module.removeprefix("model.layers.0."): (each.outputs, each.inputs)
        for each in projections(shape_of(model_type, **more))
    }


ATTENTION = {
    "self_attn.q_proj": (64, 64),
    "self_attn.k_proj": (32, 64),
    "self_attn.v_proj": (32, 64),
    "self_attn.o_proj": (64, 64),
}


def test_a_gated_layer():
    gated = {"mlp.gate_proj": (128, 64), "mlp.up_proj": (128, 64), "mlp.down_proj": (64, 128)}
    assert modules("llama") == ATTENTION | gated
    assert modules("gemma2", head_dim=16) == ATTENTION | gated


def test_heads_may_be_wider_than_the_model():
    found = modules("qwen3", head_dim=128)
    assert found["self_attn.q_proj"] == (512, 64)
    assert found["self_attn.k_proj"] == (256, 64)
    assert found["self_attn.o_proj"] == (64, 512)


def test_layers_of_phi():
    assert modules("phi3") == {
        "self_attn.qkv_proj": (128, 64),
        "self_attn.o_proj": (64, 64),
        "mlp.gate_up_proj": (256, 64),
        "mlp.down_proj": (64, 128),
    }
    assert [*modules("phi")][3:] == ["self_attn.dense", "mlp.fc1", "mlp.fc2"]


def test_experts_of_mixtral():
    found = modules("mixtral", num_local_experts=2)
    assert {name: sides for name, sides in found.items() if "self_attn" not in name} == {
        "block_sparse_moe.gate": (2, 64),
        **{
            f"block_sparse_moe.experts.{n}.{w}": sides
            for n in range(2)
            for w, sides in (("w1", (128, 64)), ("w2", (64, 128)), ("w3", (128, 64)))
        },
    }


def test_experts_of_qwen():
    sizes = {"num_experts": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 32}
    found = modules("qwen2_moe", **sizes)
    assert found["mlp.gate"] == (2, 64)
    assert found["mlp.experts.1.down_proj"] == (64, 16)
    assert found["mlp.shared_expert.up_proj"] == (32, 64)
    assert found["mlp.shared_expert_gate"] == (1, 64)
    dense = modules("qwen2_moe", **sizes, mlp_only_layers=[0])
    assert "mlp.gate" not in dense and dense["mlp.gate_proj"] == (128, 64)


def test_embeddings_and_head_lie_outside():
    embeddings, head = outer_modules(shape_of("llama"))
    assert (embeddings.module, embeddings.inputs, embeddings.outputs) == ("model.embed_tokens", 9, 64)
    assert (head.name, head.inputs, head.outputs) == ("lm_head", 64, 9)


def test_what_rank_one_takes_everywhere():
    shape = shape_of("llama")
    assert parameters_per_rank(shape) == sum(d + k for d, k in modules("llama").values())
    sparse = shape_of("mixtral", num_local_experts=2)
    routed = sum(d + k for name, (d, k) in modules("mixtral", num_local_experts=2).items() if not name.endswith("gate"))
    assert parameters_per_rank(sparse) == routed
