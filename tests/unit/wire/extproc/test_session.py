"""The ext_proc session as conversations: messages in, whole lists of commands out. The request's way in."""

import pytest
from extproc_talk import BODY, BUFFERED, CONTINUE, DUPLEX, POD, SPARE, asked, session, session_decided

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
    Send,
    Started,
)
from lorapick.wire.extproc.messages import Destination
from lorapick.wire.extproc.session import Session, SessionOptions


class TestBuffered:
    def test_served(self) -> None:
        talk = session()
        assert talk.receive(gateway.request_headers(modes=BUFFERED)) == CONTINUE
        (decide,) = talk.receive(gateway.request_body(BODY))
        assert (decide.request.id, decide.request.model, decide.request.prompt_bytes) == ("r1", "ad0", 5)
        assert talk.decided(gateway.dispatch(POD, SPARE)) == [Send(messages.routed_body(Destination(f"{POD},{SPARE}")))]
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
            Send(messages.routed_body(Destination(POD), headers=(("content-length", str(len(body))),), body=body))
        ]

    @pytest.mark.parametrize("modes", [BUFFERED, DUPLEX])
    def test_a_traced_request_goes_on_with_the_pickers_span(self, modes: tuple[int, int]) -> None:
        talk = session()
        asked(talk, modes=modes, headers=[("x-request-id", "r1"), ("traceparent", "00-aa-bb-01")])
        first, *_ = talk.decided(gateway.dispatch(POD), traceparent="00-cc-dd-01")
        kind = "request_body" if modes == BUFFERED else "request_headers"
        mutation = getattr(first.message, kind).response.header_mutation
        headers = {each.header.key: each.header.raw_value for each in mutation.set_headers}
        assert headers == {"x-gateway-destination-endpoint": POD.encode(), "traceparent": b"00-cc-dd-01"}

    def test_the_same_model_leaves_the_body_alone(self) -> None:
        talk = session()
        asked(talk)
        assert talk.decided(gateway.dispatch(POD, model="ad0")) == [Send(messages.routed_body(Destination(POD)))]

    def test_a_buffered_body_is_whole_even_when_trailers_follow(self) -> None:
        talk = session()
        talk.receive(gateway.request_headers(modes=BUFFERED))
        (decide,) = talk.receive(gateway.request_body(BODY, last=False))
        assert isinstance(decide, Decide)
        assert talk.decided(gateway.dispatch(POD)) == [Send(messages.routed_body(Destination(POD)))]
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
            Send(messages.routed_body(Destination(POD), headers=(("x-request-id", "made-up"),)))
        ]

    def test_the_id_in_the_pickers_answer_counts(self) -> None:
        talk = session()
        asked(talk)
        talk.decided(gateway.dispatch(POD, request_id="r1~1"))
        assert talk.closed() == [Ended("r1~1", Outcome.ABANDONED), Finish()]


class TestFullDuplex:
    def test_nothing_is_said_before_the_decision(self) -> None:
        talk = session()
        assert talk.receive(gateway.request_headers(modes=DUPLEX)) == []
        assert talk.receive(gateway.request_body(BODY[:10], last=False)) == []
        assert talk.receive(gateway.request_body(BODY[10:], last=False)) == []
        (decide,) = talk.receive(gateway.request_body(b""))
        assert decide.request.model == "ad0"
        assert talk.decided(gateway.dispatch(POD)) == [
            Send(messages.routed_headers(Destination(POD))),
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
            Send(messages.routed_headers(Destination(POD))),
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
            Send(messages.routed_headers(Destination(POD))),
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
        assert talk.decided(gateway.dispatch(POD)) == [Send(messages.routed_body(Destination(POD), body=body))]

    def test_headers_that_mean_nothing_here_are_left_to_the_pod(self) -> None:
        talk = session()
        headers = [("x-request-id", "r1"), ("prefer", "if-available"), ("x-slo-ttft-ms", "200")]
        asked(talk, headers=headers)
        (sent,) = talk.decided(gateway.dispatch(POD))
        changed = sent.message.request_body.response.header_mutation
        names = {each.header.key for each in changed.set_headers} | {*changed.remove_headers}
        assert not names & {"prefer", "x-slo-ttft-ms"}

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


def test_options_come_from_the_settings() -> None:
    settings = Settings(
        server=ServerSettings(body="full_duplex_streamed", max_body=5),
        objectives=(Objective(name="batch", priority=-1),),
    )
    assert SessionOptions.of(settings, created=4) == SessionOptions(
        full_duplex=True, max_body=5, priorities={"batch": -1}, created=4
    )
