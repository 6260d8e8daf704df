"""The session as conversations: what it answers itself, and what goes to any pod."""

import pytest
from extproc_talk import ANY, BODY, BUFFERED, DUPLEX, asked, immediate, session, session_decided

from lorapick.model.answers import ModelCard
from lorapick.model.reasons import Reason
from lorapick.testing import extproc as gateway
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.commands import (
    Finish,
    Passed,
    Refused,
    Send,
)
from lorapick.wire.extproc.messages import Destination


class TestRefusals:
    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (b"", "the body is empty"),
            (b"{", "not JSON"),
            (b"[]", "no request"),
            (b'{"prompt":"Hello"}', "no `model`"),
            (b'{"model":7}', "`model` must be a string, not a number"),
            (b'{"model":null}', "`model` must be a string, not null"),
            (b'{"model":""}', "empty string"),
            (b'{"model":"a","prompt":"\xff"}', "not UTF-8"),
        ],
    )
    @pytest.mark.parametrize("modes", [BUFFERED, DUPLEX])
    def test_bad_bodies(self, body: bytes, words: str, modes: tuple[int, int]) -> None:
        talk = session()
        talk.receive(gateway.request_headers(modes=modes))
        commands = talk.receive(gateway.request_body(body))
        status, headers, answer = immediate(commands)
        message = answer["error"]["message"]
        assert words in message
        assert answer == {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}
        assert status == 400
        assert headers == {"content-type": "application/json", "x-lorapick-reason": "body_invalid"}
        assert commands[1:] == [Refused(400, Reason.BODY_INVALID, message), Finish()]
        assert talk.closed() == []

    @pytest.mark.parametrize("modes", [BUFFERED, DUPLEX])
    def test_no_body_where_one_is_due(self, modes: tuple[int, int]) -> None:
        commands = session().receive(gateway.request_headers(last=True, modes=modes))
        status, headers, answer = immediate(commands)
        assert (status, headers["x-lorapick-reason"]) == (400, "body_invalid")
        assert answer["error"]["message"] == "the request has no body; send a JSON object"

    def test_a_body_is_cut_off_while_it_comes(self) -> None:
        talk = session(max_body=100)
        talk.receive(gateway.request_headers(modes=DUPLEX))
        assert talk.receive(gateway.request_body(b"x" * 60, last=False)) == []
        commands = talk.receive(gateway.request_body(b"x" * 60, last=False))
        status, headers, answer = immediate(commands)
        assert (status, headers["x-lorapick-reason"]) == (413, "body_too_large")
        assert "at most 100 are allowed (server.max_body)" in answer["error"]["message"]
        assert commands[-1] == Finish()
        assert talk.receive(gateway.request_body(b"x" * 60)) == []

    def test_a_body_that_says_its_size_is_refused_at_its_headers(self) -> None:
        talk = session(max_body=100)
        commands = talk.receive(gateway.request_headers(headers=[("content-length", "101")], modes=DUPLEX))
        assert immediate(commands)[0] == 413

    @pytest.mark.parametrize("name", ["x-gateway-model-name-rewrite", "x-llm-d-model-name-rewrite"])
    @pytest.mark.parametrize("modes", [BUFFERED, DUPLEX])
    def test_a_rewrite_is_as_long_as_a_model_name_at_the_most(self, name: str, modes: tuple[int, int]) -> None:
        commands = session().receive(gateway.request_headers(headers=[(name, "x" * 513)], modes=modes))
        status, headers, answer = immediate(commands)
        assert (status, headers["x-lorapick-reason"]) == (400, "body_invalid")
        assert "more than 512 characters" in answer["error"]["message"]
        asked(session(), headers=[(name, "x" * 512)])

    def test_a_body_of_the_limit_passes(self) -> None:
        talk = session(max_body=len(BODY))
        asked(talk, headers=[("content-length", str(len(BODY)))])

    def test_what_the_picker_rejects(self) -> None:
        answer = gateway.reject(Reason.QUEUE_FULL, "all pods are full", retry_after=1.2)
        commands = session_decided(answer)
        status, headers, body = immediate(commands)
        assert status == 429
        assert headers == {
            "content-type": "application/json",
            "x-lorapick-reason": "queue_full",
            "retry-after": "2",
            "x-llm-d-request-dropped-reason": "rejected-saturated",
        }
        assert body["error"]["message"] == "all pods are full"
        assert commands[1:] == [Finish()]

    @pytest.mark.parametrize(
        ("reason", "status", "kind", "dropped"),
        [
            (Reason.ADAPTER_UNKNOWN, 404, "NotFoundError", None),
            (Reason.DEADLINE, 503, "ServiceUnavailableError", "rejected-ttl-expired"),
            (Reason.SHED, 429, "RateLimitError", "rejected-saturated"),
        ],
    )
    def test_kinds_of_rejection(self, reason: Reason, status: int, kind: str, dropped: str | None) -> None:
        got, headers, body = immediate(session_decided(gateway.reject(reason)))
        assert (got, headers.get("x-llm-d-request-dropped-reason")) == (status, dropped)
        param = "model" if reason is Reason.ADAPTER_UNKNOWN else None
        assert body == {"error": {"message": "no", "type": kind, "param": param, "code": status}}


