"""Requests that go on in an engine's own words, and come back under the client's name."""

import json

import msgspec
import pytest

from lorapick.model.pods import Engine, Pod
from lorapick.model.requests import Wording
from lorapick.testing import extproc as gateway
from lorapick.wire.asking import wording
from lorapick.wire.extproc.commands import Send
from lorapick.wire.extproc.session import Session, SessionOptions

POD = "10.0.0.1:8000"


class Nobody:
    """A directory without anything in it."""

    def models(self):
        return []

    def near_names(self, name):
        return []

    def any_endpoint(self):
        return None


def sent_on(engine, *, path="/v1/completions", duplex=False, model="ad", headers=(), **fields):
    """The body that goes to the pod, the headers set on the way, and the session."""
    session = Session(Nobody(), SessionOptions(full_duplex=duplex), now=0.0, identify=lambda given: given or "r1")
    body = msgspec.json.encode({"model": model, "prompt": "hi", **fields})
    length = ("content-length", str(len(body)))
    session.receive(gateway.request_headers(path, [("x-request-id", "r1"), length, *headers]))
    session.receive(gateway.request_body(body))
    pod = Pod(name="p", address=POD, engine=engine)
    answer = msgspec.structs.replace(gateway.dispatch(POD), wording=wording(pod, "ad", source="/w/ad"))
    commands = session.decided(answer)
    messages = [command.message for command in commands if isinstance(command, Send)]
    if duplex:
        text = b"".join(each.request_body.response.body_mutation.streamed_response.body for each in messages[1:])
        common = messages[0].request_headers.response
    else:
        common = messages[0].request_body.response
        text = common.body_mutation.body
    set_headers = {each.header.key: each.header.raw_value.decode() for each in common.header_mutation.set_headers}
    return json.loads(text) if text else None, text, set_headers, session


@pytest.mark.parametrize("duplex", [False, True])
@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (Engine.SGLANG, {"model": "ad", "lora_path": "ad"}),
        (Engine.TRITON, {"model": "base_lora_ad"}),
        (Engine.TRTLLM, {"model": "base"}),
    ],
)
def test_the_body_says_it_and_its_length_is_right(engine, expected, duplex):
    body, text, headers, _ = sent_on(engine, duplex=duplex)
    assert {name: body[name] for name in expected} == expected and body["prompt"] == "hi"
    assert int(headers["content-length"]) == len(text)
    if engine is Engine.TRTLLM:
        assert body["lora_request"]["lora_path"] == "/w/ad"


def test_what_the_client_wrote_into_the_engines_fields_does_not_count():
    body, text, _, _ = sent_on(Engine.SGLANG, lora_path="somebody-elses")
    assert body["lora_path"] == "ad" and text.rindex(b'"lora_path":"ad"') > text.index(b"somebody-elses")


def test_sglang_is_asked_by_the_model_alone_where_it_reads_nothing_else():
    body, _, _, _ = sent_on(Engine.SGLANG, path="/v1/messages")
    assert body["model"] == "base:ad"


@pytest.mark.parametrize(("engine", "answered"), [(Engine.TRTLLM, "base"), (Engine.TRITON, "base_lora_ad")])
def test_answers_name_what_the_client_asked_for(engine, answered):
    *_, session = sent_on(engine)
    session.receive(gateway.response_headers(200, [("content-type", "application/json")]))
    (command,) = [
        each for each in session.receive(gateway.response_body(b'{"model":"%s","x":1}' % answered.encode()))
        if isinstance(each, Send)
    ]  # fmt: skip
    assert command.message.response_body.response.body_mutation.body == b'{"model":"ad","x":1}'


def test_without_words_nothing_is_changed():
    body, *_ = sent_on(Engine.VLLM)
    assert body is None


def test_words_are_plain_values():
    assert Wording(model="m") == Wording(model="m", fields={})
