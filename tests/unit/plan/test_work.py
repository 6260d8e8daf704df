"""Reports: names, assumptions, and how numbers look."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lorapick.plan.work import (
    GIVEN,
    Assumptions,
    Figure,
    Report,
    Table,
    assumed,
    plain,
    print_report,
    shown,
    tabled,
    to_json,
)

PRICE = assumed("price", 3.5, unit="USD/h", what="of a GPU and hour", source="somewhere")
REPORT = Report(
    "a fleet",
    (Figure("cost", 12_775, "USD", "5 GPUs × $3.50 × 730 h", "arithmetic", "$12,775"),),
    notes=("nothing [else]",),
    assumptions=(PRICE,),
    tables=(Table("by size", ("size", "cost"), (("[one]", "2"),)),),
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "–"),
        ("as it is", "s", "as it is"),
        (0.003, "s", "3 ms"),
        (0.675, "s", "675 ms"),
        (1.2, "s", "1.2 s"),
        (65_536_000, "B", "65.536 MB"),
        (10e9, "B", "10 GB"),
        (12, "B", "12 B"),
        (64e9, "B/s", "64 GB/s"),
        (35_770, "USD", "$35,770"),
        (15.8333, "USD", "$15.83"),
        (-2.5, "USD", "-$2.50"),
        (0.642857, "share", "64.3 %"),
        (13.5, "times", "13.5×"),
        (152, "slots", "152 slots"),
        (0, "", "0"),
        (5779.1667, "", "5,779"),
        (7.2222, "GPU-h", "7.222 GPU-h"),
    ],
)
def test_values_look_as_people_write_them(value, unit, text):
    assert shown(value, unit) == text


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["s", "B", "B/s", "USD", "share", "", "GB"]))
def test_every_number_can_be_shown(value, unit):
    assert shown(value, unit)


@given(st.integers(-(10**15), 10**15))
def test_whole_numbers_are_in_full(value):
    assert int(plain(value).replace(",", "")) == value


def test_given_numbers_replace_defaults_and_say_so():
    assume = Assumptions((PRICE,), {"price": 2.5})
    assert (assume["price"], assume.figures[0].source) == (2.5, GIVEN)
    assert (dict(Assumptions((PRICE,), {"price": None})), len(assume)) == ({"price": 3.5}, 1)
    with pytest.raises(ValueError, match="prize: there are price"):
        Assumptions((PRICE,), {"prize": 1.0})
    with pytest.raises(ValueError, match="price -1: give a number from 0 to 1e"):
        Assumptions((PRICE,), {"price": -1.0})
    with pytest.raises(ValueError, match="price 0: it must be above 0, at least 1e-09"):
        Assumptions((PRICE,), {"price": 0.0}).above_zero("price")


def test_figures_are_found_by_name():
    assert (REPORT["cost"].value, REPORT["price"].value) == (12_775, 3.5)
    with pytest.raises(KeyError):
        REPORT["costs"]


def printed(show_work):
    console = Console(file=io.StringIO(), width=160)
    print_report(console, REPORT, show_work=show_work)
    return console.file.getvalue()


def test_work_is_shown_when_asked_for():
    short, full = printed(False), printed(True)
    assert "$12,775" in short and "730 h" not in short and "--show-work" in short
    assert "5 GPUs × $3.50 × 730 h" in full and "somewhere" in full and "of a GPU and hour" in full
    assert "nothing [else]" in short and "[one]" in short


def test_json_has_formula_and_source_of_every_number():
    found = json.loads(json.dumps(to_json(REPORT)))
    assert found["figures"][0]["formula"].startswith("5 GPUs") and found["assumptions"][0]["source"] == "somewhere"


def test_a_table_shows_its_work_and_has_exact_values_beside_the_texts():
    table = tabled(
        "by size",
        (("size", "B"), ("share", "share"), ("takes", "s")),
        values=[(65_536_000, 1 / 3, None), (12, 0.5, 0.0125)],
        formula="share = part / whole",
        source="somewhere",
    )
    assert table.head == ("size", "share", "takes")
    assert table.rows == (("65.536 MB", "33.3 %", "–"), ("12 B", "50.0 %", "12.5 ms"))
    assert table.values == ((65_536_000, 1 / 3, None), (12, 0.5, 0.0125))
    report = Report("sizes", (), tables=(table,))
    assert json.loads(json.dumps(to_json(report)))["tables"][0]["values"] == [
        [65_536_000, 1 / 3, None],
        [12, 0.5, 0.0125],
    ]
    for show_work in (False, True):
        written = io.StringIO()
        print_report(Console(file=written, width=100), report, show_work=show_work)
        assert ("formula: share = part / whole" in written.getvalue()) is show_work
        assert ("source: somewhere" in written.getvalue()) is show_work
