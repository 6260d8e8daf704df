"""`lorapick demo`: what it refuses, what it prints. The whole of it runs in tests/e2e/test_demo_command.py."""

import io

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

from lorapick.cli.demo import register, show
from lorapick.wire.report import DemoReport, DemoSetup, Observed, PodCounts, summarise


def run(*arguments: str) -> Result:
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, arguments)


def test_unknown_policy_lists_the_known() -> None:
    result = run("--policy", "weighted", "--policy", "wieghted")
    assert result.exit_code == 2
    assert "--policy 'wieghted' is unknown; use one of weighted, cost, round-robin" in result.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        ("--pods", "0"),
        ("--adapters", "0"),
        ("--adapters", "100000000"),
        ("--seed", "-1"),
        ("--rate", "nan"),
        ("--zipf", "inf"),
        ("--slots", "0"),
        ("--rate", "0"),
        ("--requests", "x"),
        ("--scrape-interval", "0"),
    ],
)
def test_sizes_that_make_no_sense(wrong: tuple[str, str]) -> None:
    result = run(*wrong)
    assert result.exit_code == 2
    assert wrong[0] in result.stderr


def test_report_says_what_was_run_and_compares_side_by_side() -> None:
    setup = DemoSetup(adapters=40, pods=8, slots=4, rate=40.0, requests=1000, seed=1, zipf=1.0, mode="inline")
    weighted = summarise("weighted", [Observed(latency=0.1)], PodCounts(swaps=30, hits=9, misses=1), seconds=25, pods=8)
    robin = summarise("round-robin", [Observed(latency=1.0)], PodCounts(swaps=600, misses=1), seconds=25, pods=8)
    out = io.StringIO()
    show(DemoReport(setup=setup, results=(weighted, robin)), Console(file=out, width=120))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert lines[0].startswith(
        "1,000 requests at 40/s over 40 adapters (Zipf 1), 8 emulated pods × 4 slots, swaps inline"
    )
    assert lines[1] == "weighted round-robin"
    assert "swaps 30 600" in lines
    assert "hit ratio 90.0 % 0.0 %" in lines
