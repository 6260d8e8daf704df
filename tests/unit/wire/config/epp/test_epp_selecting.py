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
    ("text", "good"),
    [
        ("{strategy: session_id, sessionIdConfig: {sources: [{header: x-session-id}]}}", True),
        ("{algorithm: session_id_header, headerName: x-session-token, missThreshold: 3}", True),
        ("{encodedEndpointHeaderConfig: {header: x-session-token}, profileName: prefill}", True),
        ("{sessionIdConfig: {sources: [{attribute: agent-identity}]}}", False),
        ("{encodedEndpointHeaderConfig: {header: x-mine}}", False),
    ],
)
def test_sessions(text, good):
    if good:
        assert selecting.session(at(text)) == {}
    else:
        with pytest.raises(Refused):
            selecting.session(at(text))


def test_detectors():
    assert selecting.utilization_detector(None) == {"queue": 5, "kv": 0.8, "headroom": 0.0}
    found = selecting.concurrency_detector(at("{concurrencyMode: hybrid, maxConcurrency: 7, headroom: 0.1}"))
    assert found == {"mode": "hybrid", "requests": 7, "tokens": 1_000_000, "headroom": 0.1}
    with pytest.raises(Refused):
        selecting.utilization_detector(at("{kvCacheUtilThreshold: 0}"))
