"""Usage out of answers, and the client's name of the model put back."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.answers import Usage
from lorapick.wire.answers import MAX_JSON, MAX_LINE, EventUsage, JsonUsage, ModelRestorer, usage_reader


def fed(reader: JsonUsage | EventUsage, text: bytes, step: int) -> Usage | None:
    for start in range(0, len(text), step):
        reader.feed(text[start : start + step], last=False)
    reader.feed(b"", last=True)
    return reader.usage


@pytest.mark.parametrize(
    ("document", "usage"),
    [
        (
            {"usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}},
            Usage(prompt_tokens=7, cached_tokens=4, output_tokens=3),
        ),
        (
            {"usage": {"input_tokens": 7, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 4}}},
            Usage(prompt_tokens=7, cached_tokens=4, output_tokens=3),
        ),
        ({"usage": {"input_tokens": 7, "cache_read_input_tokens": 0}}, Usage(prompt_tokens=7, cached_tokens=0)),
        ({"usage": {"prompt_tokens": 7, "prompt_tokens_details": None}}, Usage(prompt_tokens=7)),
        ({"usage": None}, None),
        ({"usage": {"prompt_tokens": "7"}}, None),
        ({"error": {"message": "no"}}, None),
    ],
)
def test_a_json_answer(document: dict[str, object], usage: Usage | None) -> None:
    for step in (1, 7, 1000):
        assert fed(JsonUsage(), json.dumps(document).encode(), step) == usage


def test_a_long_json_answer_is_read_at_its_end() -> None:
    vectors = b'{"data":[' + b"0.25," * (MAX_JSON // 4) + b"0]"
    text = vectors + b',"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":1}}}'
    assert fed(JsonUsage(), text, 60_000) == Usage(prompt_tokens=9, cached_tokens=1)
    assert fed(JsonUsage(), vectors + b"}", 60_000) is None
    assert fed(JsonUsage(), vectors + b',"usage":{"prompt_tokens":"x"}}', 60_000) is None


STREAM = (
    b': comment with "usage"\r\n'
    b'data: {"choices":[{"delta":{"content":"the \\"usage\\" of"}}]}\r\n\r\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":10}}\r\n\r\n'
    b"data: [DONE]\r\n\r\n"
)


@pytest.mark.parametrize("step", [1, 2, 3, 5, 50, 1000])
def test_an_event_stream_cut_anywhere(step: int) -> None:
    assert fed(EventUsage(), STREAM, step) == Usage(prompt_tokens=7, output_tokens=10)


def test_the_responses_api() -> None:
    event = (
        b'event: response.completed\ndata: {"type":"response.completed",'
        b'"response":{"usage":{"input_tokens":5,"output_tokens":6}}}\n\n'
    )
    assert fed(EventUsage(), event, 9) == Usage(prompt_tokens=5, output_tokens=6)


def test_the_messages_api_adds_up() -> None:
    events = (
        b'data: {"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}\n\n'
        b'data: {"type":"message_delta","usage":{"output_tokens":15}}\n'
    )
    assert fed(EventUsage(), events, 11) == Usage(prompt_tokens=25, output_tokens=15)


def test_a_last_line_without_an_end() -> None:
    assert fed(EventUsage(), b'data: {"usage":{"prompt_tokens":1}}', 4) == Usage(prompt_tokens=1)


def test_a_line_too_long_is_skipped_and_the_next_read() -> None:
    text = b'data: {"usage":"' + b"x" * (MAX_LINE + 10) + b'"}\ndata: {"usage":{"prompt_tokens":1}}\n'
    assert fed(EventUsage(), text, 50_000) == Usage(prompt_tokens=1)
    assert fed(EventUsage(), text[: MAX_LINE + 20], 50_000) is None


def test_readers_by_content_type() -> None:
    assert isinstance(usage_reader("text/event-stream; charset=utf-8"), EventUsage)
    assert isinstance(usage_reader("application/json"), JsonUsage)
    assert usage_reader("audio/mpeg") is None


def restored(text: bytes, cuts: list[int], *, served: str, asked: str) -> bytes:
    restorer = ModelRestorer(served=served, asked=asked)
    places = sorted({min(cut, len(text)) for cut in cuts})
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    return b"".join(restorer.feed(piece, last=number == len(pieces)) for number, piece in enumerate(pieces, 1))


CASES = [
    (b'{"model":"ad0@7","id":1}', b'{"model":"legal","id":1}'),
    (b'{"model" :\n "ad0@7"}{"model":"ad0@7"}', b'{"model" :\n "legal"}{"model":"legal"}'),
    (b'{"model":"ad0@77"}', b'{"model":"ad0@77"}'),
    (b'{"t":"\\"model\\":\\"ad0@7\\""}', b'{"t":"\\"model\\":\\"ad0@7\\""}'),
    (b'"model""model":"model":"ad0@7"', b'"model""model":"model":"legal"'),
    (b'"mod', b'"mod'),
    (b"", b""),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_the_name_returns_at_any_cut(text: bytes, expected: bytes) -> None:
    for cut in range(len(text) + 1):
        assert restored(text, [cut], served="ad0@7", asked="legal") == expected
    assert restored(text, [*range(len(text))], served="ad0@7", asked="legal") == expected


@given(
    st.lists(st.sampled_from(['"model"', ":", " ", '"a"', '"', "x", '"mo', "del", '"a', "\\"]), max_size=20),
    st.lists(st.integers(0, 80), max_size=10),
)
def test_restoring_equals_one_replacement(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts).encode()
    expected = re.sub(rb'("model" {0,16}: {0,16})"a"', rb'\1"bcd"', text)
    assert restored(text, cuts, served="a", asked="bcd") == expected


def test_little_is_held_back() -> None:
    restorer = ModelRestorer(served="ad0@7", asked="legal")
    assert restorer.feed(b'"model"' + b" " * 1000, last=False) == b'"model"' + b" " * 1000
