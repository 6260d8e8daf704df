"""The ext_proc session as conversations: messages in, whole lists of commands out."""

import json

import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest

from lorapick.model.answers import ModelCard, Usage
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.settings import Objective, ServerSettings, Settings
from lorapick.testing import extproc as gateway
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.commands import (
    Decide,
    Dispatched,
    Ended,
    Finish,
    Passed,
    Refused,
    Send,
    Started,
    Withdraw,
)
from lorapick.wire.extproc.session import Session, SessionOptions

POD, SPARE, ANY = "10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.9:8000"
BODY = b'{"model":"ad0","prompt":"Hello"}'
BUFFERED = (gateway.BUFFERED, gateway.NO_BODY)
DUPLEX = (gateway.FULL_DUPLEX, gateway.FULL_DUPLEX)
CONTINUE = [Send(messages.REQUEST_HEADERS_CONTINUE)]


def session(picker: gateway.ScriptedPicker | None = None, **options: object) -> Session:
    """A session that invents the id `made-up`."""
    return Session(
        picker or gateway.ScriptedPicker(),
        SessionOptions(**options),
        now=1000.0,
        identify=lambda given: given or "made-up",
    )


def asked(talk: Session, *, body: bytes = BODY, modes: tuple[int, int] = BUFFERED, **headers: object) -> Decide:
    """Bring a session to the point where it waits for the picker."""
    talk.receive(gateway.request_headers(modes=modes, **headers))
    (decide,) = talk.receive(gateway.request_body(body))
    assert isinstance(decide, Decide)
    return decide


def immediate(commands: list[object]) -> tuple[int, dict[str, str], dict[str, object]]:
    """Status, headers and parsed body of the one immediate response among commands."""
    (answer,) = [c.message.immediate_response for c in commands if isinstance(c, Send)]
    headers = {h.header.key: h.header.raw_value.decode() for h in answer.headers.set_headers}
    return answer.status.code, headers, json.loads(answer.body)


class TestBuffered:
    def test_served(self) -> None:
        talk = session()
        assert talk.receive(gateway.request_headers(modes=BUFFERED)) == CONTINUE
        (decide,) = talk.receive(gateway.request_body(BODY))
        assert (decide.request.id, decide.request.model, decide.request.prompt_bytes) == ("r1", "ad0", 5)
        assert talk.decided(gateway.dispatch(POD, SPARE)) == [Send(messages.routed_body(f"{POD},{SPARE}"))]
        assert talk.receive(gateway.response_headers(200)) == [
            Send(messages.response_headers("pod-8000", length_changes=False)),
            Dispatched("r1", POD),
            Started("r1", 200),
        ]
        assert talk.closed() == [Ended("r1", Outcome.SERVED, 200), Finish()]
        assert talk.closed() == talk.cancelled() == []

    def test_header_and_metadata_carry_the_same_destination(self) -> None:
        (command,) = session_decided(gateway.dispatch(POD, SPARE))
        common = command.message.request_body.response
        (header,) = common.header_mutation.set_headers
        assert (header.header.key, header.header.raw_value) == (
            "x-gateway-destination-endpoint",
            b"10.0.0.1:8000,10.0.0.2:8000",
        )
        assert common.clear_route_cache
        metadata = command.message.dynamic_metadata["envoy.lb"]["x-gateway-destination-endpoint"]
        assert metadata == "10.0.0.1:8000,10.0.0.2:8000"

    def test_another_model_is_spliced_in_and_the_length_corrected(self) -> None:
        talk = session()
        length = ("content-length", str(len(BODY)))
        asked(talk, headers=[("x-request-id", "r1"), length])
        body = b'{"model":"ad0@7","prompt":"Hello"}'
        assert talk.decided(gateway.dispatch(POD, model="ad0@7")) == [
            Send(messages.routed_body(POD, headers=(("content-length", str(len(body))),), body=body))
        ]

    def test_the_same_model_leaves_the_body_alone(self) -> None:
        talk = session()
        asked(talk)
        assert talk.decided(gateway.dispatch(POD, model="ad0")) == [Send(messages.routed_body(POD))]

    def test_a_buffered_body_is_whole_even_when_trailers_follow(self) -> None:
        talk = session()
        talk.receive(gateway.request_headers(modes=BUFFERED))
        (decide,) = talk.receive(gateway.request_body(BODY, last=False))
        assert isinstance(decide, Decide)
        assert talk.decided(gateway.dispatch(POD)) == [Send(messages.routed_body(POD))]
        assert talk.receive(gateway.request_trailers()) == [Send(messages.REQUEST_TRAILERS_CONTINUE)]

    def test_trailers_alone_cannot_be_routed(self) -> None:
        talk = session()
        talk.receive(gateway.request_headers("/v1/audio/transcriptions", modes=BUFFERED))
        assert talk.receive(gateway.request_trailers()) == [
            Send(messages.REQUEST_TRAILERS_CONTINUE),
            Passed("no_model"),
        ]

    def test_an_invented_id_goes_upstream(self) -> None:
        talk = session()
        decide = asked(talk, headers=[])
        assert decide.request.id == "made-up"
        assert talk.decided(gateway.dispatch(POD, request_id="made-up")) == [
            Send(messages.routed_body(POD, headers=(("x-request-id", "made-up"),)))
        ]

    def test_the_id_in_the_pickers_answer_counts(self) -> None:
        talk = session()
        asked(talk)
        talk.decided(gateway.dispatch(POD, request_id="r1~1"))
        assert talk.closed() == [Ended("r1~1", Outcome.ABANDONED), Finish()]


