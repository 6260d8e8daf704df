"""A report of the planner as one HTML page that needs nothing else: figures, work, tables, charts.

In: a report. Out: text. Not here: writing it to a file; how lines are drawn (see `sim.page.charts`).
"""

from collections.abc import Sequence
from html import escape
from itertools import cycle

from lorapick.plan.work import Chart, Figure, Report, Table, cell
from lorapick.sim.page.assets import STYLE
from lorapick.sim.page.charts import Axis, Line, Span, line_chart
from lorapick.sim.page.scales import log_range, ticks

_STYLES = ("c1", "c2", "c3", "c4", "c5", "c6")
"""Line styles of the page, in the order in which curves take them. Colours are near those of Okabe and Ito (2008),
which the colour-blind tell apart as well, lighter ones on a dark page; dashes need no colour at all."""
_LONG = 48
"""Letters of a cell from which on its column is wrapped."""
_MORE_STYLE = """
:root { --c1: #0072b2; --c2: #d55e00; --c3: #009e73; --c4: #a8507f; --c5: #b07800; --c6: #1c1c1a; }
@media (prefers-color-scheme: dark) { :root {
  --c1: #56b4e9; --c2: #e8833a; --c3: #2bc79a; --c4: #e0a0c4; --c5: #f0e442; --c6: #f2f1ec; } }
.line { stroke-width: 2; }
.c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); stroke-dasharray: 8 4; }
.c3 { stroke: var(--c3); stroke-dasharray: 2 3; } .c4 { stroke: var(--c4); stroke-dasharray: 10 3 2 3; }
.c5 { stroke: var(--c5); stroke-dasharray: 14 4; } .c6 { stroke: var(--c6); stroke-dasharray: 5 2; }
.sample { width: 30px; height: 8px; display: inline-block; }
td.words { max-width: 44em; } .charts figure { max-width: 720px; }
"""


def report_page(report: Report) -> str:
    """Everything that the report has, formulas and sources always among it."""
    article = any(each.article for each in report.figures)
    columns = ("value", *(("article",) if article else ()), "formula", "source")
    body = "".join(
        (
            f"<h1>{escape(report.title)}</h1>",
            *(_table(table) for table in report.tables if table.leads),
            "<h2>Figures</h2>" if any(table.leads for table in report.tables) else "",
            _figures(report.figures, columns),
            *(_table(table) for table in report.tables if not table.leads),
            _charts(report.charts),
            _notes(report.notes),
            f"<h2>Assumed</h2>{_figures(report.assumptions, ('value', 'what', 'source'))}"
            if report.assumptions
            else "",
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report.title)}</title><style>{STYLE}{_MORE_STYLE}</style></head><body>{body}</body></html>\n"
    )


def _figures(figures: Sequence[Figure], columns: Sequence[str]) -> str:
    kinds = ["" if column in ("value", "article") else ' class="words"' for column in columns]
    heads = "".join(f"<th{kind}>{column}</th>" for column, kind in zip(columns, kinds, strict=True))
    rows = "".join(
        f"<tr><td>{escape(each.name)}</td>"
        + "".join(f"<td{kind}>{escape(cell(each, column))}</td>" for column, kind in zip(columns, kinds, strict=True))
        + "</tr>"
        for each in figures
    )
    return f'<div class="scroll"><table><tr><th></th>{heads}</tr>{rows}</table></div>'


def _table(table: Table) -> str:
    long = [any(len(text) > _LONG for text in column) for column in zip(*table.rows, strict=True)]
    kinds = [' class="words"' if each else "" for each in long] or [""] * len(table.head)
    heads = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in zip(table.head, kinds, strict=True))
    rows = "".join(
        f"<tr>{''.join(f'<td{kind}>{escape(text)}</td>' for text, kind in zip(row, kinds, strict=True))}</tr>"
        for row in table.rows
    )
    work = "".join(
        f'<p class="soft">{words}: {escape(text)}</p>'
        for words, text in (("formula", table.formula), ("source", table.source))
        if text
    )
    return f'<h2>{escape(table.title)}</h2>{work}<div class="scroll"><table><tr>{heads}</tr>{rows}</table></div>'


def _notes(notes: Sequence[str]) -> str:
    return f"<h2>Notes</h2><ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>" if notes else ""


def _charts(charts: Sequence[Chart]) -> str:
    return f'<h2>Charts</h2><div class="charts">{"".join(_chart(each) for each in charts)}</div>' if charts else ""


def _chart(chart: Chart) -> str:
    styled = list(zip(chart.curves, cycle(_STYLES)))
    lines = [Line(curve.name, style, curve.values) for curve, style in styled]
    drawn = line_chart(Span(chart.xs[0], chart.xs[-1], None), chart.xs, lines=lines, axis=_axis(chart))
    keys = "".join(
        f'<span class="key"><svg class="sample" viewBox="0 0 30 8"><path class="line {style}" d="M0 4H30"/></svg>'
        f"{escape(curve.name)}</span>"
        for curve, style in styled
    )
    return (
        f'<figure><figcaption><h3>{escape(chart.title)}</h3><div class="soft">{keys}</div></figcaption>{drawn}'
        f'<div class="soft">{escape(chart.x)}</div></figure>'
    )


def _axis(chart: Chart) -> Axis:
    values = [value for curve in chart.curves for value in curve.values if value is not None]
    if chart.log:
        return Axis(*log_range(values), log=True)
    highest = max((*values, 0.0))
    steps = ticks(highest)
    top = steps[-1] if steps[-1] >= highest else steps[-1] + steps[1]
    return Axis(0.0, top or 1.0)
