"""Headers that plugins name: what is read of requests, and what answers get."""

import pytest
from epp_kit import HEAD, parse

from lorapick.model.profiles import HttpNames
from lorapick.wire.config import ConfigError


def names(plugins: str) -> HttpNames:
    return parse(f"{HEAD}plugins: [{plugins}]\n").profiles.names


@pytest.mark.parametrize(
    ("plugins", "found"),
    [
        ("{type: queue-scorer}", HttpNames()),
        ("{type: session-affinity-scorer}", HttpNames(token="x-session-token")),
        ("{type: session-affinity-filter}, {type: session-affinity-scorer}", HttpNames(token="x-session-token")),
        ("{type: session-affinity-scorer, parameters: {strategy: session_id}}", HttpNames()),
        ("{type: session-id-producer, parameters: {cookieName: Chat}}", HttpNames(session=("cookie:Chat",))),
        ("{type: header-label-affinity-scorer, parameters: {headerName: X-T, labelKey: k}}", HttpNames(keep=("x-t",))),
        ("{type: header-based-testing-filter}", HttpNames(keep=("test-epp-endpoint-selection",))),
        ("{type: destination-endpoint-served-verifier}", HttpNames(served="x-conformance-test-served-endpoint")),
        ("{type: data-parallel-profile-handler}", HttpNames(primary_port=8000)),
        (
            "{type: agent-identity}",
            HttpNames(fairness=("x-claude-code-session-id", "x-session-affinity", "session-id", "session_id")),
        ),
    ],
)
def test_names(plugins, found):
    assert names(plugins) == found


def test_sessions_have_one_token():
    with pytest.raises(ConfigError, match='have one token here, and another plugin has it in "x-session-token"'):
        names("{type: session-affinity-filter}, {type: session-affinity-scorer, parameters: {headerName: x-mine}}")
