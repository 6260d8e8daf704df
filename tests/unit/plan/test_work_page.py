"""The page of a report: it is HTML that stands alone, with everything that the report has."""

from html.parser import HTMLParser

import pytest

from lorapick.plan.bill.fleet import fleet_report
from lorapick.plan.bill.merged import merged_report
from lorapick.plan.bill.slots import slots_report
from lorapick.plan.bill.swap import swap_report
from lorapick.plan.bill.waste import waste_report
from lorapick.plan.work import Chart, Curve, Figure, Report
from lorapick.plan.work_page import report_page

VOID = {"meta", "path", "br"}


class Balanced(HTMLParser):
    """Tags that are open, and the words that were read."""

    def __init__(self):
        super().__init__()
        self.open, self.words, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize("report", [swap_report, slots_report, fleet_report, waste_report, merged_report])
def test_a_page_has_all_figures_with_their_work(report):
    found, page = report({}), Balanced()
    page.feed(report_page(found))
    assert page.open == [] and page.links == []
    for figure in (*found.figures, *found.assumptions):
        assert figure.name in page.words and figure.formula in page.words and figure.source in page.words
    assert all(chart.title in page.words for chart in found.charts) and found.charts


def test_text_is_escaped_and_empty_charts_are_drawn():
    chart = Chart(title="<none>", x="&", xs=(0.0, 1.0), curves=(Curve("<c>", (None, 0.0)),))
    page = report_page(Report("<b>", (Figure("<f>", 1, "", "a < b", "s"),), charts=(chart,)))
    assert "<b>" not in page and "&lt;f&gt;" in page and "&lt;none&gt;" in page and "nan" not in page


@pytest.mark.parametrize("report", [swap_report, slots_report, fleet_report, waste_report, merged_report])
def test_every_table_says_how_it_comes_about_and_has_its_values(report):
    found, page = report({}), Balanced()
    page.feed(report_page(found))
    for table in found.tables:
        assert f"formula: {table.formula}" in page.words and f"source: {table.source}" in page.words
        assert [len(row) for row in table.values] == [len(row) for row in table.rows]
