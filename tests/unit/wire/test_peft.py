"""A PEFT adapter's files, as values."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.testing.peft_files import WIDTH, config_bytes, safetensors_bytes, weights_bytes
from lorapick.wire import peft
from lorapick.wire.peft import PeftError, facts, header_length, parse_config, parse_header


def tensors_of(content: bytes) -> peft.Tensors:
    length = header_length(content[:8], file="w", file_size=len(content))
    return parse_header(content[8 : 8 + length], file="w", file_size=len(content))


def facts_of(weights: bytes | None, **config):
    return facts(
        parse_config(config_bytes(**config), file="c"), None if weights is None else tensors_of(weights), file="c"
    )


def test_both_files_give_rank_alpha_targets_and_size():
    found = facts_of(weights_bytes(rank=16), rank=16, base_model_name_or_path="acme/base")
    assert (found.rank, found.alpha, found.targets) == (16, 32, ("q_proj", "v_proj"))
    assert found.size == 2 * (2 * 2 * 16 * WIDTH)
    assert (found.base_model, found.needs, found.fingerprint) == ("acme/base", (), None)


def test_without_weights_the_configuration_speaks_alone():
    found = facts_of(None, rank=8, rank_pattern={"v_proj": 32})
    assert (found.rank, found.size, found.targets) == (32, None, ("q_proj", "v_proj"))
    assert facts_of(None, target_modules="all-linear").targets == ("all-linear",)
    assert facts_of(None, target_modules=None).targets == ()


def test_tensors_say_what_a_pattern_really_reached():
    found = facts_of(weights_bytes(rank=8), rank=8, rank_pattern={"absent": 32}, target_modules=r".*\.[qv]_proj")
    assert (found.rank, found.targets) == (8, ("q_proj", "v_proj"))
    assert facts_of(weights_bytes(rank=32), rank=8, rank_pattern={"q_proj": 32}).rank == 32


def test_weights_of_another_adapter_are_refused():
    with pytest.raises(PeftError, match=r"^c: r is 8, and the weights beside it have rank 16; .*save it again"):
        facts_of(weights_bytes(rank=16), rank=8)


def test_experts_in_one_tensor_give_no_rank():
    experts = {
        "base_model.model.model.layers.0.mlp.experts.lora_A.weight": (8 * 4, WIDTH),
        "base_model.model.model.layers.0.mlp.experts.lora_B.weight": (WIDTH, 8 * 4),
    }
    assert tensors_of(safetensors_bytes(experts)).rank is None
    assert facts_of(safetensors_bytes(experts), rank=8).rank == 8


def test_pairs_of_embeddings_count():
    found = tensors_of(
        safetensors_bytes(
            {
                "base_model.model.model.embed_tokens.lora_embedding_A": (4, 100),
                "base_model.model.model.embed_tokens.lora_embedding_B": (WIDTH, 4),
                "base_model.model.model.embed_tokens.base_layer.weight": (100, WIDTH),
            }
        )
    )
    assert (found.rank, found.targets, found.whole) == (4, ("embed_tokens",), ())


def test_what_it_needs_of_an_engine():
    whole = safetensors_bytes(
        {
            "base_model.model.lm_head.weight": (10, WIDTH),
            "base_model.model.score.modules_to_save.weight": (2, WIDTH),
            "base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector": (WIDTH,),
        }
    )
    assert facts_of(whole, modules_to_save=["lm_head"]).needs == (
        "use_dora", "modules_to_save=lm_head", "modules_to_save=score",
    )  # fmt: skip
    asked = facts_of(
        None,
        use_dora=True,
        use_qalora=True,
        lora_bias=True,
        bias="all",
        layer_replication=[[0, 4]],
        alora_invocation_tokens=[1],
        init_lora_weights="pissa",
    )
    assert asked.needs == (
        "use_dora", "use_qalora", "lora_bias", "bias", "layer_replication", "alora_invocation_tokens",
        "init_lora_weights=pissa",
    )  # fmt: skip
    assert facts_of(None, init_lora_weights="gaussian", bias="none", modules_to_save=None).needs == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "c: .*at least `r`"),
        (b"[]", "c: .*at least `r`"),
        (b"{}", "c: .*`r`"),
        (b'{"r": "sixteen"}', "c: .*`r`"),
        (b'{"r": 0}', "c: r is 0; a rank is from 1 to 4096"),
        (b'{"r": 8, "rank_pattern": {"q": 5000}}', r"c: rank_pattern\['q'\] is 5000; a rank"),
        (b'{"r": 8, "peft_type": "IA3"}', "c: peft_type is 'IA3'; only LORA"),
        (b"[" * 100_000, "c: "),
        (b" " * (peft.LARGEST_CONFIG + 1), "c: larger than 1048576 bytes"),
    ],
)
def test_a_wrong_configuration_is_named(content, message):
    with pytest.raises(PeftError, match=message):
        parse_config(content, file="c")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1234", "w: 4 bytes, too short"),
        (b"\xff" * 8 + b"{}", "w: a header of 18446744073709551615 bytes in a file of 10"),
        ((3).to_bytes(8, "little") + b"{}", "w: a header of 3 bytes in a file of 10"),
        ((2).to_bytes(8, "little") + b"[]", "w: its header is not one of safetensors"),
        (weights_bytes()[:-1], "w: .*was cut off"),
        (weights_bytes() + b"x", "w: .*was cut off"),
    ],
)
def test_a_wrong_file_of_weights_is_named(content, message):
    with pytest.raises(PeftError, match=message):
        tensors_of(content)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ({"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 8]}, "of shape .* has 8 bytes"),
        ({"dtype": "F16", "shape": [2, 2], "data_offsets": [4, 12]}, "is at 4 to 12, where 0 comes next"),
        ({"dtype": "F16", "shape": [-2, -2], "data_offsets": [0, 8]}, "is at 0 to 8"),
        ({"dtype": "F16", "shape": [1] * 9, "data_offsets": [0, 2]}, "is at 0 to 2"),
        ({"dtype": "F16", "shape": [2, 2]}, "not one of safetensors"),
        ({"dtype": "F16", "shape": [2, 2], "data_offsets": [0, 4, 8]}, "not one of safetensors"),
    ],
)
def test_a_tensor_that_cannot_be_there_is_named(tensor, message):
    header = json.dumps({"t": tensor}).encode()
    with pytest.raises(PeftError, match=message):
        parse_header(header, file="w", file_size=8 + len(header) + 8)


def test_types_that_we_do_not_know_are_believed():
    header = json.dumps({"t": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]}}).encode()
    assert parse_header(header, file="w", file_size=8 + len(header) + 3).size == 3


def test_the_digest_sees_what_changes_answers():
    one, other = (parse_config(config_bytes(rank=rank), file="c") for rank in (8, 16))
    again = parse_config(config_bytes(rank=8, targets=("v_proj", "q_proj"), base_model_name_or_path="x"), file="c")
    assert one.digest == again.digest != other.digest
    assert one.digest != parse_config(config_bytes(rank=8, use_rslora=True), file="c").digest


def test_the_scale_is_alpha_over_r_or_over_its_root():
    assert parse_config(config_bytes(rank=16), file="c").scale == 2
    assert parse_config(config_bytes(rank=16, use_rslora=True), file="c").scale == 8
    assert parse_config(b'{"r": 8}', file="c").scale is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
keys = st.sampled_from([*peft.PeftConfig.__struct_fields__])


@settings(max_examples=50)
@given(st.binary(max_size=200) | st.dictionaries(keys, json_values).map(lambda each: json.dumps(each).encode()))
def test_any_configuration_is_read_or_refused(content):
    try:
        config = parse_config(content, file="c")
    except PeftError:
        return
    assert 1 <= config.largest_rank <= peft.HIGHEST_RANK
    assert len(config.digest) == 64
    assert facts(config, None, file="c").rank == config.largest_rank


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(content):
    try:
        found = tensors_of(content)
    except PeftError:
        return
    assert 0 <= found.size <= len(content)


names = st.text(max_size=12) | st.sampled_from(
    ["a.lora_A.weight", "a.lora_B.weight", "lora_A", ".weight", "modules_to_save.weight", "x.experts.lora_A.weight"]
)
entries = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F16", "F4", "BOOL", "odd"]),
        "shape": st.lists(st.integers(-1, 2**70), max_size=3),
        "data_offsets": st.tuples(st.integers(-1, 16), st.integers(-1, 16)),
    }
)


@settings(max_examples=50)
@given(st.dictionaries(names, entries | json_values, max_size=4), st.integers(0, 16))
def test_any_header_is_read_or_refused(header, size):
    content = json.dumps(header).encode()
    try:
        found = parse_header(content, file="w", file_size=8 + len(content) + size)
    except PeftError:
        return
    assert found.size == size


@given(st.integers(1, 64), st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
def test_what_is_written_is_read(rank, targets):
    found = tensors_of(weights_bytes(rank=rank, targets=targets))
    assert (found.rank, found.targets, found.count) == (rank, tuple(targets), 2 * len(targets))
