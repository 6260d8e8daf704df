"""How engines are asked for adapters, and that a body says so to every reader."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.pods import Engine, Pod
from lorapick.model.requests import Wording
from lorapick.wire.asking import WordingError, model_for, task_id, wording
from lorapick.wire.openai import read_body, with_fields, with_model


def pod(engine: Engine, base_model: str = "base") -> Pod:
    return Pod(name="p", address="10.0.0.1:8000", engine=engine, base_model=base_model)


def test_a_name_is_enough_for_vllm_and_lorax() -> None:
    assert wording(pod(Engine.VLLM), "ad", source=None) is None
    assert wording(pod(Engine.LORAX), "ad", source="/w/ad") is None


def test_sglang_is_asked_in_the_words_of_old_and_new_versions() -> None:
    found = wording(pod(Engine.SGLANG), "ad", source=None)
    assert found == Wording(model="base:ad", beside_fields="ad", fields={"lora_path": "ad"})
    assert [model_for(found, path) for path in ("/v1/chat/completions?x=1", "/v1/embeddings", "/v1/messages")] == [
        "ad", "ad", "base:ad",
    ]  # fmt: skip
    # Behind the first colon is the adapter's name, whatever follows.
    assert wording(pod(Engine.SGLANG), "team:ad", source=None) == Wording(
        model="base:team:ad", fields={"lora_path": "team:ad"}
    )
    # `qwen:7b` would be the adapter 7b.
    assert wording(pod(Engine.SGLANG, "qwen:7b"), "ad", source=None) == Wording(model="ad", fields={"lora_path": "ad"})
    with pytest.raises(WordingError, match="--served-model-name"):
        wording(pod(Engine.SGLANG, "qwen:7b"), "team:ad", source=None)


def test_trtllm_is_told_where_it_is_with_each_request() -> None:
    found = wording(pod(Engine.TRTLLM), "ad", source="/w/ad")
    assert found is not None and found.model == "base"
    assert found.fields == {
        "lora_request": {"lora_name": "ad", "lora_int_id": task_id("ad", "/w/ad"), "lora_path": "/w/ad"}
    }
    with pytest.raises(WordingError, match="nobody knows where ad is: give it a `source`"):
        wording(pod(Engine.TRTLLM), "ad", source=None)


def test_triton_has_one_name_for_both() -> None:
    assert wording(pod(Engine.TRITON, "ensemble"), "ad", source=None) == Wording(model="ensemble_lora_ad")


def test_numbers_of_adapters_are_stable_and_apart() -> None:
    assert task_id("ad", "/w/ad") == 1_207_663_639_463_091, (
        "other pickers, and requests before an update, have this one"
    )
    numbers = {task_id(f"ad-{number}", "/w") for number in range(2000)} | {task_id("ad-0", "/other")}
    assert len(numbers) == 2001
    assert all(0 < number < 2**53 for number in numbers)


names = st.text(min_size=1, max_size=20)
bodies = st.dictionaries(
    st.sampled_from(["prompt", "lora_path", "lora_request", "x"]), st.recursive(names | st.none(), st.lists), max_size=4
)


@given(model=names, more=bodies, blanks=st.sampled_from(["", " ", "\n\t "]), adapter=names)
def test_a_body_says_it_to_every_reader(model: str, more: dict[str, object], blanks: str, adapter: str) -> None:
    body = (json.dumps({**more, "model": model}) + blanks).encode()
    read_body(body)
    found = with_fields(with_model(body, adapter), {"lora_path": adapter, "lora_request": None})
    assert json.loads(found) == {**more, "model": adapter, "lora_path": adapter, "lora_request": None}
    assert with_fields(body, {}) == body
