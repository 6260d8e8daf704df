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
