"""What the gateway is told of an answer when it ends."""

import pytest
from extproc_talk import DUPLEX, POD, asked, session
from google.protobuf.json_format import MessageToDict

from lorapick.model.answers import Usage
from lorapick.model.profiles import AttributeReport, HttpNames
from lorapick.testing import extproc as gateway
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.commands import Send
from lorapick.wire.extproc.reporting import counts_of, reporter

ALL = "usage.prompt_tokens + usage.completion_tokens"
COST = AttributeReport(name="x-cost", expression=ALL)
STREAMED = (gateway.BUFFERED, gateway.STREAMED)
ANSWER = b'{"model":"ad0","usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}'


def told(*reports, usage=None):
    found = reporter(tuple(reports)).metadata(usage)
    return None if found is None else MessageToDict(found)


COUNTED = Usage(prompt_tokens=7, output_tokens=5, cached_tokens=2)


@pytest.mark.parametrize(
    ("expression", "condition", "expected"),
    [
        (ALL, "", 12),
        ("usage.total_tokens", "", 12),
        ("usage.prompt_tokens - usage.prompt_tokens_details.cached_tokens", "", 5),
        ("usage.prompt_tokens / 2.0", "", 3),
        ("-1.9", "", -1),
        (ALL, "has(usage.completion_tokens)", 12),
        (ALL, "usage.prompt_tokens > 7.0", None),
        (ALL, "1", None),
        (ALL, "usage.unknown > 0", None),
        ("usage.unknown", "", None),
        ("true", "", None),
        ("'7'", "", None),
        ("1.0 / 0.0", "", None),
    ],
)
def test_a_figure_is_a_whole_number_where_there_is_one(expression, condition, expected):
    report = AttributeReport(name="x-cost", expression=expression, condition=condition)
    assert told(report, usage=COUNTED) == (None if expected is None else {"envoy.lb": {"x-cost": expected}})


def test_what_nobody_counted_is_not_there():
    assert counts_of(None) == {}
    assert counts_of(Usage(prompt_tokens=3)) == {"prompt_tokens": 3.0}
    assert told(COST, usage=Usage(prompt_tokens=3)) is None
    assert told(COST) is None


def test_several_reports_and_namespaces():
    other = AttributeReport(namespace="billing", name="prompt", expression="usage.prompt_tokens")
    lost = AttributeReport(name="lost", expression="usage.nobody")
    more = AttributeReport(name="one", expression="1")
    assert told(COST, other, lost, more, usage=COUNTED) == {
        "envoy.lb": {"x-cost": 12.0, "one": 1.0},
        "billing": {"prompt": 7.0},
    }


REPORTING = HttpNames(reports=(COST,))


def answered(modes, *pieces, trailers=False, names=REPORTING):
    """Messages that answer a response's body, one list for each piece."""
    talk = session(names=names)
    asked(talk, modes=modes)
    talk.decided(gateway.dispatch(POD))
    talk.receive(gateway.response_headers(200, headers=[("content-type", "application/json")]))
    found = [
        talk.receive(gateway.response_body(piece, last=not trailers and number == len(pieces)))
        for number, piece in enumerate(pieces, start=1)
    ]
    if trailers:
        found.append(talk.receive(gateway.response_trailers()))
    return [[each.message for each in commands if isinstance(each, Send)] for commands in found]


@pytest.mark.parametrize("modes", [DUPLEX, STREAMED])
@pytest.mark.parametrize("trailers", [False, True])
def test_only_the_last_message_of_an_answer_carries_it(modes, trailers):
    names = HttpNames(reports=(COST, AttributeReport(name="one", expression="1")))
    answers = answered(modes, ANSWER[:30], ANSWER[30:], trailers=trailers, names=names)
    *before, last = [message for sent in answers for message in sent]
    assert MessageToDict(last.dynamic_metadata) == {"envoy.lb": {"x-cost": 12.0, "one": 1.0}}
    assert before and not any(message.HasField("dynamic_metadata") for message in before)
    assert not messages.RESPONSE_BODY_CONTINUE.HasField("dynamic_metadata"), "shared by all answers"


def test_the_body_stays_as_it_is():
    (first,), (last,) = answered(DUPLEX, ANSWER[:30], ANSWER[30:])
    bodies = [each.response_body.response.body_mutation.streamed_response.body for each in (first, last)]
    assert b"".join(bodies) == ANSWER


def test_nothing_is_told_that_nobody_asked_for_or_that_is_not_counted():
    for sent in (answered(DUPLEX, ANSWER, names=HttpNames()), answered(DUPLEX, b'{"model":"ad0"}')):
        assert not any(message.HasField("dynamic_metadata") for each in sent for message in each)
