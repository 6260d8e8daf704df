"""The table of the endpoint-picker protocol: each point has a verdict, and tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "protocol-parity.md"
VERDICTS = {"same", "differs", "no"}
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows():
    """Cells of the tables, without their heads."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    return [each for each in cells if each[0] != "point"]


@cache
def names(file):
    """Of the tests that a file has."""
    tree = ast.parse((TESTS / file).read_text())
    found = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {each.name for each in found if each.name.startswith("test_")}


def test_there_is_a_row_for_much():
    assert len(rows()) >= 50


@pytest.mark.parametrize("cells", rows(), ids=lambda cells: cells[0][:40])
def test_each_point_has_a_verdict_and_tests_that_exist(cells):
    assert len(cells) == 4, cells
    point, verdict, words, tests = cells
    assert verdict in VERDICTS, point
    assert words or verdict == "same", f"{point}: says not how it differs"
    named = NAMED.findall(tests)
    assert named and NAMED.sub("", tests).strip(" ,") == "", f"{point}: {tests!r} is no list of tests"
    for file, name in named:
        assert name in names(file), f"{point}: {file} has no {name}"
