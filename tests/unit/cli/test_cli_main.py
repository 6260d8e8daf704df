import subprocess
import sys

import pytest
from typer.testing import CliRunner

from lorapick.cli.main import COMMANDS, program


def run(*arguments):
    return CliRunner().invoke(program(arguments), list(arguments))


def test_help_lists_every_command_with_what_it_does():
    result = run("--help")
    assert result.exit_code == 0
    assert all(name in result.output for name in COMMANDS)


def test_an_unknown_command_is_bad_input():
    result = run("upp")
    assert result.exit_code == 2
    assert "No such command 'upp'" in result.output


def test_a_command_is_found_behind_options_and_its_own_help_works():
    result = run("pod", "--help")
    assert result.exit_code == 0
    assert "--max-loras" in result.output


def test_help_imports_no_command():
    code = (
        "import sys; from lorapick.cli.main import program\n"
        "program(['--help'])\n"
        "print(sorted({'grpc', 'aiohttp', 'numpy', 'uvloop'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_version_is_told():
    assert run("--version").output.startswith("lorapick ")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("--version >/dev/full", "cannot be written"),
        ("--version >&-", "standard output is closed"),
        ("check --admin 'http://a b/' /dev/null", "no address of an admin API"),
    ],
)
def test_what_is_not_answered_is_never_a_failed_check(command, said):
    whole = f"{sys.executable} -m lorapick.cli.main {command}"
    result = subprocess.run(["sh", "-c", whole], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr
