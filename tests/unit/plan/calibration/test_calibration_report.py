"""A calibration as Markdown and as JSON."""

import json
import re
from pathlib import Path

import pytest
from calibration_kit import outcome

from lorapick.plan.calibration.coefficients import read_coefficients
from lorapick.plan.calibration.fit import Fold
from lorapick.plan.calibration.held_out import Calibration
from lorapick.plan.calibration.report import BEGIN, END, document_of, figures_of, page_with


@pytest.fixture
def found():
    outcomes = (
        outcome(slots=8, ttft=9.0, served=0.5, tpot=0.020, ours={"tpot": 0.0212, "ttft": 4.5}),
        outcome(slots=16, ours={"tpot": None, "ttft": None, "served": 0.0}),
        outcome(slots=16, rank=32, ttft=0.06),
    )
    fold = Fold(outcomes[0].run.group, read_coefficients(), tuple(each.run for each in outcomes), 20)
    return Calibration(coefficients=read_coefficients(), folds=(fold,), outcomes=outcomes)


def test_every_table_is_whole(found):
    text = figures_of(found, file=Path("some/runs.csv"))
    assert text.startswith(BEGIN) and text.endswith(END)
    assert "`runs.csv`: 3 runs, 3.0 hours played" in text and "some/" not in text
    tables = re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    assert len(tables) == 8
    for table in tables:
        assert len({line.count("|") for line in table.strip().splitlines()}) == 1


def test_a_run_has_its_line(found):
    text = figures_of(found, file=Path("runs.csv"))
    assert "| (overloaded) m 0.1 8/10 r16 | 20.0 | 21.2 | +6.0% | 0.50 | 0.50 | +0.0% | 9 | 4.5 | 0.50 |" in text
    assert "| m 0.1 16/10 r16 | 15.0 | - | - | 1.00 | 0.00 | -100.0% | 0.05 | - | - |" in text


def test_figures_are_exchanged_in_a_page():
    page = f"# Words\n{BEGIN}\nold\n{END}\nmore words\n"
    assert page_with(page, f"{BEGIN}\nnew\n{END}") == f"# Words\n{BEGIN}\nnew\n{END}\nmore words\n"
    assert page_with("\n", "new") == "new\n"


@pytest.mark.parametrize("page", ["words", f"{END}\n{BEGIN}\n", f"{BEGIN}\n", f"{BEGIN}{BEGIN}{END}"])
def test_a_page_without_a_place_for_figures_is_refused(page):
    with pytest.raises(ValueError, match="the page needs one line <!-- figures --> and below it"):
        page_with(page, "new")


def test_the_document_is_json(found):
    document = json.loads(json.dumps(document_of(found), allow_nan=False))
    assert [each["errors"]["ttft"] for each in document["runs"]] == [-0.5, None, 0.0]
    assert document["folds"][0]["held_out"] == ["m", "0.1"]
    assert document["score"]["compared"] == 3 and len(document["score"]["aims"]) == 6
