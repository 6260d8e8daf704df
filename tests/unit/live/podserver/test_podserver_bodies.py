"""Request bodies: what vLLM takes is taken, the rest is refused with its status and the place."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.live.podserver import bodies
from lorapick.live.podserver.bodies import ChatBody, CompletionBody, LoadBody, Message, TextPart, read_body
from lorapick.live.podserver.refusals import RefusalError

JSON = "application/json"
KINDS = [
    bodies.CompletionBody,
    bodies.ChatBody,
    bodies.ResponsesBody,
    bodies.MessagesBody,
    bodies.EmbeddingBody,
    bodies.RerankBody,
    bodies.ScoreBody,
    bodies.TokenizeBody,
    bodies.LoadBody,
    bodies.UnloadBody,
]
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["prompt", "model", "n"]), inner),
    max_leaves=6,
)


def refusal(kind: type, data: bytes, content_type: str = JSON) -> RefusalError:
    with pytest.raises(RefusalError) as refused:
        read_body(kind, content_type, data)
    return refused.value


def read_or_refusal(kind: type, data: bytes) -> object:
    try:
        return read_body(kind, JSON, data)
    except RefusalError as refused:
        return refused.status


def test_unknown_fields_are_ignored_as_vllm_does() -> None:
    body = read_body(CompletionBody, JSON, b'{"prompt": "x", "ignore_eos": true, "repetition_penalty": 1.0}')
    assert (body.prompt, body.model, body.stream) == ("x", None, False)


def test_a_content_type_may_have_parameters() -> None:
    assert read_body(CompletionBody, "Application/JSON; charset=utf-8", b'{"prompt": "x"}').prompt == "x"


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_another_content_type_is_refused(content_type: str) -> None:
    refused = refusal(CompletionBody, b'{"prompt": "x"}', content_type)
    assert refused.status == 400 and "Unsupported Media Type" in str(refused)


@pytest.mark.parametrize("data", [b"", b"{", b"{oops}", b'{"a": 1,}', b"\xff", b"[" * 100_000])
def test_malformed_json_is_refused_with_its_place(data: bytes) -> None:
    refused = refusal(CompletionBody, data)
    assert refused.status == 400 and refused.kind == "Bad Request"
    assert "JSON decode error" in str(refused)


def test_a_missing_field_is_named() -> None:
    refused = refusal(LoadBody, b'{"lora_name": "a"}')
    assert refused.param == "body.lora_path"
    assert "Field required" in str(refused) and "1 validation error" in str(refused)


def test_a_wrong_type_is_named_with_its_place() -> None:
    refused = refusal(ChatBody, b'{"messages": [{"role": 5}]}')
    assert refused.param == "body.messages.0.role"
    assert "Expected `str`, got `int`" in str(refused)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(document=documents)
def test_any_json_is_read_or_refused_with_400(kind: type, document: object) -> None:
    outcome = read_or_refusal(kind, json.dumps(document).encode())
    assert isinstance(outcome, kind) or outcome == 400


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused_with_400(data: bytes) -> None:
    outcome = read_or_refusal(CompletionBody, data)
    assert isinstance(outcome, CompletionBody) or outcome == 400


@pytest.mark.parametrize(
    ("prompt", "tokens"), [("hello world", 3), ([1, 2, 3], 3), (["hello world"], 3), ([[1, 2, 3]], 3)]
)
def test_a_prompt_comes_in_four_forms(prompt: bodies.PromptField, tokens: int) -> None:
    assert bodies.one_prompt(prompt).tokens == tokens


@pytest.mark.parametrize(
    ("prompt", "part"),
    [(None, "non-empty"), ("", "non-empty"), ([], "non-empty"), (["a", "b"], "2 prompts"), ([1, "a"], "mixed")],
)
def test_other_prompts_are_refused(prompt: bodies.PromptField | None, part: str) -> None:
    with pytest.raises(RefusalError, match=part) as refused:
        bodies.one_prompt(prompt)
    assert refused.value.param == "prompt"


def test_a_conversation_counts_all_of_its_text() -> None:
    parts = [TextPart(text="Hello"), TextPart(type="image_url"), "you"]
    long = bodies.conversation([Message(role="system", content="Be kind."), Message(content=parts)])
    short = bodies.conversation([Message(content="Helloyou")])
    assert b"Be kind." in long.data and b"Helloyou" in long.data
    assert long.data.endswith(short.data)
    with pytest.raises(RefusalError):
        bodies.conversation([])


def test_limits_below_one_are_refused() -> None:
    assert bodies.check_limit(None, "max_tokens") is None
    assert bodies.check_limit(1, "max_tokens") == 1
    with pytest.raises(RefusalError, match="max_tokens must be at least 1, got 0"):
        bodies.check_limit(0, "max_tokens")


def test_streaming_fields_are_checked() -> None:
    bodies.check_stream(read_body(CompletionBody, JSON, b'{"stream": true, "stream_options": {"include_usage": true}}'))
    for data, part in ((b'{"stream_options": {}}', "stream=True"), (b'{"n": 2}', "n is 2")):
        with pytest.raises(RefusalError, match=part):
            bodies.check_stream(read_body(CompletionBody, JSON, data))
