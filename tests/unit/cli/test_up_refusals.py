"""What `lorapick up` says, with exit code 2, before it starts anything."""

from pathlib import Path

import typer
from typer.testing import CliRunner

from lorapick.cli.up import register


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, [*arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_run_directory_that_cannot_be() -> None:
    code, out, err = run("--run-dir", "/proc/nope")
    assert (code, out) == (2, "")
    assert err.startswith("lorapick up: the run directory /proc/nope cannot be used: No such file or directory")
    assert err.endswith("--run-dir\n")


def test_a_configuration_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "lorapick.yaml"
    path.write_text("discovery: {file: pods.yaml}\ntenants: {}\n")
    code, out, err = run("--config", str(path), "--run-dir", str(tmp_path / "run"))
    assert (code, out) == (2, "")
    assert (
        err
        == f"lorapick up: {path}:2:1: tenants: is reserved for a later version and not yet available; remove the key\n"
    )
    assert not (tmp_path / "run").exists()


def test_a_run_directory_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    code, out, err = run("--run-dir", str(file))
    assert (code, out) == (2, "")
    assert err.startswith(f"lorapick up: the run directory {file} cannot be used: File exists")


def test_numbers_that_are_none(tmp_path: Path) -> None:
    code, out, err = run("--run-dir", str(tmp_path / "run"), "--rate", "nan")
    assert (code, out) == (2, "")
    assert err == "lorapick up: --rate is nan; it must be above 0: 0.001 to 10000\n"
