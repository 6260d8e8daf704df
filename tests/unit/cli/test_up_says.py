"""What `lorapick up` says as it starts."""

import inspect
from pathlib import Path

import pytest

from lorapick.cli import up
from lorapick.cli.up_options import plan_of

FLAGS = {name: parameter.default for name, parameter in inspect.signature(up.up).parameters.items()}


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        (None, "starting Envoy, the picker and 8 pods; logs are in run/"),
        (1, "starting Envoy and the picker, for 1 pod of yours; logs are in run/"),
        (2, "starting Envoy and the picker, for 2 pods of yours; logs are in run/"),
    ],
)
def test_pods_of_a_configuration_are_not_called_started(
    pods: int | None, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = None
    if pods is not None:
        config = tmp_path / "lorapick.yaml"
        listed = ", ".join(f'{{name: p{number}, address: "127.0.0.1:{8001 + number}"}}' for number in range(pods))
        config.write_text(f"discovery: {{pods: [{listed}]}}\n")
    up._say_text("starting", up._starting(plan_of(FLAGS | {"config": config})))
    assert capsys.readouterr().out == text + "\n"


def test_what_is_pinned_and_which_event_loads_what(capsys: pytest.CaptureFixture[str]) -> None:
    facts = up._sample(plan_of(FLAGS).options)
    assert facts == {
        "pinned": {"adapter": "adapter-039", "pods": 2},
        "trigger": {"event": "document.uploaded", "adapter": "adapter-038"},
    }
    up._say_text("ready", {"endpoint": "e", "page": "p", "metrics": "m", "model": "adapter-000", **facts})
    lines = capsys.readouterr().out.splitlines()
    assert "  pinned    adapter-039 on 2 pods" in lines
    assert "  event     lorapick events fire document.uploaded  (loads adapter-038)" in lines


def test_two_adapters_are_too_few_for_samples() -> None:
    assert up._sample(plan_of(FLAGS | {"adapters": 2}).options) == {}


def test_a_fleet_of_ones_own_is_told_nothing_of_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "lorapick.yaml"
    config.write_text(
        'discovery: {pods: [{name: a, address: "127.0.0.1:8001"}]}\n'
        "adapters: {list: [{name: legal, pin: {replicas: 1}}]}\n"
    )
    facts = up._sample(plan_of(FLAGS | {"config": config}).options)
    assert facts == {}
    up._say_text("ready", {"endpoint": "e", "page": "p", "metrics": "m", "model": "legal", **facts})
    assert "pinned" not in capsys.readouterr().out
