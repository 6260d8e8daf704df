import subprocess
import sys

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
