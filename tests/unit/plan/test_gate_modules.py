"""Adapters that change what a base model does not have."""

import pytest

from lorapick.model.adapters import Adapter
from lorapick.model.pods import Engine, Pod
from lorapick.plan.gate.compatibility import AdapterFiles, faults
from lorapick.plan.gate.modules import misfits
from lorapick.plan.gate.values import Level
from lorapick.plan.sizes.models import built_in, read_model
from lorapick.testing.peft_files import config_bytes, weights_bytes
from lorapick.wire.peft import facts, parse_config, parse_header
from lorapick.wire.peft_targets import PeftError

LARGE = "meta-llama/Llama-3.1-70B-Instruct"


def files(*targets, rank=16, saved=(), **more):
    config = parse_config(config_bytes(rank=rank, targets=targets or ("q_proj",), **more), file="c")
    tensors = None
    if saved:
        content = weights_bytes(rank=rank, targets=saved)
        length = int.from_bytes(content[:8], "little")
        tensors = parse_header(content[8 : 8 + length], file="w", file_size=len(content))
    return AdapterFiles(facts(config, tensors, file="c"), config)


def told(found, model="llama-3.1-70b"):
    return [each.message for each in misfits("x", found.config, facts=found.facts, model=read_model(model))]


def pod(name="a", base=LARGE, engine=Engine.VLLM):
    return Pod(name=name, address="127.0.0.1:1", base_model=base, engine=engine)


@pytest.mark.parametrize(
    "found",
    [
        files("q_proj", "down_proj"),
        files("mlp.up_proj", "lm_head"),
        files(target_modules="all-linear"),
        files(target_modules=r".*\.layers\.7\..*_proj"),
        files("model.layers.3.self_attn.q_proj"),
        files(target_modules=None),
        files("q_proj", saved=("q_proj", "v_proj")),
    ],
)
def test_what_the_model_has(found):
    assert told(found) == []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            files("q_proj", "mlp.up"),
            "x changes mlp.up, which llama-3.1-70b does not have (near: up_proj); there",
        ),
        (files("query", "value"), "x changes query, value, which llama-3.1-70b does not have (near: q_proj)"),
        (files("blork"), "which llama-3.1-70b does not have; there are q_proj, k_proj"),
        (files("q_proj", saved=("q_proj", "w1")), "x changes w1, which"),
        (files(target_modules=r".*\.h\..*"), r"x changes nothing of llama-3.1-70b: '.*\\.h\\..*' is none of q_proj"),
        (files("v_proj", rank=2048), "rank 2048 on v_proj, which is 1024 × 8192 in llama-3.1-70b: above 1024"),
        (files("q_proj", "v_proj", rank_pattern={"v_proj": 1025}), "x has rank 1025 on v_proj"),
    ],
)
def test_what_it_does_not_have(found, words):
    (message,) = told(found)
    assert words in message


def test_experts_in_one_and_routers_are_let_pass():
    assert told(files("gate", "q_proj", "experts", rank=64), "qwen3-30b-a3b") == []
    assert told(files("experts", rank=64)) != []


def test_modules_beyond_the_text_part_are_not_known():
    assert told(files("q_proj", "out_proj"), "gemma-3-4b") == []
    assert told(files("out_proj"), "gemma-3-4b") != []


def test_no_regular_expression():
    with pytest.raises(PeftError, match="no regular expression"):
        told(files(target_modules="(q"))


# -- as findings


def found(adapter_files, *pods, **more):
    adapter = more.pop("adapter", Adapter(name="x"))
    return [(each.rule, each.level) for each in faults([adapter], pods, files={"x": adapter_files}, **more)]


def test_the_model_is_what_pods_serve():
    assert found(files("query"), pod()) == [("modules", Level.FAIL)]
    assert found(files("query"), pod(base="acme/own")) == []  # nobody knows its modules
    assert found(files("query"), pod(base="acme/own"), model=built_in("llama-3.1-8b")) == [("modules", Level.FAIL)]
    assert found(files("fc1"), pod(base="microsoft/phi-2"), pod("b")) == [("modules", Level.WARN)]


def test_or_what_the_adapter_says_where_pods_say_nothing():
    odd = files("query", base_model_name_or_path=LARGE)
    assert found(odd, pod(base="own")) == [("modules", Level.FAIL)]
    assert found(odd, pod(base="acme/own"), limits=False) == [("modules", Level.FAIL)]
    assert found(files("query"), pod(base="own"), adapter=Adapter(name="x", base_model="own")) == []


def test_of_another_base_model_modules_are_not_compared():
    odd = files("fc1", base_model_name_or_path="microsoft/phi-2")
    assert found(odd, pod()) == [("base_model", Level.FAIL)]
    assert found(odd, pod(), adapter=Adapter(name="x", base_model="acme/other")) == [("base_model", Level.FAIL)]


def test_what_engines_cannot_do_names_the_module():
    odd = files(modules_to_save=["lm_head"])
    (fault,) = faults([Adapter(name="x")], [pod()], files={"x": odd})
    assert (fault.rule, fault.level) == ("needs", Level.FAIL)
    assert "x needs modules_to_save=lm_head, which vllm cannot do" in fault.message
    assert found(odd, pod(), pod("b", engine=Engine.LORAX)) == [("needs", Level.WARN)]
