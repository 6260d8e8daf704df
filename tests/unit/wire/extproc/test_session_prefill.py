"""Requests that one pod prefills and another decodes, as conversations: what goes upstream, what is told, and who may
say where."""

import pytest
from extproc_talk import BUFFERED, DUPLEX, POD, SPARE, asked, session

from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.settings import Settings
from lorapick.testing import extproc as gateway
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.commands import Dispatched, Ended, Finish, Prefilled, Send, Started
from lorapick.wire.extproc.messages import Destination
from lorapick.wire.extproc.request import SessionOptions
from lorapick.wire.extproc.session import Session

PREFILLS = "10.0.0.3:8000"
ID = ("x-request-id", "r1")
FORGED = [("x-prefiller-host-port", "169.254.169.254:80"), ("x-encoder-hosts-ports", "169.254.169.254:80")]


def split(modes: tuple[int, int] = BUFFERED, headers: object = (ID,)) -> tuple[Session, list[object]]:
    """A session whose request was split, and what it sent."""
    talk = session()
    asked(talk, modes=modes, headers=headers)
    return talk, talk.decided(gateway.dispatch(POD, SPARE, prefill=PREFILLS))


@pytest.mark.parametrize("modes", [BUFFERED, DUPLEX])
def test_header_and_metadata_name_the_pod_that_prefills(modes: tuple[int, int]) -> None:
    _, (first, *_) = split(modes)
    kind = "request_body" if modes == BUFFERED else "request_headers"
    mutation = getattr(first.message, kind).response.header_mutation
    said = {each.header.key: each.header.raw_value.decode() for each in mutation.set_headers}
    assert said == {"x-gateway-destination-endpoint": f"{POD},{SPARE}", "x-prefiller-host-port": PREFILLS}
    assert dict(first.message.dynamic_metadata["envoy.lb"]) == said


def test_a_request_that_is_not_split_names_nobody() -> None:
    assert Destination(POD).headers() == (("x-gateway-destination-endpoint", POD),)


def test_what_clients_say_is_removed_though_the_picker_says_the_same() -> None:
    _, (sent,) = split(headers=(ID, *FORGED))
    mutation = sent.message.request_body.response.header_mutation
    assert sorted(mutation.remove_headers) == ["x-encoder-hosts-ports", "x-prefiller-host-port"]
    assert [each.header.raw_value for each in mutation.set_headers] == [f"{POD},{SPARE}".encode(), PREFILLS.encode()]


@pytest.mark.parametrize("answer", [gateway.dispatch(POD), None])
def test_it_is_removed_from_requests_that_are_not_split(answer: object) -> None:
    talk = session()
    asked(talk, headers=(ID, *FORGED))
    (sent, *_) = talk.undecided() if answer is None else talk.decided(answer)
    mutation = sent.message.request_body.response.header_mutation
    assert sorted(mutation.remove_headers) == ["x-encoder-hosts-ports", "x-prefiller-host-port"]


def test_encoders_pass_where_the_configuration_lets_them() -> None:
    settings = Settings(disaggregation=DisaggregationSettings(pass_encoders=True))
    assert SessionOptions.of(settings).pass_encoders
    talk = session(pass_encoders=True)
    asked(talk, headers=(ID, *FORGED))
    (sent,) = talk.decided(gateway.dispatch(POD))
    assert list(sent.message.request_body.response.header_mutation.remove_headers) == ["x-prefiller-host-port"]


@pytest.mark.parametrize(
    ("headers", "prefiller", "told"),
    [
        ([("x-lorapick-prefiller", PREFILLS)], "prefills", [Prefilled("r1", ok=True)]),
        ([("x-lorapick-local-prefill", "timeout")], None, [Prefilled("r1", ok=False, why="timeout")]),
        (
            [("x-lorapick-prefiller", PREFILLS), ("x-lorapick-local-prefill", "x\ty" * 100)],
            None,
            [Prefilled("r1", ok=False, why=("x?y" * 100)[:64])],
        ),
        ([("x-lorapick-local-prefill", "")], None, [Prefilled("r1", ok=False)]),
        ([("content-type", "application/json")], None, []),
    ],
)
@pytest.mark.parametrize("modes", [BUFFERED, DUPLEX])
def test_the_answer_says_how_the_prefill_went(
    modes: tuple[int, int], headers: list[tuple[str, str]], prefiller: str | None, told: list[object]
) -> None:
    talk, _ = split(modes)
    assert talk.receive(gateway.response_headers(200, headers)) == [
        Send(messages.response_headers("pod-8000", length_changes=False, prefiller=prefiller)),
        Dispatched("r1", POD),
        *told,
        Started("r1", 200),
    ]
    assert isinstance(talk.closed()[0], Ended)


def test_clients_learn_the_name_and_not_the_address() -> None:
    mutation = messages.response_headers("b", length_changes=False, prefiller="a").response_headers.response
    said = {each.header.key: each.header.raw_value for each in mutation.header_mutation.set_headers}
    assert said == {"x-went-into-resp-headers": b"true", "x-lorapick-pod": b"b", "x-lorapick-prefiller": b"a"}


def test_answers_to_whole_requests_are_not_searched_for_it() -> None:
    talk = session()
    asked(talk)
    talk.decided(gateway.dispatch(POD))
    assert talk.receive(gateway.response_headers(200, [("x-lorapick-prefiller", PREFILLS)])) == [
        Send(messages.response_headers("pod-8000", length_changes=False)),
        Dispatched("r1", POD),
        Started("r1", 200),
    ]
    assert talk.closed()[-1] == Finish()
