"""Selectors, conditions, sessions, detectors."""

import pytest

from lorapick.wire.config.document import Refused, Report, parse_document
from lorapick.wire.config.epp import selecting


def at(text):
    return parse_document(text, Report("f"))


def test_selectors():
    expressions = "[{key: k, operator: NotIn, values: [x, y]}, {key: e, operator: Exists}]"
    assert selecting.selector(at(f"{{matchLabels: {{a: b, n: 7}}, matchExpressions: {expressions}}}")) == {
        "requirements": (("a", "In", ("b",)), ("n", "In", ("7",)), ("k", "NotIn", ("x", "y")), ("e", "Exists", ()))
    }
    assert selecting.selector(None) == {"requirements": ()}


def test_conditions():
    assert selecting.condition(at("{metric: waiting-queue, maxValue: 4}")) == ("waiting-queue", 4.0)
    with pytest.raises(Refused):
        selecting.condition(at("{metric: waiting-queue}"))


@pytest.mark.parametrize(
    ("text", "token", "sessions"),
    [
        ("{}", "x-session-token", ()),
        ("{headerName: ' X-Mine '}", "x-mine", ()),
        ("{encodedEndpointHeaderConfig: {header: X-Mine}, profileName: prefill}", "x-mine", ()),
        ("{strategy: session_id, sessionIdConfig: {sources: [{header: X-Chat}]}}", None, ("x-chat",)),
        ("{strategy: session_id, sessionIdConfig: {sources: [{attribute: session-id}]}}", None, ()),
        ("{strategy: session_id, sessionIdConfig: {sources: [{attribute: agent-identity}]}}", None, selecting.AGENTS),
        ("{algorithm: session_id_header, headerName: x-chat, missThreshold: 3}", None, ("x-chat",)),
    ],
)
def test_sessions(text, token, sessions):
    assert selecting.session(at(text)) == {"token": token, "sessions": sessions}
    assert selecting.session(None) == {"token": "x-session-token", "sessions": ()}


@pytest.mark.parametrize(
    "text",
    ["{headerName: 'a b'}", "{strategy: none}", "{sessionIdConfig: {sources: [{}]}}", "{headerName: ''}"],
)
def test_sessions_that_cannot_be(text):
    with pytest.raises(Refused):
        selecting.session(at(text))


def test_ids_of_sessions():
    assert selecting.session_id(None) == {"sessions": ()}
    assert selecting.session_id(at("{headerName: X-Chat}")) == {"sessions": ("x-chat",)}
    assert selecting.session_id(at("{cookieName: Chat}")) == {"sessions": ("cookie:Chat",)}
    with pytest.raises(Refused):
        selecting.session_id(at("{headerName: a, cookieName: b}"))


def test_detectors():
    assert selecting.utilization_detector(None) == {"queue": 5, "kv": 0.8, "headroom": 0.0}
    found = selecting.concurrency_detector(at("{concurrencyMode: hybrid, maxConcurrency: 7, headroom: 0.1}"))
    assert found == {"mode": "hybrid", "requests": 7, "tokens": 1_000_000, "headroom": 0.1}
    with pytest.raises(Refused):
        selecting.utilization_detector(at("{kvCacheUtilThreshold: 0}"))
