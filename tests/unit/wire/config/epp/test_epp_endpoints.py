"""llm-d's list of endpoints as pods."""

import pytest
from epp_kit import FILES

from lorapick.model.pods import Engine, Role
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError
from lorapick.wire.podsfile import parse_pods


def pods(text):
    return parse_pods(text, file="endpoints.yaml", settings=Settings(base_model="llama"))


def test_a_list_of_endpoints_is_a_list_of_pods():
    first, second = pods((FILES / "endpoints.yaml").read_text())
    assert (first.name, first.address, first.role) == ("vllm-0", "10.0.0.7:8000", Role.DECODE)
    assert (second.name, second.address, second.base_model) == ("vllm-1", "[fd00::7]:8001", "llama")


def test_the_label_of_an_endpoint_says_its_engine():
    labelled = "{name: %s, address: 10.0.0.%d, port: 1, labels: {llm-d.ai/engine-type: %s}}"
    words = ["sglang", "triton-tensorrt-llm", "vllm"]
    text = ", ".join(labelled % (word, number, word) for number, word in enumerate(words, start=1))
    assert [pod.engine for pod in pods(f"endpoints: [{text}]")] == [Engine.SGLANG, Engine.TRITON, Engine.VLLM]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("endpoints: [{name: a, address: host, port: 1}]", "endpoints[0].address: must be an IP address"),
        ("endpoints: [{name: a, address: 10.0.0.1, port: http}]", "endpoints[0].port: must be a port in 1-65535"),
        ("endpoints: [{name: a, address: 10.0.0.1}]", 'endpoints[0]: the key "port" is missing'),
        ("endpoints: [{name: a, address: 10.0.0.1, port: 1, metricsHost: x}]", "metricsHost: has no counterpart here"),
        (
            "endpoints: [{name: a, address: 10.0.0.1, port: 1}, {name: a, address: 10.0.0.2, port: 1}]",
            "endpoints[1].name: this name stands twice",
        ),
        (
            "endpoints: [{name: a, address: 10.0.0.1, port: 1, labels: {llm-d.ai/engine-type: sgland}}]",
            "engine-type: must be one of vllm, sglang, trtllm-serve, triton-tensorrt-llm, trtllm, triton, lorax",
        ),
        ("endpoints: 5", "endpoints: must be a list"),
        ("{endpoints: [], more: 1}", "more: unknown key"),
    ],
)
def test_mistakes_are_told(text, message):
    with pytest.raises(ConfigError) as caught:
        pods(text)
    assert message in str(caught.value)