def session_decided(answer: object) -> list[Send]:
    talk = session()
    asked(talk)
    return talk.decided(answer)


class TestFullDuplex:
    def test_nothing_is_said_before_the_decision(self) -> None:
        talk = session()
        assert talk.receive(gateway.request_headers(modes=DUPLEX)) == []
        assert talk.receive(gateway.request_body(BODY[:10], last=False)) == []
        assert talk.receive(gateway.request_body(BODY[10:], last=False)) == []
        (decide,) = talk.receive(gateway.request_body(b""))
        assert decide.request.model == "ad0"
        assert talk.decided(gateway.dispatch(POD)) == [
            Send(messages.routed_headers(POD)),
            Send(messages.request_chunk(BODY, last=True)),
        ]

    def test_the_configured_mode_counts_when_the_gateway_names_none(self) -> None:
        assert session(full_duplex=True).receive(gateway.request_headers()) == []
        assert session(full_duplex=False).receive(gateway.request_headers()) == CONTINUE

    def test_trailers_end_the_body(self) -> None:
        talk = session()
        talk.receive(gateway.request_headers(modes=DUPLEX))
        assert talk.receive(gateway.request_body(BODY, last=False)) == []
        (decide,) = talk.receive(gateway.request_trailers())
        assert isinstance(decide, Decide)
        assert talk.decided(gateway.dispatch(POD)) == [
            Send(messages.routed_headers(POD)),
            Send(messages.request_chunk(BODY, last=False)),
            Send(messages.REQUEST_TRAILERS_CONTINUE),
        ]

    @pytest.mark.parametrize("size", [61_999, 62_000, 62_001, 125_000])
    def test_the_body_goes_on_in_chunks(self, size: int) -> None:
        body = b'{"model":"ad0","prompt":"%s"}' % (b"x" * (size - 27))
        assert len(body) == size
        talk = session()
        asked(talk, body=body, modes=DUPLEX)
        _, *chunks = talk.decided(gateway.dispatch(POD))
        pieces = [c.message.request_body.response.body_mutation.streamed_response for c in chunks]
        assert b"".join(piece.body for piece in pieces) == body
        assert max(len(piece.body) for piece in pieces) <= 62_000
        assert [piece.end_of_stream for piece in pieces] == [False] * (len(pieces) - 1) + [True]

    def test_another_model_is_spliced_in(self) -> None:
        talk = session()
        asked(talk, modes=DUPLEX)
        assert talk.decided(gateway.dispatch(POD, model="ad0@7")) == [
            Send(messages.routed_headers(POD)),
            Send(messages.request_chunk(b'{"model":"ad0@7","prompt":"Hello"}', last=True)),
        ]


