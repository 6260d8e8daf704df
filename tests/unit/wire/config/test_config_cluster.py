"""`discovery.kubernetes`: what it takes, and what is wrong with it."""

import pytest

from lorapick.model.settings import KubernetesSettings, LeaderSettings
from lorapick.wire.config import ConfigError, parse_settings


def read(text: str) -> KubernetesSettings | None:
    return parse_settings(
        f"discovery: {{kubernetes: {text}}}\n", file="l.yaml", policies=["weighted"]
    ).discovery.kubernetes


def test_a_pool_is_enough():
    assert read("{pool: llama}") == KubernetesSettings(pool="llama")


def test_everything_that_can_be_said():
    found = read(
        "{selector: {app: vllm}, target_ports: [8000, 8001], namespace: serving, kubeconfig: kube.yaml, context: lab, "
        "leader: {enabled: true, lease: mine, duration: 9s, renew_within: 6s, retry: 1s}}"
    )
    assert found == KubernetesSettings(
        selector={"app": "vllm"},
        target_ports=(8000, 8001),
        namespace="serving",
        kubeconfig="kube.yaml",
        context="lab",
        leader=LeaderSettings(lease="mine", duration=9.0, renew_within=6.0, retry=1.0),
    )
    assert read('{pool: p, server: "http://127.0.0.1:8001/"}') == KubernetesSettings(
        pool="p", server="http://127.0.0.1:8001"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "must have one of pool and selector; has neither"),
        ("{pool: a, selector: {app: b}, target_ports: [1]}", "must have one of pool and selector; has both"),
        ("{pool: a, target_ports: [1]}", "target_ports: belongs to selector"),
        ("{selector: {app: b}}", "selector: needs target_ports beside it"),
        ("{selector: {app: b}, target_ports: [1,2,3,4,5,6,7,8,9]}", "has 9 ports; at most 8"),
        ("{selector: {app: b}, target_ports: [70000]}", "target_ports[0]: must be a whole number"),
        ("{pool: Upper}", "pool: must be a name of at most 253 lower-case letters"),
        ("{pool: a, context: b}", "context: is a part of a kubeconfig"),
        ('{pool: a, server: "http://x", kubeconfig: k}', "server: takes the place of kubeconfig"),
        ('{pool: a, server: "ftp://x"}', "server: must be the http:// or https:// URL"),
        ("{pool: a, leader: {renew_within: 20s}}", "renew_within is 20s and must be less than duration, which is 15s"),
        ("{pool: a, leader: {retry: 10s}}", "retry is 10s and must be less than renew_within"),
        ("{pools: a}", 'unknown key (found "pools"); did you mean "pool"?'),
    ],
)
def test_what_is_wrong_is_said(text, says):
    with pytest.raises(ConfigError, match=r"l\.yaml:1") as refused:
        read(text)
    assert says in str(refused.value)
