"""No figure is cut, however narrow the console."""

from io import StringIO

import pytest
from rich.console import Console

from lorapick.cli.fitting_table import console, print_table

HEADS = ["roles", "policy", *(f"figure number {number}" for number in range(8))]
ROWS = [["{prefill: 6, decode: 6}", policy, *(f"{number},000 ms" for number in range(8))] for policy in ("rr", "cost")]


def shown(width, rows=ROWS, **fields):
    file = StringIO()
    print_table(Console(file=file, width=width), HEADS, rows, named=2, **fields)
    return file.getvalue()


@pytest.mark.parametrize("width", [300, 80, 50, 20])
@pytest.mark.parametrize("count", [1, 5])
def test_every_figure_is_there(width, count):
    text = shown(width, ROWS * count)
    assert "…" not in text
    for number in range(8):
        assert text.count(f"{number},000 ms") >= 1
    assert max(map(len, text.splitlines())) <= max(width, 40)


def test_wide_it_lies_and_narrow_it_stands_or_is_told_line_by_line():
    assert len(shown(300).splitlines()) == 6
    assert len(shown(60).splitlines()) > 10
    assert "  figure number 7: 7,000 ms" in shown(35).splitlines()


def test_brackets_are_text_and_short_rows_are_filled():
    text = shown(300, [["[64, 32]", "rr", "cannot be"]], title="[beside] it")
    assert "[64, 32]" in text and "cannot be" in text and "[beside] it" in text


def test_what_is_piped_has_no_width_unless_somebody_says_one(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console().width > 1000
    monkeypatch.setenv("COLUMNS", "70")
    assert console().width == 70