class TestRequestFields:
    def test_all_of_them(self) -> None:
        headers = [
            ("x-request-id", "r7"),
            ("x-llm-d-inference-fairness-id", "tenant-a"),
            ("x-llm-d-inference-objective", "critical"),
            ("x-session-token", "s1"),
            ("x-request-deadline-ms", "2500"),
            ("traceparent", "00-aa-bb-01"),
        ]
        body = b'{"model":"ad0","messages":[{"role":"user","content":"Hi"}],"stream":true,"max_tokens":9}'
        settings = Settings(objectives=(Objective(name="critical", priority=2),))
        talk = Session(
            gateway.ScriptedPicker(), SessionOptions.of(settings), now=1000.0, identify=lambda given: given or ""
        )
        talk.receive(gateway.request_headers("/v1/chat/completions?x=1", headers, modes=BUFFERED))
        message = gateway.with_subset(gateway.request_body(body), ["10.0.0.1:8000", 3, "10.0.0.1:8001", "10.0.0.2"])
        (decide,) = talk.receive(message)
        request = decide.request
        assert (request.id, request.model, request.stream, request.max_tokens) == ("r7", "ad0", True, 9)
        assert (request.fairness_id, request.priority, request.session) == ("tenant-a", 2, "s1")
        assert (request.deadline, request.traceparent) == (1002.5, "00-aa-bb-01")
        assert request.subset == ("10.0.0.1", "10.0.0.2")
        assert (request.prompt_bytes, request.prompt_tokens) == (len("userHi"), None)

    def test_the_older_names(self) -> None:
        headers = [
            ("x-gateway-inference-fairness-id", "tenant-b"),
            ("x-gateway-inference-objective", "nobody-knows"),
            ("x-gateway-model-name-rewrite", "ad1"),
            ("x-session-id", "s2"),
        ]
        talk = session()
        request = asked(talk, headers=headers).request
        assert (request.fairness_id, request.priority, request.session) == ("tenant-b", 0, "s2")
        assert request.model == "ad1"

    def test_a_rewrite_header_reaches_the_pod(self) -> None:
        talk = session()
        asked(talk, headers=[("x-request-id", "r1"), ("x-llm-d-model-name-rewrite", "ad1")])
        body = b'{"model":"ad1","prompt":"Hello"}'
        assert talk.decided(gateway.dispatch(POD)) == [Send(messages.routed_body(POD, body=body))]

    def test_the_user_is_the_session_when_no_header_is(self) -> None:
        body = b'{"model":"ad0","prompt":"Hello","user":"u1"}'
        assert asked(session(), body=body).request.session == "u1"

    @pytest.mark.parametrize(("text", "deadline"), [("0", 1000.0), ("-5", 1000.0), ("x", None), ("inf", None)])
    def test_odd_deadlines(self, text: str, deadline: float | None) -> None:
        headers = [("x-request-deadline-ms", text)]
        assert asked(session(), headers=headers).request.deadline == deadline

    def test_the_subset_hint_counts_as_of_the_end_of_the_body(self) -> None:
        talk = session()
        talk.receive(gateway.with_subset(gateway.request_headers(modes=DUPLEX), ["10.0.0.1:8000"]))
        (decide,) = talk.receive(gateway.with_subset(gateway.request_body(BODY), ["10.0.0.2:8000"]))
        assert decide.request.subset == ("10.0.0.2",)

    def test_no_hint_is_all_and_an_empty_hint_none(self) -> None:
        assert asked(session()).request.subset is None
        talk = session()
        talk.receive(gateway.request_headers(modes=BUFFERED))
        (decide,) = talk.receive(gateway.with_subset(gateway.request_body(BODY), []))
        assert decide.request.subset == ()

    def test_routing_headers_of_clients_are_removed(self) -> None:
        names = [
            "x-prefiller-host-port",
            "x-encoder-hosts-ports",
            "x-data-parallel-host-port",
            "x-gateway-destination-endpoint-subset",
            "x-gateway-destination-endpoint-served",
            "x-lorapick-anything",
        ]
        headers = [("x-request-id", "r1"), ("x-gateway-destination-endpoint", "6.6.6.6:1"), ("x-fine", "1")]
        for modes in (BUFFERED, DUPLEX):
            talk = session()
            asked(talk, headers=[*headers, *((name, "6.6.6.6:1") for name in names)], modes=modes)
            first, *_ = talk.decided(gateway.dispatch(POD))
            part = first.message.request_headers if modes == DUPLEX else first.message.request_body
            mutation = part.response.header_mutation
            assert [*mutation.remove_headers] == names
            assert [(h.header.key, h.header.raw_value) for h in mutation.set_headers] == [
                ("x-gateway-destination-endpoint", POD.encode())
            ]


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
        ("reason", "status", "kind", "param"),
        [
            (Reason.ADAPTER_UNKNOWN, 404, "NotFoundError", "model"),
            (Reason.DEADLINE, 503, "ServiceUnavailableError", None),
            (Reason.SHED, 429, "RateLimitError", None),
        ],
    )
    def test_kinds_of_rejection(self, reason: Reason, status: int, kind: str, param: str | None) -> None:
        got, _, body = immediate(session_decided(gateway.reject(reason)))
        assert got == status
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
        assert body["error"]["message"] == "The model `a b/c` does not exist."

    @pytest.mark.parametrize("modes", [BUFFERED, DUPLEX])
    def test_no_body_goes_to_any_pod_at_its_headers(self, modes: tuple[int, int]) -> None:
        talk = session()
        assert talk.receive(gateway.request_headers("/health", method="GET", last=True, modes=modes)) == [
            Send(messages.routed_headers(ANY)),
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
            Send(messages.routed_headers(ANY)),
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
        [(BUFFERED, [Send(messages.routed_body(ANY))]), (DUPLEX, None)],
    )
    def test_a_picker_that_fails(self, modes: tuple[int, int], answer: list[Send] | None) -> None:
        talk = session()
        asked(talk, modes=modes)
        expected = answer or [Send(messages.routed_headers(ANY)), Send(messages.request_chunk(BODY, last=True))]
        assert talk.undecided() == [*expected, Passed("undecided")]
        assert talk.undecided() == []
        assert talk.closed() == [Finish()]

    def test_a_picker_that_fails_keeps_the_rewrite(self) -> None:
        talk = session()
        asked(talk, headers=[("x-request-id", "r1"), ("x-llm-d-model-name-rewrite", "ad1")])
        body = b'{"model":"ad1","prompt":"Hello"}'
        assert talk.undecided() == [Send(messages.routed_body(ANY, body=body)), Passed("undecided")]

    def test_body_modes_that_cannot_be_routed_by(self) -> None:
        talk = session()
        modes = (gateway.STREAMED, gateway.NO_BODY)
        assert talk.receive(gateway.request_headers(modes=modes)) == [
            Send(messages.routed_headers(ANY)),
            Passed("body_mode"),
        ]
        assert talk.receive(gateway.request_body(BODY)) == [Send(messages.REQUEST_BODY_CONTINUE)]


