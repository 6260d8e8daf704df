"""Fleets: the article's bill, the break-even curve, its limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.plan.bill.fleet import DEFAULTS, band, fleet_report, fleets, highest_saving
from lorapick.plan.work import Assumptions

REPORT = fleet_report({})
ASSUMED = Assumptions(DEFAULTS, {})


def test_the_articles_bill():
    figures = {each.name: each.value for each in REPORT.figures}
    assert (figures["apart: GPUs"], figures["shared: GPUs"]) == (14, 5)
    assert (figures["apart: a month"], figures["shared: a month"]) == (35_770, 12_775)
    assert figures["saved in a year"] == 275_940
    assert round(100 * figures["saved"]) == 64
    assert figures["slots to spare"] == 28


@pytest.mark.parametrize(("adapters", "percent"), [(1, -50), (2, 0), (3, 25), (12, 64), (15, 67), (50, 75)])
def test_the_curve(adapters, percent):
    assert round(100 * fleets(adapters, ASSUMED).saved) == percent


@given(st.integers(1, 10**6))
def test_never_above_its_limit(adapters):
    assert round(100 * highest_saving(ASSUMED), 1) == 78.6
    assert fleets(adapters, ASSUMED).saved < highest_saving(ASSUMED)


def test_the_bands_stand_beside_it():
    assert [band(count) for count in (2, 5, 15, 50, 51)] == [
        "none",
        "30-40 %",
        "50-65 %",
        "70-85 %",
        "impossible apart",
    ]
    assert REPORT["shared pays from"].value == 3
    assert ("15", "18", "6", "66.7 %", "50-65 %") in REPORT.tables[0].rows


def test_adapters_that_need_more_than_a_gpu_get_it():
    assert fleets(1, Assumptions(DEFAULTS, {"rate": 1300.0})).apart == 3


def test_both_fit_a_gpu():
    apart, shared = (REPORT[f"{name}: memory of a GPU"].value / 1e9 for name in ("apart", "shared"))
    assert (round(apart), round(shared, 1)) == (65, 70.5)
    with pytest.raises(ValueError, match="exceed hbm 80 GB; shrink single-kv"):
        fleet_report({"base": 140_000_000_000})


def test_too_many_adapters_for_the_slots_show():
    assert fleet_report({"adapters": 500, "rate": 1.0})["slots to spare"].value < 0


@pytest.mark.parametrize("name", ["adapters", "rate", "single", "mixed", "per-spare", "slots"])
def test_zeros_are_refused(name):
    with pytest.raises(ValueError, match=name):
        fleet_report({name: 0})
