"""A table that can be read whatever the console's width: lying, standing, or line by line; no figure is ever cut.

In: headings, rows, a console. Out: lines on the console. Not here: what stands in it.
"""

import os
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

UNBOUNDED = 10_000
MOST_STANDING = 6
"""Rows that may become columns."""


def console() -> Console:
    """The terminal; what is piped has no width, unless somebody says one (`COLUMNS`)."""
    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=UNBOUNDED)


def print_table(
    to: Console, heads: Sequence[str], rows: Sequence[Sequence[str]], *, named: int, title: str | None = None
) -> None:
    """Print rows of which the first `named` cells say what the others are of.

    Text is text: brackets are no markup. Rows that are too short end in empty cells.
    """
    whole = [[*row, *[""] * (len(heads) - len(row))] for row in rows]
    lying = _table(title)
    for at, head in enumerate(heads):
        lying.add_column(escape(head), justify="left" if at < named else "right", no_wrap=True)
    for row in whole:
        lying.add_row(*map(escape, row))
    unbounded = to.options.update(max_width=UNBOUNDED)
    if Measurement.get(to, unbounded, lying).maximum <= to.width:
        to.print(lying)
        return
    if len(whole) <= MOST_STANDING and _least(heads, whole) <= to.width:
        to.print(_standing(heads, whole, named=named, title=title))
        return
    if title:
        to.print(escape(title), style="italic", highlight=False)
    for row in whole:
        names = ", ".join(f"{head} {cell}" for head, cell in zip(heads[:named], row, strict=False) if cell)
        to.print(escape(names), highlight=False)
        for head, cell in zip(heads[named:], row[named:], strict=True):
            if cell:
                to.print(escape(f"  {head}: {cell}"), highlight=False)


def _least(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Width below which a word of the standing table would be cut."""
    words = [max((len(word) for cell in row for word in cell.split()), default=0) for row in rows]
    return max(map(len, heads)) + sum(words) + 3 * (len(rows) + 1) + 1


def _standing(heads: Sequence[str], rows: Sequence[Sequence[str]], *, named: int, title: str | None) -> Table:
    """A column for each row, a row for each figure."""
    table = _table(title)
    table.add_column("\n".join(map(escape, heads[:named])), no_wrap=True)
    for row in rows:
        table.add_column("\n".join(map(escape, row[:named])), justify="right")
    for at, head in enumerate(heads[named:], start=named):
        table.add_row(escape(head), *(escape(row[at]) for row in rows))
    return table


def _table(title: str | None) -> Table:
    return Table(title=None if title is None else escape(title), title_justify="left")
