"""Reports of the planner: figures that show their work, for people, programs and browsers.

In: figures with their formula and source, tables, charts. Out: text on a console, JSON; a page is in `work_page`.
Not here: what is reckoned.

Amounts are in base units (seconds, bytes, shares of 1); how they are shown is chosen here, by unit.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table as RichTable

GIVEN = "given"
"""Source of what was put on the command line."""
MOST, LEAST = 1e15, 1e-9
"""Of an assumption, and of one that must not be 0: no product or quotient of a few leaves what a float can be."""
UNITS = {
    "s": "seconds, shown as ms below one",
    "B": "bytes, shown as kB, MB or GB (powers of ten)",
    "B/s": "bytes per second, shown the same way",
    "USD": "US dollars",
    "share": "a share of 1, shown in per cent",
    "times": "a ratio, shown with ×",
    "": "a plain number",
}
"""Units with a look of their own; any other word is put behind the number as it is."""


class Figure(msgspec.Struct, frozen=True):
    """One number of a report, and how it came about."""

    name: str
    """Unique within its report."""
    value: float | int | str | None
    """In the base unit; None: it cannot be said from what is known."""
    unit: str
    """One of `UNITS`, or a word."""
    formula: str
    """With the numbers put in: `14 GPUs × $3.50 × 730 h`. Of an assumption: what it is."""
    source: str
    """Where formula or value come from: a measurement, a document, `GIVEN`."""
    article: str | None = None
    """What the article prints for it; None: nothing."""
    rounded: bool = False
    """Whether milliseconds are shown whole; the value is exact all the same."""


class Table(msgspec.Struct, frozen=True):
    """Rows of texts under a head; the first column holds names."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    formula: str = ""
    """How the columns come about; empty: they hold words only."""
    source: str = ""
    """Where formula or values come from."""
    values: tuple[tuple[float | int | str | None, ...], ...] = ()
    """What the texts of `rows` show, cell by cell, in base units and not rounded; empty: the texts are all there is."""
    leads: bool = False
    """Whether it stands above the figures of a page."""


class Curve(msgspec.Struct, frozen=True):
    """One line of a chart."""

    name: str
    values: tuple[float | None, ...]
    """One for each x of the chart; None breaks the line."""


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """Lines over a plain number."""

    title: str
    x: str
    """What the numbers along the bottom are."""
    xs: tuple[float, ...]
    """At least two, rising."""
    curves: tuple[Curve, ...]
    log: bool = False
    """Whether the vertical axis is logarithmic; values are above 0 then."""


class Report(msgspec.Struct, frozen=True):
    """What one `lorapick plan` command says."""

    title: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()
    """Sentences below the figures: contradictions, limits of the formulas."""
    assumptions: tuple[Figure, ...] = ()
    """What the figures start from."""
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    """Drawn on the page only; JSON has their values."""

    def __getitem__(self, name: str) -> Figure:
        """A figure or assumption by its name.

        Raises:
            KeyError: there is none.
        """
        for each in (*self.figures, *self.assumptions):
            if each.name == name:
                return each
        raise KeyError(name)


def unlike_article(report: Report) -> Report:
    """The report, without the article's figures where any number was given: they are of its own numbers."""
    given = any(each.source == GIVEN for each in report.assumptions)
    return without_article(report) if given else report


def without_article(report: Report) -> Report:
    """The report, with nothing beside its figures."""
    return msgspec.structs.replace(
        report, figures=tuple(msgspec.structs.replace(each, article=None) for each in report.figures)
    )