class TestEnds:
    def running(self, modes: tuple[int, int] = BUFFERED, model: str | None = None) -> Session:
        talk = session()
        asked(talk, modes=modes)
        talk.decided(gateway.dispatch(POD, SPARE, model=model))
        return talk

    def test_no_response_is_abandoned(self) -> None:
        assert self.running().closed() == [Ended("r1", Outcome.ABANDONED), Finish()]
        assert self.running().cancelled() == [Ended("r1", Outcome.ABANDONED)]

    @pytest.mark.parametrize("status", [400, 404, 500, 503])
    def test_an_error_status_is_failed(self, status: int) -> None:
        talk = self.running()
        assert talk.receive(gateway.response_headers(status))[-1] == Started("r1", status)
        assert talk.closed() == [Ended("r1", Outcome.FAILED, status), Finish()]

    def test_leaving_after_the_answer_began_is_served(self) -> None:
        talk = self.running()
        talk.receive(gateway.response_headers(200))
        assert talk.cancelled() == [Ended("r1", Outcome.SERVED, 200)]

    def test_headers_may_be_all_of_a_response(self) -> None:
        talk = self.running()
        assert talk.receive(gateway.response_headers(204, last=True))[-1] == Ended("r1", Outcome.SERVED, 204)
        assert talk.closed() == [Finish()]

    @pytest.mark.parametrize("attribute", [True, False])
    def test_a_fallback_that_served_is_told(self, attribute: bool) -> None:
        message = gateway.with_served(gateway.response_headers(200), SPARE, attribute=attribute)
        assert self.running().receive(message) == [
            Send(messages.response_headers("pod-8000", length_changes=False)),
            Dispatched("r1", SPARE),
            Started("r1", 200),
        ]

    def test_leaving_while_the_picker_decides(self) -> None:
        talk = session()
        asked(talk)
        assert talk.closed() == [Withdraw("r1"), Finish()]
        assert talk.decided(gateway.reject(Reason.QUEUE_FULL)) == []

    def test_a_decision_that_comes_after_the_client_left(self) -> None:
        talk = session()
        asked(talk)
        talk.cancelled()
        assert talk.decided(gateway.dispatch(POD)) == [Ended("r1", Outcome.ABANDONED)]
        assert talk.decided(gateway.dispatch(POD)) == []

    def test_the_gateway_answers_while_the_picker_decides(self) -> None:
        talk = session()
        asked(talk)
        assert talk.receive(gateway.response_headers(504)) == [
            Withdraw("r1"),
            Send(messages.response_headers(None, length_changes=False)),
        ]
        assert talk.decided(gateway.dispatch(POD)) == [Ended("r1", Outcome.FAILED, 504)]
        assert talk.closed() == [Finish()]

    def test_the_gateway_answers_before_the_body_is_whole(self) -> None:
        talk = session()
        talk.receive(gateway.request_headers(modes=DUPLEX))
        assert talk.receive(gateway.response_headers(408)) == [
            Send(messages.response_headers(None, length_changes=False))
        ]
        assert talk.closed() == [Finish()]


