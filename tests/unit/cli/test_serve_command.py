"""`lorapick serve` refuses what it cannot obey before anything listens, in the words of `config check` and `up`."""

import logging
import socket
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from lorapick.cli.serve import register


def run(path: Path, *more: str) -> tuple[int, str]:
    """Exit code and standard error."""
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["--config", str(path), *more])
    return result.exit_code, result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tenants: {}\n", ":1:1: tenants: is reserved for a later version and not yet available; remove the key"),
        ("discovery: {file: none.yaml}\n", "none.yaml: cannot be read: No such file or directory"),
        ("adapters: {catalogue: none}\n", ": adapters.catalogue: "),
        (None, ": cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_is_said_with_exit_code_2(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "lorapick.yaml"
    if text is not None:
        path.write_text(text)
    code, err = run(path)
    assert code == 2
    assert err.startswith(f"lorapick serve: {tmp_path}") and said in err


def test_an_unknown_log_level_is_named_with_the_known_ones(tmp_path: Path) -> None:
    code, err = run(tmp_path / "lorapick.yaml", "--log-level", "loud")
    assert (code, err) == (
        2,
        "lorapick serve: --log-level: 'loud' is unknown; use one of debug, info, warning, error\n",
    )


def test_each_key_that_changes_nothing_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "lorapick.yaml"
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = f"127.0.0.1:{holder.getsockname()[1]}"
        adapters = "adapters: {list: [{name: a, rank: 8, size: 1MB}]}"
        pods = 'discovery: {pods: [{name: a, address: "10.0.0.1:80", role: prefill}]}'
        path.write_text(f'{pods}\n{adapters}\nserver: {{metrics: "{taken}"}}\n')
        with caplog.at_level(logging.WARNING):
            code, err = run(path)
    assert (code, taken in err) == (2, True)
    assert f"parsed, not yet acted on: {path}:2:38: adapters.list[0].size: loads are expected" in caplog.text
    assert "roles that cannot work: 1 pod of base (first: a) prefill and none of this model decodes" in caplog.text


EPP = """apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- {type: queue-scorer}
"""
FOUND = """- {type: file-discovery, parameters: {path: pods.yaml}}
dataLayer: {discovery: {pluginRef: file-discovery}}
"""


def bare(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, [*arguments])
    return result.exit_code, result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "where are the pods? Give --pool-name"),
        (["--config-file=FOLDER/epp.yaml"], "where are the pods? Give --pool-name"),
        (["--pool-name=p", "--config-file=FOLDER/found.yaml"], "and file-discovery in FOLDER/found.yaml: keep one"),
        (["--pool-name=p", "--config-file=FOLDER/lorapick.yaml"], "lorapick.yaml is no EndpointPickerConfig"),
        (["--pool-name=p", "--config-file=FOLDER/none.yaml"], "none.yaml: cannot be read"),
        (["--config=FOLDER/epp.yaml", "--config-text=x", "--pool-name=p"], "--config, and --config-file or"),
        (["--config=FOLDER/epp.yaml", "--poolname=p"], '--poolname is unknown; did you mean "pool-name"'),
        (["--pool-name=p", "--config-text=kind: {"], "--config-text:2:1: not YAML"),
    ],
)
def test_flags_of_llm_d_that_cannot_be_obeyed(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "epp.yaml").write_text(EPP)
    (tmp_path / "found.yaml").write_text(EPP + FOUND)
    (tmp_path / "lorapick.yaml").write_text("discovery: {file: pods.yaml}\n")
    code, err = bare(*(each.replace("FOLDER", str(tmp_path)) for each in arguments))
    assert code == 2
    assert said.replace("FOLDER", str(tmp_path)) in err
