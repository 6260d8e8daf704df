"""The session as conversations: the response's way back, the ends, and gateways that break the protocol."""

import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest
from extproc_talk import BODY, BUFFERED, DUPLEX, POD, SPARE, asked, session

from lorapick.model.answers import Usage
from lorapick.model.profiles import HttpNames
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.testing import extproc as gateway
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.commands import (
    BodyStarted,
    Dispatched,
    Ended,
    Finish,
    Send,
    Started,
    Withdraw,
)
from lorapick.wire.extproc.session import Session


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
        assert talk.receive(gateway.response_body(body[:20])) == [
            Send(messages.response_chunk(body[:20], last=False)),
            BodyStarted("r1"),
        ]
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
            first = [BodyStarted("r1")] if at == 0 else []
            sent = Send(messages.response_chunk(piece, last=False))
            assert talk.receive(gateway.response_body(piece)) == [sent, *first]
        assert talk.receive(gateway.response_body(b"", last=True)) == [
            Send(messages.response_chunk(b"", last=True)),
            Ended("r1", Outcome.SERVED, 200, Usage(prompt_tokens=7, output_tokens=10)),
        ]

    def test_a_body_that_is_no_json_passes_byte_for_byte(self) -> None:
        talk = self.answered(DUPLEX, "application/json")
        assert talk.receive(gateway.response_body(b"no healthy upstream", last=True)) == [
            Send(messages.response_chunk(b"no healthy upstream", last=True)),
            BodyStarted("r1"),
            Ended("r1", Outcome.SERVED, 200),
        ]

    def test_the_clients_name_of_the_model_returns(self) -> None:
        talk = self.answered(DUPLEX, "text/event-stream", model="ad0@7")
        assert talk.receive(gateway.response_body(b'data: {"model": "ad')) == [
            Send(messages.response_chunk(b"data: {", last=False)),
            BodyStarted("r1"),
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
        assert talk.receive(gateway.response_body(b"data: 1\n\n")) == [
            Send(messages.RESPONSE_BODY_CONTINUE),
            BodyStarted("r1"),
        ]
        assert talk.receive(gateway.response_body(b'"model":"ad0@')) == [Send(messages.replaced_response_body(b""))]
        assert talk.receive(gateway.response_body(b'7"', last=True))[0] == Send(
            messages.replaced_response_body(b'"model":"ad0"')
        )

    @pytest.mark.parametrize("status", [404, 503])
    def test_an_errors_body_begins_no_answer(self, status: int) -> None:
        talk = session()
        asked(talk, modes=DUPLEX)
        talk.decided(gateway.dispatch(POD))
        talk.receive(gateway.response_headers(status))
        assert talk.receive(gateway.response_body(b"no", last=True)) == [
            Send(messages.response_chunk(b"no", last=True)),
            Ended("r1", Outcome.FAILED, status),
        ]

    def test_an_empty_first_piece_begins_no_answer(self) -> None:
        talk = self.answered(DUPLEX, "text/event-stream")
        assert talk.receive(gateway.response_body(b"")) == []
        assert talk.receive(gateway.response_body(b"data: 1\n\n"))[-1] == BodyStarted("r1")
        assert talk.receive(gateway.response_body(b"data: 2\n\n"))[1:] == []

    def test_answers_to_requests_that_were_passed_on_are_nobodys(self) -> None:
        talk = session()
        asked(talk, modes=DUPLEX)
        talk.undecided()
        talk.receive(gateway.response_headers(200))
        assert BodyStarted("r1") not in talk.receive(gateway.response_body(b"x", last=True))

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


class TestWhatProfilesTell:
    def headers(self, talk: Session) -> dict[str, bytes]:
        send, *_ = talk.receive(gateway.response_headers(200))
        mutation = send.message.response_headers.response.header_mutation
        return {each.header.key: each.header.raw_value for each in mutation.set_headers}

    def test_the_client_gets_a_token_of_the_pod_that_served(self) -> None:
        talk = session(names=HttpNames(token="x-session-token"), namespace="models")
        asked(talk)
        talk.decided(gateway.dispatch(POD, SPARE, pods=["a-rank-0", "b-rank-0"]))
        assert self.headers(talk)["x-session-token"] == b"bW9kZWxzL2EtcmFuay0w"

    def test_and_sends_it_with_the_next_request(self) -> None:
        talk = session(names=HttpNames(token="x-session-token"))
        decide = asked(talk, headers=[("x-session-token", "bW9kZWxzL2EtcmFuay0w")])
        assert (decide.request.session_pod, decide.request.session) == ("a-rank-0", None)

    def test_nothing_is_told_that_nobody_asked_for(self) -> None:
        talk = session()
        decide = asked(talk, headers=[("x-session-token", "bW9kZWxzL2EtcmFuay0w")])
        assert (decide.request.session_pod, decide.request.headers) == (None, {})
        talk.decided(gateway.dispatch(POD))
        assert {*self.headers(talk)} == {"x-went-into-resp-headers", "x-lorapick-pod"}

    def test_conformance_tests_hear_which_address_served(self) -> None:
        talk = session(names=HttpNames(served="x-conformance-test-served-endpoint"))
        asked(talk)
        talk.decided(gateway.dispatch(POD, SPARE))
        assert self.headers(talk)["x-conformance-test-served-endpoint"] == POD.encode()

    def test_headers_for_profiles_come_with_the_request(self) -> None:
        talk = session(names=HttpNames(keep=("x-tenant",)))
        assert asked(talk, headers=[("x-tenant", "t"), ("x-more", "m")]).request.headers == {"x-tenant": "t"}


class TestRanksBehindASidecar:
    @pytest.mark.parametrize("modes", [BUFFERED, DUPLEX])
    def test_the_pod_is_called_at_one_port_and_told_the_rank(self, modes: tuple[int, int]) -> None:
        talk = session(names=HttpNames(primary_port=8000))
        asked(talk, modes=modes)
        first, *_ = talk.decided(gateway.dispatch("10.0.0.1:8003", SPARE))
        kind = "request_body" if modes == BUFFERED else "request_headers"
        mutation = getattr(first.message, kind).response.header_mutation
        headers = {each.header.key: each.header.raw_value for each in mutation.set_headers}
        assert headers == {
            "x-gateway-destination-endpoint": b"10.0.0.1:8000",
            "x-data-parallel-host-port": b"10.0.0.1:8003",
        }

    def test_the_rank_counts_as_who_served(self) -> None:
        talk = session(names=HttpNames(primary_port=8000))
        asked(talk)
        talk.decided(gateway.dispatch("10.0.0.1:8003", pods=["a-rank-3"]))
        commands = talk.receive(gateway.with_served(gateway.response_headers(200), "10.0.0.1:8000"))
        assert commands[1] == Dispatched("r1", "10.0.0.1:8003")