class TestWithoutPicker:
    def test_models_are_listed(self) -> None:
        picker = gateway.ScriptedPicker()
        picker.cards = [ModelCard(id="base"), ModelCard(id="ad0", parent="base", root="/a"), ModelCard(id="ad0")]
        talk = session(picker, created=123)
        commands = talk.receive(gateway.request_headers("/v1/models", method="GET", last=True, modes=BUFFERED))
        status, headers, body = immediate(commands)
        assert (status, headers) == (200, {"content-type": "application/json"})
        assert body["object"] == "list"
        assert [(card["id"], card["parent"], card["root"], card["created"]) for card in body["data"]] == [
            ("base", None, "base", 123),
            ("ad0", "base", "/a", 123),
        ]
        assert commands[1:] == [Finish()]

    def test_one_model(self) -> None:
        talk = session()
        commands = talk.receive(gateway.request_headers("/v1/models/ad0", method="GET", last=True))
        assert immediate(commands)[2]["parent"] == "base"

    def test_no_such_model(self) -> None:
        talk = session()
        commands = talk.receive(gateway.request_headers("/v1/models/a%20b/c", method="GET", last=True))
        status, headers, body = immediate(commands)
        assert (status, headers["x-lorapick-reason"]) == (404, "adapter_unknown")
        assert body["error"]["message"] == "The model `a b/c` does not exist. Did you mean ad0?"
        nothing_near = session().receive(gateway.request_headers("/v1/models/x", method="GET", last=True))
        assert immediate(nothing_near)[2]["error"]["message"] == "The model `x` does not exist."

    @pytest.mark.parametrize("modes", [BUFFERED, DUPLEX])
    def test_no_body_goes_to_any_pod_at_its_headers(self, modes: tuple[int, int]) -> None:
        talk = session()
        assert talk.receive(gateway.request_headers("/health", method="GET", last=True, modes=modes)) == [
            Send(messages.routed_headers(Destination(ANY))),
            Passed("no_body"),
        ]
        assert talk.receive(gateway.response_headers(200)) == [
            Send(messages.response_headers(None, length_changes=False))
        ]
        assert talk.closed() == [Finish()]

    def test_no_pod_is_ready(self) -> None:
        picker = gateway.ScriptedPicker()
        picker.endpoint = None
        commands = session(picker).receive(gateway.request_headers("/health", method="GET", last=True))
        status, headers, _ = immediate(commands)
        assert (status, headers["x-lorapick-reason"]) == (503, "no_pod")
        assert headers["x-llm-d-request-dropped-reason"] == "no-endpoints"

    def test_a_gateway_that_allows_no_pod(self) -> None:
        message = gateway.with_subset(gateway.request_headers("/health", method="GET", last=True), [])
        assert immediate(session().receive(message))[0] == 503

    @pytest.mark.parametrize("body", [b"--boundary\r\nform", b'{"file":"x"}', b""])
    def test_other_paths_without_a_model_go_to_any_pod(self, body: bytes) -> None:
        talk = session()
        talk.receive(gateway.request_headers("/v1/audio/transcriptions", modes=DUPLEX))
        assert talk.receive(gateway.request_body(body)) == [
            Send(messages.routed_headers(Destination(ANY))),
            Send(messages.request_chunk(body, last=True)),
            Passed("no_model"),
        ]

    def test_other_paths_with_a_model_are_routed_by_it(self) -> None:
        talk = session()
        talk.receive(gateway.request_headers("/inference/v1/generate", modes=BUFFERED))
        (decide,) = talk.receive(gateway.request_body(BODY))
        assert decide.request.model == "ad0"

    @pytest.mark.parametrize(
        ("modes", "answer"),
        [(BUFFERED, [Send(messages.routed_body(Destination(ANY)))]), (DUPLEX, None)],
    )
    def test_a_picker_that_fails(self, modes: tuple[int, int], answer: list[Send] | None) -> None:
        talk = session()
        asked(talk, modes=modes)
        expected = answer or [
            Send(messages.routed_headers(Destination(ANY))),
            Send(messages.request_chunk(BODY, last=True)),
        ]
        assert talk.undecided() == [*expected, Passed("undecided")]
        assert talk.undecided() == []
        assert talk.closed() == [Finish()]

    def test_a_picker_that_fails_keeps_the_rewrite(self) -> None:
        talk = session()
        asked(talk, headers=[("x-request-id", "r1"), ("x-llm-d-model-name-rewrite", "ad1")])
        body = b'{"model":"ad1","prompt":"Hello"}'
        assert talk.undecided() == [Send(messages.routed_body(Destination(ANY), body=body)), Passed("undecided")]

    def test_body_modes_that_cannot_be_routed_by(self) -> None:
        talk = session()
        modes = (gateway.STREAMED, gateway.NO_BODY)
        assert talk.receive(gateway.request_headers(modes=modes)) == [
            Send(messages.routed_headers(Destination(ANY))),
            Passed("body_mode"),
        ]
        assert talk.receive(gateway.request_body(BODY)) == [Send(messages.REQUEST_BODY_CONTINUE)]
