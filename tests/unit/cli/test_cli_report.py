"""`lorapick report` and `lorapick mode`: what they print, and what they refuse."""

from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from lorapick.cli.main import program
from lorapick.cli.report import show
from lorapick.core.arms_report import report_of_rows
from lorapick.model.arms import Arm
from lorapick.model.ledger import RequestRow
from lorapick.model.requests import Outcome


def row(number: int, arm: Arm, *, hit: bool) -> RequestRow:
    observed = arm is Arm.OBSERVED
    return RequestRow(
        id=f"r{number}", arrived=0.0, ended=0.4 if hit else 0.9, model="a", adapter="a", pod="p1",
        outcome=Outcome.SERVED, status=200, tier="gpu_idle" if hit else "disk", hit=hit, arm=arm,
        would_pod="p1" if observed else None, would_be="gpu_idle" if observed else None,
    )  # fmt: skip


def shown(count: int) -> list[str]:
    rows = [row(n, arm, hit=n % 10 > 0 or arm is Arm.ENFORCED) for arm in Arm for n in range(count)]
    out = StringIO()
    show(report_of_rows(rows, seconds=3600.0), Console(file=out, width=120))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_both_arms_side_by_side() -> None:
    lines = shown(500)
    assert lines[0] == "mode percent 50; 60 min of the ledger"
    assert lines[1] == "enforced observed"
    assert "requests 500 500" in lines
    assert any(line.startswith("hit ratio 100 % (99.2 to 100) 90 % (") and line.endswith("better") for line in lines)
    assert "500 observed requests, by lorapick's picks; 100 % of those with an adapter would have found it in a" in (
        " ".join(lines)
    )
    assert "Where lorapick's picks are in force: hits better (100 % against 90 %)" in " ".join(lines)


def test_few_requests_are_too_few() -> None:
    assert shown(20)[-1].startswith("Too few to tell: one arm has 20 requests")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("mode", "percent"), "a number goes with percent"),
        (("mode", "observe", "5"), "a number goes with percent"),
        (("report", "--from", "14:00"), "name its file with --file"),
        (("report", "--file", "nowhere.sqlite"), "nowhere.sqlite"),
        (("mode", "--admin", "http://127.0.0.1:1"), "no picker answers"),
    ],
)
def test_what_cannot_be_is_said(words: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(program(words), words)
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
