"""An adapter's parameters and bytes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.plan.sizes.adapters import DTYPES, measured, queries_only, reckoned, width_of
from lorapick.plan.sizes.asked import asked
from lorapick.plan.sizes.models import read_model
from lorapick.testing.peft_files import safetensors_bytes
from lorapick.wire.model_config import parse_model_config
from lorapick.wire.model_modules import outer_modules, projections
from lorapick.wire.peft import PeftConfig, PeftError, header_length, parse_tensors
from lorapick.wire.peft_targets import Targets

SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 80, "num_local_experts": 4, "num_experts": 4,
         "moe_intermediate_size": 32, "shared_expert_intermediate_size": 48}  # fmt: skip


def small(model_type="llama"):
    return parse_model_config(json.dumps({"model_type": model_type, **SMALL}).encode(), file="c")


def size_of(model, *, r, targets, dtype="float16", **more):
    shape = read_model(model).shape if isinstance(model, str) else model
    return reckoned(PeftConfig(r=r, target_modules=targets, **more), shape, dtype=dtype, file="c")


def test_the_articles_adapters_exactly():
    legal = size_of("llama-3.1-70b", r=16, targets=["q_proj", "v_proj"])
    assert (legal.parameters, legal.size) == (32_768_000, 65_536_000)
    code = size_of("llama-3.1-70b", r=64, targets=["q_proj", "k_proj", "v_proj"])
    assert (code.parameters, code.size) == (178_257_920, 356_515_840)


def test_the_article_rounds_each_step():
    queries, values = 0.26, 0.15
    assert round((queries + values) * 80, 1) == 32.8
    assert round(32.8 * 2, 1) == 65.6
    assert round(2.23 * 80, 1) == 178.4
    assert round(178.4 * 2, 1) == 356.8


@pytest.mark.parametrize(
    ("targets", "times"),
    [
        (["q_proj"], 1.0),
        (["q_proj", "v_proj"], 1.5625),
        (["q_proj", "k_proj", "v_proj"], 2.125),
        (["q_proj", "k_proj", "v_proj", "o_proj"], 3.125),
        ("all-linear", 9.875),
    ],
)
def test_grouped_queries_make_the_rule_of_thumb_wrong(targets, times):
    found = size_of("llama-3.1-70b", r=16, targets=targets)
    assert found.parameters / queries_only(read_model("llama-3.1-70b").shape, 16) == times


@pytest.mark.parametrize(
    ("model", "rank", "parameters"),
    [
        ("llama-2-7b", 16, 39_976_960),
        ("llama-2-7b", 64, 159_907_840),
        ("llama-3.1-8b", 16, 41_943_040),
        ("mistral-7b", 16, 41_943_040),
        ("llama-3.2-1b", 16, 11_272_192),
        ("llama-3.2-3b", 16, 24_313_856),
        ("qwen2.5-7b", 16, 40_370_176),
        ("gemma-7b", 16, 50_003_968),
        ("gemma-2-9b", 16, 54_018_048),
        ("qwen3-8b", 16, 43_646_976),
        ("qwen3-14b", 32, 128_450_560),
    ],
)
def test_all_linear_layers_have_what_trainers_print(model, rank, parameters):
    """Trainable parameters, as `print_trainable_parameters` of PEFT gives them for these models."""
    assert size_of(model, r=rank, targets="all-linear").parameters == parameters


def test_patterns_layers_and_whole_modules_count():
    shape = small()
    found = size_of(shape, r=4, targets=["q_proj", "v_proj"], rank_pattern={"v_proj": 8}, lora_alpha=8,
                    layers_to_transform=[0, 2], modules_to_save=["lm_head"])  # fmt: skip
    rows = {each.name: (each.count, each.rank, each.scale, each.parameters) for each in found.modules}
    assert rows == {
        "q_proj": (2, 4, 2, 2 * 4 * (64 + 64)),
        "v_proj": (2, 8, 1, 2 * 8 * (64 + 32)),
        "lm_head": (1, None, None, 64 * 80),
    }
    assert found.names == ("q_proj", "v_proj")


def test_magnitudes_and_biases_count():
    plain = size_of(small(), r=4, targets=["q_proj"]).parameters
    assert size_of(small(), r=4, targets=["q_proj"], use_dora=True).parameters == plain + 3 * 64
    assert size_of(small(), r=4, targets=["q_proj"], use_dora=True, lora_bias=True).parameters == plain + 6 * 64


def test_what_cannot_be_counted_is_named():
    found = size_of(small(), r=4, targets=["q_proj"], modules_to_save=["score"], bias="all", target_parameters=["w"])
    assert found.uncounted == ("modules_to_save=score", "target_parameters=w", "bias=all")


def test_usual_targets_stand_in():
    assert size_of(small("phi"), r=4, targets=None).names == ("q_proj", "v_proj", "fc1", "fc2")
    with pytest.raises(PeftError, match="c: no target_modules; name some of qkv_proj, o_proj"):
        size_of(small("phi3"), r=4, targets=None)


def test_types():
    assert [width_of(name) for name in ("float32", "fp16", "BF16", "fp8")] == [4, 2, 2, 1]
    assert [size_of(small(), r=4, targets=["q_proj"], dtype=each).size for each in DTYPES] == [
        3 * 4 * 128 * width for width in DTYPES.values()
    ]
    with pytest.raises(ValueError, match="dtype 'int3': there are float32, "):
        width_of("int3")


def test_a_rank_above_the_narrower_side():
    with pytest.raises(PeftError, match=r"rank 33 for model.layers.0.self_attn.v_proj, which is 32 × 64: above 32"):
        size_of(small(), r=33, targets=["v_proj"])
    assert size_of(small(), r=33, targets=["q_proj"]).narrow == ()
    routed = size_of(small("mixtral"), r=8, targets="all-linear")
    assert routed.narrow == ("gate (4 × 64, rank 8)",)


def test_unknown_targets():
    with pytest.raises(PeftError, match="c: 'query': no such module in this model; there are q_proj, k_proj"):
        size_of(small(), r=4, targets=["q_proj", "query"])
    with pytest.raises(PeftError, match=r"c: '.*query' reaches no module of this model; there are q_proj"):
        size_of(small(), r=4, targets=".*query")


# -- files


def tensors_of(content):
    length = header_length(content[:8], file="w", file_size=len(content))
    return parse_tensors(content[8 : 8 + length], file="w", file_size=len(content))


def saved(shape, config):
    """What PEFT saves for this configuration, by its rules: names, shapes, and the whole file."""
    targets = Targets(config, file="c")
    outer = outer_modules(shape)
    tensors = {}
    for each in (*projections(shape), *outer):
        place = f"base_model.model.{each.module}"
        if targets.whole(each.module):
            tensors[f"{place}.weight"] = (each.outputs, each.inputs)
        elif targets.reach(each.module) and not (targets.all_linear and each in outer):
            rank = targets.rank(each.module)
            embedding = each.name == "embed_tokens"
            tensors[f"{place}.lora_embedding_A" if embedding else f"{place}.lora_A.weight"] = (rank, each.inputs)
            tensors[f"{place}.lora_embedding_B" if embedding else f"{place}.lora_B.weight"] = (each.outputs, rank)
            if each in outer:
                tensors[f"{place}.base_layer.weight"] = (each.outputs, each.inputs)
            if config.use_dora:
                tensors[f"{place}.lora_magnitude_vector"] = (each.outputs,)
            if config.lora_bias:
                tensors[f"{place}.lora_B.bias"] = (each.outputs,)
    return safetensors_bytes(tensors)


FAMILIES = ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "mixtral", "qwen2_moe",
            "qwen3_moe"]  # fmt: skip


@settings(max_examples=50)
@given(
    st.sampled_from(FAMILIES),
    st.integers(1, 4),
    st.sampled_from(["all-linear", r".*\.layers\.[01]\..*_proj", ["o_proj"], ["o_proj", "embed_tokens"]]),
    st.fixed_dictionaries(
        {
            "rank_pattern": st.sampled_from([None, {"o_proj": 3}, {r"layers\.1\..*": 2}]),
            "use_dora": st.booleans(),
            "lora_bias": st.booleans(),
            "modules_to_save": st.sampled_from([None, ["lm_head"]]),
            "layers_to_transform": st.sampled_from([None, 0, [1, 2]]),
        }
    ),
)
def test_reckoned_and_measured_agree_to_the_byte(family, rank, targets, more):
    shape = small(family)
    config = PeftConfig(r=rank, lora_alpha=16, target_modules=targets, **more)
    content = saved(shape, config)
    found = measured(config, tensors_of(content), file="w")
    header = 8 + int.from_bytes(content[:8], "little")
    assert found.size == len(content) - header
    by = reckoned(config, shape, dtype="bfloat16", file="c")
    assert (by.size, by.parameters, by.names) == (found.size, found.parameters, found.names)
    both = [{(m.module, m.count, m.rank, m.scale, m.parameters) for m in each.modules} for each in (by, found)]
    assert both[0] == both[1]


def test_names_and_shapes_written_by_hand():
    place = "base_model.model.model.layers.{}.self_attn.{}_proj.lora_{}.weight"
    tensors = {}
    for layer in range(3):
        for name, outputs in (("q", 64), ("v", 32)):
            tensors[place.format(layer, name, "A")] = (8, 64)
            tensors[place.format(layer, name, "B")] = (outputs, 8)
    content = safetensors_bytes(tensors)
    config = PeftConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])
    found, by = measured(config, tensors_of(content), file="w"), reckoned(config, small(), dtype="bf16", file="c")
    assert found.parameters == by.parameters == 3 * 8 * (64 + 64 + 64 + 32)
    assert found.size == by.size == len(content) - 8 - int.from_bytes(content[:8], "little")


def test_a_file_of_another_model_is_measured_as_it_is():
    place = "base_model.model.model.layers.0.self_attn.q_proj"
    content = safetensors_bytes({f"{place}.lora_A.weight": (8, 4), f"{place}.lora_B.weight": (4, 8)})
    found = measured(PeftConfig(r=8, target_modules=["q_proj"]), tensors_of(content), file="w")
    assert (found.parameters, found.size, found.narrow) == (64, 128, ("q_proj (4 × 4, rank 8)",))


def test_tensors_that_make_no_pair():
    content = safetensors_bytes(
        {
            "base_model.model.model.layers.0.mlp.experts.lora_A.weight": (16, 8),
            "base_model.model.model.layers.0.mlp.experts.lora_B.weight": (8, 16),
            "base_model.model.x.lora_A.weight": (2, 8),
            "lora_A.weight": (3, 3),
            "score.weight": (5, 8),
        }
    )
    found = measured(PeftConfig(r=2), tensors_of(content), file="w")
    assert found.parameters == 128 + 128 + 16 + 9 + 40
    assert found.names == ()


# -- what is asked for


def test_short_names_regular_expressions_and_all():
    shape = small()
    assert asked(shape, rank=4, alpha=8, targets="q, v,q").target_modules == ["q_proj", "v_proj"]
    assert asked(shape, rank=4, alpha=8, targets="gate,mlp.up_proj").target_modules == ["gate_proj", "mlp.up_proj"]
    assert asked(shape, rank=4, alpha=None, targets=r".*\.q_proj").target_modules == r".*\.q_proj"
    assert asked(shape, rank=4, alpha=None, targets="All-Linear").target_modules == "All-Linear"
    assert asked(small("qwen3_moe"), rank=4, alpha=None, targets="gate").target_modules == ["gate"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"rank": 0}, "rank 0: a rank is from 1 to 4096"),
        ({"rank": -16}, "rank -16"),
        ({"rank": 5000}, "rank 5000"),
        ({"alpha": float("nan")}, "alpha nan: it is a finite number"),
        (
            {"targets": "query"},
            "target 'query': no such module in this model; .*there are q_proj, k_proj, .*, all-linear",
        ),
        ({"targets": "qproj"}, "near: q_proj"),
        ({"targets": " , "}, "targets ' , ': name some of q_proj"),
    ],
)
def test_what_cannot_be_asked(words, message):
    with pytest.raises(PeftError, match=message):
        asked(small(), **({"rank": 4, "alpha": 8.0, "targets": "q"} | words))


def test_fused_queries_are_pointed_to():
    with pytest.raises(PeftError, match=r"target 'q': .*near: qkv_proj"):
        asked(small("phi3"), rank=4, alpha=None, targets="q")
    assert queries_only(small("phi3"), 4) is None
