from pathlib import Path

import pytest

from lorapick.model.pods import Engine, Pod, PodLimits, Role
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError
from lorapick.wire.podsfile import parse_pods

SETTINGS = Settings(base_model="m", defaults=PodLimits(max_loras=2, max_cpu_loras=8), default_engine="sglang")


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_pods(text, file="p.yaml", settings=SETTINGS)
    return str(caught.value).splitlines()


def test_pods_take_what_they_do_not_say_from_the_settings() -> None:
    text = """
- {name: a, address: "10.0.0.1:8000"}
- name: b
  address: "[fd00::7]:8001"
  role: prefill
  zone: west
  labels: {tier: gold, generation: 2}
  engine: vllm
  base_model: other
  dcgm_url: http://10.0.0.1:9400/metrics
  kv_events: tcp://[fd00::7]:5557
  draining: true
  max_loras: 3
  max_queue: 5
"""
    assert parse_pods(text, file="p.yaml", settings=SETTINGS) == (
        Pod(name="a", address="10.0.0.1:8000", engine=Engine.SGLANG, base_model="m", limits=SETTINGS.defaults),
        Pod(
            name="b",
            address="[fd00::7]:8001",
            role=Role.PREFILL,
            zone="west",
            labels={"tier": "gold", "generation": "2"},
            engine=Engine.VLLM,
            base_model="other",
            dcgm_url="http://10.0.0.1:9400/metrics",
            kv_events="tcp://[fd00::7]:5557",
            draining=True,
            limits=PodLimits(max_loras=3, max_cpu_loras=8, max_queue=5),
        ),
    )


def test_shared_parts_by_merge() -> None:
    text = (
        '- &first {name: a, address: "10.0.0.1:8000", zone: west}\n- {<<: *first, name: b, address: "10.0.0.2:8000"}\n'
    )
    assert [(pod.name, pod.zone) for pod in parse_pods(text, file="p", settings=SETTINGS)] == [
        ("a", "west"),
        ("b", "west"),
    ]


def test_an_empty_list_is_a_fleet_without_pods_and_an_empty_file_an_error() -> None:
    assert parse_pods(b"[]", file="p.yaml", settings=SETTINGS) == ()
    assert problems("") == ["p.yaml:1:1: the file is empty"]


def blocks() -> list[tuple[str, str]]:
    """Pairs of a text and its message."""
    text = Path(__file__).with_name("pods-errors.txt").read_text()
    return [tuple(block.strip().rsplit("\n=> ", 1)) for block in text.split("\n\n")[1:]]  # type: ignore[misc]


@pytest.mark.parametrize(("text", "problem"), blocks())
def test_one_mistake_gives_one_message(text: str, problem: str) -> None:
    assert problems(text) == [problem]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("[0:0:0:0:0:0:0:1]:8000", "[::1]:8000"),
        ("[FD00::0007]:08000", "[fd00::7]:8000"),
        ("[::ffff:10.0.0.1]:8000", "[::ffff:10.0.0.1]:8000"),
        ("10.0.0.1:00080", "10.0.0.1:80"),
    ],
)
def test_addresses_have_one_spelling(written: str, meant: str) -> None:
    (pod,) = parse_pods(f'[{{name: a, address: "{written}"}}]', file="p.yaml", settings=SETTINGS)
    assert pod.address == meant


def test_an_address_stands_twice_in_whatever_spelling() -> None:
    text = '[{name: a, address: "[::1]:80"}, {name: b, address: "[0::1]:080"}, {name: c, address: "x:1"}]'
    with pytest.raises(ConfigError) as caught:
        parse_pods(text, file="p.yaml", settings=SETTINGS)
    assert [problem.message for problem in caught.value.problems] == [
        "this address stands twice; the first is in line 1",
        'must be an IP address with a port; "x" is no IP address',
    ]
