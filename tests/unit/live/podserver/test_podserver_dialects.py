"""Shapes of answers, whole and streamed, without a server."""

import json

import pytest

from lorapick.live.podserver.answers import Answer, fingerprint
from lorapick.live.podserver.bodies import ChatBody, CompletionBody, Message, MessagesBody, ResponsesBody
from lorapick.live.podserver.dialects import Chat, Completions
from lorapick.live.podserver.more_dialects import Messages, Responses
from lorapick.live.podserver.refusals import internal

HELLO = [Message(content="hello")]
ALL = [Completions(), Chat(), Responses(), Messages()]


def answer(**changes: object) -> Answer:
    values = {
        "id": "id-1",
        "created": 5,
        "model": "ad0",
        "prompt_tokens": 10,
        "cached_tokens": 4,
        "output_tokens": 2,
        "text": " one two",
        "fingerprint": "f",
    }
    return Answer(**(values | changes))


def documents(events: bytes) -> list[object]:
    found = []
    for event in events.decode().split("\n\n"):
        data = [line.removeprefix("data: ") for line in event.split("\n") if line.startswith("data: ")]
        found += [line if line == "[DONE]" else json.loads(line) for line in data]
    return found


def test_a_completion_has_vllm_s_fields_null_included() -> None:
    whole = Completions().whole(answer())
    assert whole["choices"] == [
        {
            "index": 0,
            "text": " one two",
            "logprobs": None,
            "finish_reason": "length",
            "stop_reason": None,
            "token_ids": None,
            "prompt_logprobs": None,
            "prompt_token_ids": None,
        }
    ]
    assert whole["usage"] == {
        "prompt_tokens": 10,
        "total_tokens": 12,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    assert (whole["id"], whole["object"], whole["model"]) == ("id-1", "text_completion", "ad0")


def test_a_streamed_completion_ends_with_usage_and_done() -> None:
    dialect = Completions()
    assert list(dialect.first(answer())) == []
    middle, end = (documents(b"".join(dialect.delta(answer(), " one", reason)))[0] for reason in (None, "length"))
    assert middle["choices"][0]["text"] == " one" and middle["choices"][0]["finish_reason"] is None
    assert "system_fingerprint" not in middle and end["system_fingerprint"] == "f"
    usage, done = documents(b"".join(dialect.last(answer(), include_usage=True)))
    assert usage["choices"] == [] and usage["usage"]["total_tokens"] == 12
    assert done == "[DONE]"
    assert documents(b"".join(dialect.last(answer(), include_usage=False))) == ["[DONE]"]


def test_a_streamed_chat_begins_with_the_role() -> None:
    (first,) = documents(b"".join(Chat().first(answer())))
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    (chunk,) = documents(b"".join(Chat().delta(answer(), " one", "length")))
    assert chunk["object"] == "chat.completion.chunk"
    assert chunk["choices"][0]["delta"] == {"content": " one"}
    assert Chat().whole(answer())["choices"][0]["message"]["content"] == " one two"


def test_limits_come_from_each_api_s_own_field() -> None:
    assert Completions().read(CompletionBody(prompt="x"))[1] == 16
    assert Completions().read(CompletionBody(prompt="x", max_tokens=3))[1] == 3
    assert Chat().read(ChatBody(messages=HELLO))[1] is None
    assert Chat().read(ChatBody(messages=HELLO, max_tokens=3, max_completion_tokens=4))[1] == 4
    assert Responses().read(ResponsesBody(input="x", max_output_tokens=5))[1] == 5
    assert Messages().read(MessagesBody(messages=HELLO, max_tokens=6))[1] == 6


def test_a_system_prompt_is_part_of_the_prompt_in_every_api() -> None:
    system = Message(role="system", content="be kind")
    asked = Chat().read(ChatBody(messages=[system, *HELLO]))[0]
    assert Responses().read(ResponsesBody(input="hello", instructions="be kind"))[0] == asked
    assert Messages().read(MessagesBody(messages=HELLO, max_tokens=1, system="be kind"))[0] == asked


@pytest.mark.parametrize("dialect", ALL)
def test_an_engine_that_gives_up_is_said_in_the_stream(dialect: object) -> None:
    events = documents(b"".join(dialect.broken(internal("no more").body())))
    assert events[0]["error"]["message"] == "no more"


@pytest.mark.parametrize(("reason", "status"), [("stop", "completed"), ("length", "incomplete")])
def test_a_response_says_why_it_ended(reason: str, status: str) -> None:
    assert Responses().whole(answer(finish_reason=reason))["status"] == status
    last = documents(b"".join(Responses().last(answer(finish_reason=reason), include_usage=False)))[-1]
    assert last["type"] == f"response.{status}"
    assert last["response"]["usage"]["total_tokens"] == 12


def test_messages_name_their_stop_reason() -> None:
    assert Messages().whole(answer())["stop_reason"] == "max_tokens"
    assert Messages().whole(answer(finish_reason="stop"))["stop_reason"] == "end_turn"


def test_the_fingerprint_has_four_parts() -> None:
    assert fingerprint("pod-1", "ad0", "disk") == "lorapick/pod-1/ad0/disk"
    assert fingerprint("pod-1", None, None) == "lorapick/pod-1/-/-"