class TestResponseBodies:
    def answered(self, modes: tuple[int, int], content_type: str, model: str | None = None) -> Session:
        talk = session()
        asked(talk, modes=modes)
        talk.decided(gateway.dispatch(POD, model=model))
        talk.receive(gateway.response_headers(200, [("content-type", content_type)]))
        return talk

    def test_usage_of_a_json_answer(self) -> None:
        talk = self.answered(DUPLEX, "application/json")
        body = b'{"usage":{"prompt_tokens":7,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":3}}}'
        assert talk.receive(gateway.response_body(body[:20])) == [Send(messages.response_chunk(body[:20], last=False))]
        assert talk.receive(gateway.response_body(body[20:], last=True)) == [
            Send(messages.response_chunk(body[20:], last=True)),
            Ended("r1", Outcome.SERVED, 200, Usage(prompt_tokens=7, cached_tokens=3, output_tokens=10)),
        ]
        assert talk.closed() == [Finish()]

    def test_usage_of_an_event_stream(self) -> None:
        talk = self.answered(DUPLEX, "text/event-stream; charset=utf-8")
        stream = b'data: {}\n\ndata: {"usage":{"prompt_tokens":7,"completion_tokens":10}}\n\ndata: [DONE]\n\n'
        for at in range(len(stream)):
            piece = stream[at : at + 1]
            assert talk.receive(gateway.response_body(piece)) == [Send(messages.response_chunk(piece, last=False))]
        assert talk.receive(gateway.response_body(b"", last=True)) == [
            Send(messages.response_chunk(b"", last=True)),
            Ended("r1", Outcome.SERVED, 200, Usage(prompt_tokens=7, output_tokens=10)),
        ]

    def test_a_body_that_is_no_json_passes_byte_for_byte(self) -> None:
        talk = self.answered(DUPLEX, "application/json")
        assert talk.receive(gateway.response_body(b"no healthy upstream", last=True)) == [
            Send(messages.response_chunk(b"no healthy upstream", last=True)),
            Ended("r1", Outcome.SERVED, 200),
        ]

    def test_the_clients_name_of_the_model_returns(self) -> None:
        talk = self.answered(DUPLEX, "text/event-stream", model="ad0@7")
        assert talk.receive(gateway.response_body(b'data: {"model": "ad')) == [
            Send(messages.response_chunk(b"data: {", last=False))
        ]
        assert talk.receive(gateway.response_body(b'0@7"}\n\n')) == [
            Send(messages.response_chunk(b'"model": "ad0"}\n\n', last=False))
        ]
        assert talk.receive(gateway.response_trailers()) == [
            Send(messages.RESPONSE_TRAILERS_CONTINUE),
            Ended("r1", Outcome.SERVED, 200),
        ]

    def test_a_renamed_response_loses_its_length(self) -> None:
        talk = session()
        asked(talk, modes=DUPLEX)
        talk.decided(gateway.dispatch(POD, model="ad0@7"))
        headers = [("content-type", "application/json"), ("content-length", "20")]
        first, *_ = talk.receive(gateway.response_headers(200, headers))
        assert first == Send(messages.response_headers("pod-8000", length_changes=True))

    def test_compressed_bodies_are_left_alone(self) -> None:
        talk = session()
        asked(talk, modes=DUPLEX)
        talk.decided(gateway.dispatch(POD, model="ad0@7"))
        headers = [("content-type", "application/json"), ("content-encoding", "gzip")]
        first, *_ = talk.receive(gateway.response_headers(200, headers))
        assert first == Send(messages.response_headers("pod-8000", length_changes=False))
        body = b'{"model":"ad0@7"}'
        assert talk.receive(gateway.response_body(body, last=True))[0] == Send(messages.response_chunk(body, last=True))

    def test_streamed_bodies_get_one_answer_each(self) -> None:
        modes = (gateway.BUFFERED, gateway.STREAMED)
        talk = self.answered(modes, "text/event-stream", model="ad0@7")
        assert talk.receive(gateway.response_body(b"data: 1\n\n")) == [Send(messages.RESPONSE_BODY_CONTINUE)]
        assert talk.receive(gateway.response_body(b'"model":"ad0@')) == [Send(messages.replaced_response_body(b""))]
        assert talk.receive(gateway.response_body(b'7"', last=True))[0] == Send(
            messages.replaced_response_body(b'"model":"ad0"')
        )

    def test_bodies_without_headers(self) -> None:
        talk = session()
        asked(talk, modes=DUPLEX)
        talk.decided(gateway.dispatch(POD))
        assert talk.receive(gateway.response_body(b"x", last=True)) == [
            Send(messages.response_chunk(b"x", last=True)),
            Ended("r1", Outcome.SERVED),
        ]