class Assumptions(Mapping[str, float]):
    """Numbers that a plan starts from: defaults with their sources, some of them replaced by what was given.

    Raises:
        ValueError: there is no such name, or a number is below 0 or not finite.
    """

    def __init__(self, defaults: Sequence[Figure], given: Mapping[str, float | None]) -> None:
        unknown = [name for name in given if name not in [each.name for each in defaults]]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: there are {', '.join(each.name for each in defaults)}")
        self.figures = tuple(_replaced(each, given.get(each.name)) for each in defaults)
        self._values = {each.name: each.value for each in self.figures}

    def __getitem__(self, name: str) -> float:
        value = self._values[name]
        if not isinstance(value, int | float):
            raise TypeError(f"{name} is {value!r}, no number")
        return value

    def above_zero(self, *names: str) -> None:
        """Refuse zeros where something is divided by them.

        Raises:
            ValueError: naming the first.
        """
        for name in names:
            if self[name] < LEAST:
                raise ValueError(f"{name} {self[name]:g}: it must be above 0, at least {LEAST:g}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def assumed(name: str, value: float, *, unit: str, what: str, source: str) -> Figure:
    """A default: what it is, and where it comes from. A whole one takes whole numbers only."""
    return Figure(name, value, unit, what, source)


def _replaced(default: Figure, value: float | None) -> Figure:
    if value is None:
        return default
    if not 0 <= value <= MOST:  # not NaN either
        raise ValueError(f"{default.name} {value:g}: give a number from 0 to {MOST:g}")
    return Figure(default.name, value, default.unit, default.formula, GIVEN)


# -- numbers as people read them


def shown(value: float | str | None, unit: str, *, rounded: bool = False) -> str:
    """A value with its unit; `–` for what is not known. `rounded`: milliseconds without decimals, from 1 ms on."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if rounded and unit == "s" and 1e-3 <= abs(value) < 1.0:
        value = round(value, 3)
    look = _LOOKS.get(unit)
    return look(value) if look is not None else f"{plain(value)} {unit}".rstrip()


def plain(value: float) -> str:
    """A number: whole ones in full, others to four digits, and never fewer than those before the point."""
    if value == int(value):
        return f"{int(value):,}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".")


def _seconds(value: float) -> str:
    return f"{plain(value)} s" if abs(value) >= 1.0 else f"{plain(round(value * 1e3, 9))} ms"


def _bytes(value: float) -> str:
    size, unit = next(
        ((size, unit) for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if abs(value) >= size), (1, "B")
    )
    return f"{value / size:,.3f}".rstrip("0").rstrip(".") + f" {unit}"


def _dollars(value: float) -> str:
    sign, amount = "-" if value < 0 else "", abs(value)
    return f"{sign}${amount:,.0f}" if abs(amount - round(amount)) < 0.005 else f"{sign}${amount:,.2f}"


_LOOKS: dict[str, Callable[[float], str]] = {
    "s": _seconds,
    "B": _bytes,
    "B/s": lambda value: f"{_bytes(value)}/s",
    "USD": _dollars,
    "share": lambda value: f"{100 * value:.1f} %",
    "times": lambda value: f"{plain(value)}×",
}


def tabled(
    title: str,
    columns: Sequence[tuple[str, str]],
    *,
    values: Iterable[Sequence[float | int | str | None]],
    formula: str,
    source: str,
    rounded: bool = False,
) -> Table:
    """A table of values, shown by the units of its columns, which are pairs of a name and a unit (see `UNITS`).

    `rounded`: as `shown` has it.
    """
    exact = tuple(tuple(row) for row in values)
    units = [unit for _, unit in columns]
    rows = tuple(
        tuple(shown(value, unit, rounded=rounded) for value, unit in zip(row, units, strict=True)) for row in exact
    )
    return Table(title, tuple(name for name, _ in columns), rows, formula, source, exact)


# -- for programs


def to_json(report: Report) -> dict[str, Any]:
    """Values as JSON knows them, every figure and table with its formula and source."""
    found: dict[str, Any] = msgspec.to_builtins(report)
    return found


# -- for people


def print_report(console: Console, report: Report, *, show_work: bool = False) -> None:
    """Title, figures with the article's beside them, tables, notes; with `show_work` formulas, sources, assumptions."""
    console.print(report.title, style="bold", highlight=False, markup=False)
    if show_work and report.assumptions:
        _print(console, "assumed", figures=report.assumptions, columns=("value", "what", "source"))
    work = ("formula", "source") if show_work else ()
    columns = ("value", *(("article",) if any(each.article for each in report.figures) else ()))
    _print(console, "figures", figures=report.figures, columns=(*columns, *work))
    for table in report.tables:
        _print_table(console, table, show_work=show_work)
    for note in report.notes:
        console.print(f"- {note}", highlight=False, markup=False)
    if not show_work:
        console.print("Formulas, sources and assumptions: --show-work", style="dim", highlight=False)


def _print(console: Console, title: str, *, figures: Sequence[Figure], columns: Sequence[str]) -> None:
    table = RichTable(title=title, title_justify="left")
    table.add_column("", overflow="fold")
    for column in columns:
        table.add_column(column, justify="right" if column in ("value", "article") else "left", overflow="fold")
    for each in figures:
        table.add_row(each.name, *(cell(each, column) for column in columns))
    console.print(table, highlight=False, markup=False)


def cell(figure: Figure, column: str) -> str:
    """What a column of a table of figures says."""
    match column:
        case "value":
            return shown(figure.value, figure.unit, rounded=figure.rounded)
        case "article":
            return figure.article or ""
        case "formula" | "what":
            return figure.formula
        case _:
            return figure.source


def _print_table(console: Console, table: Table, *, show_work: bool) -> None:
    drawn = RichTable(title=table.title, title_justify="left")
    for number, name in enumerate(table.head):
        drawn.add_column(name, justify="right" if number else "left")
    for row in table.rows:
        drawn.add_row(*row)
    if show_work:
        for words, text in (("formula", table.formula), ("source", table.source)):
            if text:
                drawn.title = f"{drawn.title}\n{words}: {text}"
    console.print(drawn, highlight=False, markup=False)
