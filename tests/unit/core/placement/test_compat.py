"""Whether pods can serve adapters, and are what the configuration says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.placement.compat import MisfitReason, drift, other_base, problems
from lorapick.model.adapters import Adapter
from lorapick.model.placement import AdapterFacts
from lorapick.model.pods import Engine, LoadedAdapter, Pod, PodLimits, PodReport

POD = Pod(name="pod-01", address="10.0.0.1:8000", limits=PodLimits(max_lora_rank=16))
LEGAL = Adapter(name="legal@7", rank=16)


def reasons(adapter=LEGAL, pod=POD, **known):
    return [each.reason.value for each in problems(adapter, pod, **known)]


def test_what_nobody_knows_is_no_problem():
    assert reasons(Adapter(name="x")) == []
    assert reasons(facts=AdapterFacts(rank=16, targets=("q_proj", "embed_tokens", "lm_head"))) == []


def test_the_base_model_is_one_that_the_pod_serves():
    adapter = Adapter(name="x", base_model="m2")
    assert reasons(adapter) == ["base_model"]
    assert reasons(adapter, base_models=("m1", "m2")) == []
    (found,) = problems(adapter, POD, base_models=("m1",))
    assert found.message == "x is for the base model m2; pod-01 serves m1"
    assert reasons(adapter, base_models=()) == ["base_model"]


def test_the_rank_fits_the_pod():
    wide = Adapter(name="x", rank=32)
    (found,) = problems(wide, POD)
    assert found == (MisfitReason.RANK, "x has rank 32; pod-01 takes 16 at most (max_lora_rank): raise it there")
    assert reasons(wide, max_rank=32) == []
    assert reasons(LEGAL, facts=AdapterFacts(rank=17)) == ["rank"]  # the file's goes before the declared one


@pytest.mark.parametrize(
    ("engine", "need", "fits"),
    [
        (Engine.VLLM, "use_dora", False),
        (Engine.VLLM, "modules_to_save=lm_head", False),
        (Engine.VLLM, "modules_to_save=score", True),
        (Engine.VLLM, "init_lora_weights=pissa", False),
        (Engine.SGLANG, "modules_to_save=score", False),
        (Engine.SGLANG, "use_dora", False),
        (Engine.LORAX, "use_dora", True),
    ],
)
def test_engines_cannot_do_everything(engine, need, fits):
    pod = Pod(name="p", address="10.0.0.1:1", engine=engine)
    assert reasons(pod=pod, facts=AdapterFacts(needs=(need,))) == ([] if fits else ["needs"])


def test_a_comma_and_closed_pods_are_told():
    assert reasons(Adapter(name="a,b"), runtime_loading=False) == ["name", "runtime_loading"]
    assert reasons(runtime_loading=True) == []
    for engine, words in (
        (Engine.VLLM, "VLLM_ALLOW_RUNTIME"),
        (Engine.SGLANG, "--enable-lora"),
        (Engine.TRTLLM, "declare"),
    ):
        pod = Pod(name="p", address="10.0.0.1:1", engine=engine)
        assert words in problems(LEGAL, pod, runtime_loading=False)[-1].message


def test_trtllm_serves_nothing_without_a_source():
    pod = Pod(name="p", address="10.0.0.1:1", engine=Engine.TRTLLM)
    assert reasons(Adapter(name="a"), pod=pod) == ["source"]
    assert reasons(Adapter(name="a", source="/w/a"), pod=pod) == []
    assert reasons(Adapter(name="a")) == []


def test_a_pod_that_is_otherwise_than_configured():
    assert drift(POD, PodReport()) == []
    assert drift(POD, PodReport(max_loras=4, max_cpu_loras=16, base_models=("base", "b"))) == []
    report = PodReport(
        max_loras=8, max_cpu_loras=8, base_models=(), loaded=(LoadedAdapter(name="x", on_gpu=True, rank=64),)
    )
    found = drift(POD, report)
    assert found[0] == ("pod-01: max_loras is 4 by configuration and 8 by the pod; correct its entry in the pods file")
    assert [words for words in ("max_cpu_loras is 16", "serves none", "of rank 64") if words in "\n".join(found)] == [
        "max_cpu_loras is 16", "serves none", "of rank 64",
    ]  # fmt: skip
    assert len(found) == 4


@pytest.mark.parametrize(
    ("told", "wanted", "other"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct", False),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-unsloth-bnb-4bit", "meta-llama/Llama-3.1-8B-Instruct", False),
        ("Qwen/Qwen3-8B-AWQ", "Qwen/Qwen3-8B-FP8", False),
        ("Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct", True),
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct", True),
        ("/home/me/models/llama", "meta-llama/Llama-3.1-8B-Instruct", False),
        ("./llama", "meta-llama/Llama-3.1-8B-Instruct", False),
        ("Qwen/Qwen3-8B", "base", False),
        (None, "Qwen/Qwen3-8B", False),
    ],
)
def test_only_names_of_repositories_are_compared(told, wanted, other):
    assert other_base(told, wanted) is other


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_names_can_be_compared(told, wanted):
    assert other_base(told, wanted) == other_base(wanted, told)
    assert not other_base(told, told)