class TestBrokenGateways:
    @pytest.mark.parametrize(
        ("message", "error"),
        [
            (gateway.request_body(BODY), "request_body before the request headers"),
            (gateway.request_trailers(), "request_trailers before the request headers"),
            (ProcessingRequest(), "a message of a kind that this picker does not know"),
        ],
    )
    def test_wrong_beginnings(self, message: ProcessingRequest, error: str) -> None:
        talk = session()
        assert talk.receive(message) == [Finish(error)]
        assert talk.receive(message) == []

    def test_headers_twice(self) -> None:
        talk = session()
        talk.receive(gateway.request_headers(modes=BUFFERED))
        assert talk.receive(gateway.request_headers()) == [Finish("request_headers within the request body")]

    def test_more_body_while_the_picker_decides(self) -> None:
        talk = session()
        asked(talk)
        assert talk.receive(gateway.request_body(b"x")) == [
            Withdraw("r1"),
            Finish("request_body while the picker decides"),
        ]

    def test_more_body_after_dispatch(self) -> None:
        talk = session()
        asked(talk)
        talk.decided(gateway.dispatch(POD))
        assert talk.receive(gateway.request_body(b"x")) == [
            Ended("r1", Outcome.FAILED),
            Finish("request_body after the request was sent on"),
        ]

    def test_response_headers_twice(self) -> None:
        talk = session()
        asked(talk)
        talk.decided(gateway.dispatch(POD))
        talk.receive(gateway.response_headers(200))
        assert talk.receive(gateway.response_headers(200)) == [
            Ended("r1", Outcome.SERVED, 200),
            Finish("response_headers after the request was sent on"),
        ]

    def test_trailers_twice(self) -> None:
        talk = session()
        talk.receive(gateway.request_headers(modes=BUFFERED))
        talk.receive(gateway.request_body(BODY, last=False))
        assert talk.receive(gateway.request_trailers()) == []
        assert talk.receive(gateway.request_trailers())[-1] == Finish("request_trailers while the picker decides")


def test_options_come_from_the_settings() -> None:
    settings = Settings(
        server=ServerSettings(body="full_duplex_streamed", max_body=5),
        objectives=(Objective(name="batch", priority=-1),),
    )
    assert SessionOptions.of(settings, created=4) == SessionOptions(
        full_duplex=True, max_body=5, priorities={"batch": -1}, created=4
    )
