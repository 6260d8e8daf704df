"""What routing reads of OpenAI-shaped bodies, and the exchange of the model's name."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.wire.openai import BodyError, read_body, with_model


def pieces(body: dict[str, Any]) -> list[bytes]:
    return [*read_body(json.dumps(body).encode()).pieces()]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"prompt": "Héllo"}, ["Héllo"]),
        ({"prompt": ["a", "b"]}, ["a", "b"]),
        ({"prompt": [1, 2, 30]}, ["[1,2,30]"]),
        ({"prompt": [[1, 2], [3]]}, ["[[1,2],[3]]"]),
        ({"prompt": None}, ["null"]),
        ({"prompt": []}, []),
        ({"messages": [{"role": "user", "content": "Hi"}]}, ["user", "Hi"]),
        (
            {"messages": [{"role": "user", "content": None}, {"role": "tool"}]},
            ["user", "null", "tool", '{"role": "tool"}'],
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "Look"}, {"image_url": "x"}, "!"]}]},
            ["user", "Look", '{"image_url": "x"}', "!"],
        ),
        ({"messages": "not a list"}, ["not a list"]),
        ({"messages": [7]}, ["[7]"]),
        ({"messages": [{"role": 3, "content": {"deep": 1}}]}, ['{"deep": 1}']),
        ({"input": "One", "instructions": "Be brief"}, ["Be brief", "One"]),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "Q"}]}]}, ["user", "Q"]),
        ({"system": [{"type": "text", "text": "S"}], "messages": []}, ["S"]),
        ({"tools": [{"name": "f"}], "prompt": "p"}, ['[{"name": "f"}]', "p"]),
        ({}, []),
    ],
)
def test_the_prompt_in_pieces(fields: dict[str, Any], expected: list[str]) -> None:
    assert [piece.decode() for piece in pieces({"model": "ad0", **fields})] == expected


def test_deep_content_counts_as_json() -> None:
    deep: Any = "x"
    for _ in range(6):
        deep = [{"content": deep}]
    (piece,) = pieces({"model": "m", "messages": deep})
    assert piece.startswith(b'{"content"')


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"prompt": [5, 6, 7]}, 3),
        ({"prompt": [[5, 6], [7, 8, 9]]}, 5),
        ({"input": [1]}, 1),
        ({"prompt": []}, None),
        ({"prompt": ["a"]}, None),
        ({"prompt": "text"}, None),
        ({"prompt": [1, 2], "system": "s"}, None),
    ],
)
def test_tokens_are_known_only_when_given(fields: dict[str, Any], tokens: int | None) -> None:
    assert read_body(json.dumps({"model": "m", **fields}).encode()).prompt_tokens == tokens


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 5, "max_completion_tokens": 7}, 7),
        ({"max_output_tokens": 9}, 9),
        ({"max_tokens": "5"}, None),
        ({"max_tokens": True}, None),
        ({"max_tokens": -1}, None),
        ({}, None),
    ],
)
def test_max_tokens(fields: dict[str, Any], expected: int | None) -> None:
    assert read_body(json.dumps({"model": "m", **fields}).encode()).max_tokens == expected


def test_fields_of_the_wrong_type_are_the_engines_business() -> None:
    body = read_body(b'{"model":"m","stream":"yes","user":7,"max_tokens":{},"prompt":{"a":1}}')
    assert (body.model, body.stream, body.user, body.max_tokens) == ("m", False, None, None)


def test_a_key_given_twice_counts_as_its_last_value() -> None:
    assert read_body(b'{"model":"a","model":"b"}').model == "b"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is empty"),
        (b"nonsense", "is not JSON"),
        (b'{"model":"a"} tail', "is not JSON"),
        (b"7", "no request"),
        (b'{"a":"\xc3"}', "not UTF-8"),
        (b'{"model":true}', "not a boolean"),
        (b'{"model":[]}', "not an array"),
        (b'{"model":{}}', "not an object"),
        (b'{"model":"%s"}' % (b"x" * 513), "has 513 characters; at most 512"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    ],
)
def test_what_cannot_be_routed(body: bytes, words: str) -> None:
    with pytest.raises(BodyError, match=words):
        read_body(body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model":"old","n":1}', b'{"model":"new","n":1}'),
        (b' {\n "n" : 1 ,"model"\t:  "old"\r\n} ', b' {\n "n" : 1 ,"model"\t:  "new"\r\n} '),
        (rb'{"model":"o\"l\\d","x":"\""}', rb'{"model":"new","x":"\""}'),
        (rb'{"mod\u0065l":"old"}', rb'{"mod\u0065l":"new"}'),
        (b'{"model":"a","model":"b"}', b'{"model":"new","model":"new"}'),
        (
            b'{"a":{"model":"old"},"b":[{"model":"old"}],"model":"old"}',
            b'{"a":{"model":"old"},"b":[{"model":"old"}],"model":"new"}',
        ),
        (b'{"k":"model","model":"old"}', b'{"k":"model","model":"new"}'),
        (b'{"k":"\\"model\\":\\"old\\"","model":"old"}', b'{"k":"\\"model\\":\\"old\\"","model":"new"}'),
        (b'{"k":["model","old"],"model":"old"}', b'{"k":["model","old"],"model":"new"}'),
        (b'{"model":7,"model":"old"}', b'{"model":7,"model":"new"}'),
    ],
)
def test_only_the_models_value_moves(body: bytes, expected: bytes) -> None:
    assert with_model(body, "new") == expected


def test_a_name_is_written_as_json() -> None:
    assert json.loads(with_model(b'{"model":"old"}', 'q"\\é\n')) == {"model": 'q"\\é\n'}


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        parsed = read_body(body)
    except BodyError:
        return
    assert all(isinstance(piece, bytes) for piece in parsed.pieces())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5) | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KEYS = st.sampled_from(["model", "prompt", "messages", "input", "system", "tools", "stream", "user", "max_tokens"])


@settings(max_examples=60)
@given(
    st.dictionaries(
        KEYS | st.text(max_size=5),
        JSON | st.lists(st.dictionaries(st.sampled_from(["role", "content", "text"]), JSON, max_size=3), max_size=3),
        max_size=6,
    ),
    st.booleans(),
)
def test_any_json_object_is_read_or_refused(document: dict[str, Any], escaped: bool) -> None:
    body = json.dumps(document, ensure_ascii=escaped).encode()
    try:
        parsed = read_body(body)
    except BodyError:
        model = document["model"]
        assert not isinstance(model, str) or not model
        return
    assert parsed.model == document.get("model")
    assert all(isinstance(piece, bytes) for piece in parsed.pieces())
    if parsed.model is not None:
        assert json.loads(with_model(body, "new")) == {**document, "model": "new"}


@pytest.mark.parametrize("depth", [10, 300, 500])
def test_a_body_of_brackets_is_read_in_few_passes(depth: int) -> None:
    body = b'{"model":"a","prompt":' + b"[" * depth + b'"x"' + b"]" * depth + b"}"
    (piece,) = read_body(body).pieces()
    assert piece.strip(b"[]") == b'"x"'
