"""Which modules a configuration reaches, by PEFT's rules."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.wire.peft import PeftConfig, PeftError
from lorapick.wire.peft_targets import Targets

Q0, V0, Q7 = "model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.v_proj", "model.layers.7.self_attn.q_proj"
EXPERT = "model.layers.7.mlp.experts.0.up_proj"
HEAD = "lm_head"
SLOW = r"(\w|\S|.|[a-z])*[!?]"


def targets(named=("q_proj",), *, r=8, **more):
    wanted = named if isinstance(named, str) or named is None else [*named]
    return Targets(PeftConfig(r=r, target_modules=wanted, **more), file="c")


def reached(*names, of):
    return [name for name in names if of.reach(name)]


def test_names_match_whole_last_parts():
    assert reached(Q0, V0, Q7, of=targets()) == [Q0, Q7]
    assert reached(Q0, of=targets(["proj"])) == []
    assert reached(Q0, V0, of=targets(["self_attn.v_proj"])) == [V0]
    assert reached(Q0, Q7, of=targets([Q7])) == [Q7]


def test_a_string_is_a_regular_expression_for_the_whole_name():
    assert reached(Q0, V0, Q7, of=targets(r".*\.[qv]_proj")) == [Q0, V0, Q7]
    assert reached(Q0, of=targets("q_proj")) == []
    assert reached(Q0, V0, of=targets("All-Linear")) == [Q0, V0]


def test_some_modules_are_left_out():
    assert reached(Q0, Q7, of=targets(exclude_modules=[Q0])) == [Q7]
    assert reached(Q0, V0, of=targets(["q_proj", "v_proj"], exclude_modules=["v_proj"])) == [Q0]
    assert reached(Q0, Q7, of=targets(exclude_modules=r".*\.7\..*")) == [Q0]
    assert reached(Q0, HEAD, of=targets(["q_proj", "lm_head"], modules_to_save=["lm_head"])) == [Q0]


def test_some_layers_only():
    assert reached(Q0, Q7, of=targets(layers_to_transform=7)) == [Q7]
    assert reached(Q0, Q7, of=targets(layers_to_transform=[0, 1])) == [Q0]
    assert reached(Q0, Q7, of=targets(layers_to_transform=[])) == [Q0, Q7]
    assert reached(Q0, Q7, of=targets(layers_to_transform=[7], layers_pattern="layers")) == [Q7]
    assert reached(Q7, of=targets(layers_to_transform=[7], layers_pattern=["h", "blocks"])) == []
    assert reached(HEAD, of=targets(["lm_head"], layers_to_transform=[7])) == [HEAD]
    assert reached(Q0, of=targets([Q0], layers_to_transform=[7])) == [Q0]


def test_an_experts_number_is_no_layers():
    assert reached(EXPERT, of=targets(["up_proj"], layers_to_transform=[7])) == [EXPERT]
    assert reached(EXPERT, of=targets(["up_proj"], layers_to_transform=[0])) == []


def test_ranks_and_alphas_by_pattern():
    many = targets(r=8, lora_alpha=16, rank_pattern={r"layers\.7\..*": 32, "v_proj": 4}, alpha_pattern={"v_proj": 64.0})
    assert [many.rank(name) for name in (Q0, V0, Q7)] == [8, 4, 32]
    assert [many.alpha(name) for name in (Q0, V0, Q7)] == [16, 64, 16]
    assert [many.scale(name) for name in (Q0, V0, Q7)] == [2, 16, 0.5]
    first = targets(rank_pattern={".*": 1, "q_proj": 2})
    assert first.rank(Q0) == 1


def test_scales():
    assert targets(r=16, lora_alpha=32, use_rslora=True).scale(Q0) == 8
    assert targets(r=16).scale(Q0) is None


def test_usual_targets_stand_in():
    usual = Targets(PeftConfig(r=8), file="c", usual=("v_proj",))
    assert reached(Q0, V0, of=usual) == [V0]
    assert reached(Q0, of=targets(None)) == []


def test_what_is_saved_whole():
    assert targets(modules_to_save=["lm_head"]).whole(HEAD)
    assert not targets(modules_to_save=["head"]).whole(HEAD)


def test_named_modules_that_are_not_there():
    assert [*targets(["q_proj", "query"]).unmatched([Q0, V0])] == ["query"]
    assert [*targets("all-linear").unmatched([Q0])] == []


@pytest.mark.parametrize(
    "config",
    [{"named": "(q_proj"}, {"rank_pattern": {"*": 4}}, {"alpha_pattern": {"(": 4.0}}, {"exclude_modules": "["}],
)
def test_a_broken_pattern_is_named(config):
    with pytest.raises(PeftError, match=r"^c: .* is no regular expression"):
        targets(**config).reach(Q0)


@given(st.text(max_size=8), st.text(max_size=8), st.sampled_from([None, 0, [7], []]))
def test_any_pattern_is_used_or_refused(one, other, layers):
    with contextlib.suppress(PeftError):
        found = targets(one, rank_pattern={other: 4}, exclude_modules=[other], layers_to_transform=layers)
        assert found.reach(Q0) in (True, False)
        assert found.rank(Q0) in (4, 8)


@pytest.mark.parametrize(
    ("key", "config"),
    [
        ("target_modules", {"named": SLOW}),
        ("rank_pattern", {"rank_pattern": {SLOW: 4}}),
        ("alpha_pattern", {"alpha_pattern": {SLOW: 4.0}}),
        ("exclude_modules", {"exclude_modules": SLOW}),
        ("layers_pattern", {"layers_to_transform": [0], "layers_pattern": SLOW}),
        ("modules_to_save", {"modules_to_save": [SLOW]}),
    ],
)
def test_a_pattern_that_takes_for_ever_is_given_up(key, config):
    config = dict(config)
    named, more = config.pop("named", ["q_proj"]), config
    slow = Targets(
        PeftConfig(r=8, target_modules=named, lora_alpha=8.0, **more), file="c", left=iter([0.05] * 9).__next__
    )
    with pytest.raises(PeftError, match=rf"^c: {key} .*more than 2 s"):
        slow.reach(Q0), slow.rank(Q0), slow.alpha(Q0)


def test_no_pattern_is_matched_when_no_time_is_left():
    with pytest.raises(PeftError, match="more than 2 s"):
        Targets(PeftConfig(r=8, rank_pattern={"q_proj": 4}), file="c", left=lambda: 0.0)


@pytest.mark.parametrize(
    "pattern", ["q" * 10_001, "[[:alpha:]]_proj", "(q_proj){e<=1}"], ids=["long", "class", "inexact"]
)
def test_patterns_that_are_not_read(pattern):
    with pytest.raises(PeftError, match="read"):
        targets(pattern).reach(Q0)
