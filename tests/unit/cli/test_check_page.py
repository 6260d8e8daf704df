"""What the page of `lorapick check` says that it prints is what it prints."""

import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from lorapick.cli.check import register

ROOT = Path(__file__).parents[3]
BLOCKS = re.findall(
    r"^```console\n\$ lorapick check (.*?)^```", (ROOT / "docs/check.md").read_text(), re.MULTILINE | re.DOTALL
)


def examples():
    """Arguments, and the lines that follow them."""
    for block in BLOCKS:
        command, _, told = re.sub(r"\\\n", " ", block).partition("\n")
        arguments, _, otherwise = command.partition("||")
        if told:
            yield shlex.split(arguments), told.splitlines(), otherwise


@pytest.mark.parametrize(("arguments", "told", "otherwise"), list(examples()))
def test_printed_as_the_page_says(arguments, told, otherwise, monkeypatch):
    monkeypatch.chdir(ROOT)
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == (1 if otherwise else 0), result.output
    printed = [*result.output.splitlines(), f"exit code {result.exit_code}"]
    for line in told:
        if line != "...":
            pattern = re.sub(r"\.\.\.$", "*", line)
            assert any(fnmatchcase(each, pattern) for each in printed), line


def test_there_are_examples():
    assert len(list(examples())) >= 4
