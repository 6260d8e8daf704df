"""Runbooks: what they say to type is what commands take, and what they say first can be had alone."""

import re

import pytest
from typer.testing import CliRunner

from lorapick.cli.main import program
from lorapick.dash.rules import alert_words
from lorapick.dash.runbooks import first_steps, runbook_directory

ASKS_NOBODY = ("serve", "dashboards", "replay")
"""Commands that ask no picker."""
NOWHERE = {"LORAPICK_ADMIN": "http://127.0.0.1:1"}


def commands():
    """Each `lorapick ...` of the runbooks that asks a picker, in a fence or in a line."""
    texts = [path.read_text() for path in sorted(runbook_directory().glob("*.md"))]
    found = {each.strip() for text in texts for each in re.findall(r"(?:\$ |`)lorapick ([a-z][^`\n]*)", text)}
    return sorted(each for each in found if each.split()[0] not in ASKS_NOBODY)


@pytest.mark.parametrize("command", commands())
def test_commands_of_runbooks_are_understood(command):
    arguments = command.split()
    answer = CliRunner().invoke(program(arguments), arguments, env=NOWHERE)
    assert (answer.exit_code, "no picker answers" in answer.stderr) == (2, True), answer.output


def test_pins_come_with_their_condition_and_how_to_take_them_back():
    pages = {path.stem: path.read_text() for path in runbook_directory().glob("*.md")}
    pinning = [alert for alert, text in pages.items() if "lorapick adapters pin" in text]
    assert "thrash" in pinning
    for alert in pinning:
        assert "only while slots stay free" in " ".join(pages[alert].split())
        assert "lorapick adapters unpin" in pages[alert]


def test_what_to_do_first_can_be_had_alone():
    for alert in alert_words():
        steps = first_steps(alert)
        assert steps.startswith("1. ")
        assert "##" not in steps
