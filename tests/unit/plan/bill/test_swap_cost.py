"""Swaps: the article's five phases, sums, transfers, and a longer queue beside them."""

import pytest

from lorapick.plan.bill.swap import Phases, swap_report
from lorapick.plan.work import cell

REPORT = swap_report({})


def value(name, report=REPORT):
    return report[name].value


def test_best_and_worst_are_the_sums_of_the_articles_phases():
    assert value("best") == pytest.approx(0.078, abs=1e-4)
    assert value("worst") == pytest.approx(0.675)
    assert (value("article's rows, best"), value("article's rows, worst")) == (0.085, 0.675)
    assert (REPORT["best"].article, REPORT["worst"].article) == ("~85 ms", "~670 ms")


def test_the_usual_swap_lies_between():
    assert value("best") < value("typical") < value("worst")


def test_averages_beyond_the_worst_case_are_remote():
    assert value("worst") < 0.8 < value("remote") < 1.2 < value("remote, large")


@pytest.mark.parametrize(
    ("size", "tier", "milliseconds"),
    [
        (50_000_000, "host", 3),
        (200_000_000, "host", 12),
        (50_000_000, "nvme", 10),
        (200_000_000, "nvme", 40),
        (50_000_000, "remote", 200),
    ],
)
def test_transfers_are_the_articles(size, tier, milliseconds):
    assumed = {each.name: each.value for each in REPORT.assumptions}
    assert 1e3 * size / assumed[tier] == pytest.approx(milliseconds, rel=0.01)


def test_exact_adapters_at_the_peak_of_the_bus():
    assert value("r=16 q,v of a 70B at PCIe Gen5's peak") == pytest.approx(1.024e-3)
    assert round(1e3 * value("r=64 q,k,v of a 70B at PCIe Gen5's peak"), 1) == 5.6


def test_queue_of_six_beside_two():
    assert (value("longer queue, least"), value("longer queue, most")) == (pytest.approx(0.05), pytest.approx(0.1))
    assert 2 <= value("typical swap to longer queue") <= 10
    assert value("worst swap to longer queue") == pytest.approx(13.5)
    assert value("requests held up for 50×") == pytest.approx(50 / 13.5)


def test_numbers_that_are_given_are_used():
    assert value("best", swap_report({"deallocation": 0.0, "initialisation": 0.0, "host": 1e9})) == pytest.approx(0.1)


def test_sum_is_written_out():
    assert Phases(0.5, 0.015, 0.04, 0.02, 0.1).formula() == "500 + 15 + 40 + 20 + 100 ms"


@pytest.mark.parametrize(("name", "number"), [("host", 0.0), ("adapter", 0), ("long-queue", 2)])
def test_impossible_numbers_are_refused(name, number):
    with pytest.raises(ValueError, match=name):
        swap_report({name: number})


def test_whole_milliseconds_are_shown_and_exact_ones_kept():
    report = swap_report({})
    best = report["best"]
    assert cell(best, "value") == "78 ms" and best.value == pytest.approx(0.077994, abs=1e-6)
    assert report.tables[0].rows[-1][1] == "78 ms" and report.tables[0].values[-1][1] == best.value
