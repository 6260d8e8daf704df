"""`lorapick residency`: which adapter is believed to be where, since when, and how the picker knows.

In: filters; the admin API's URL. Out: the table in words, or as JSON. Not here: what is believed (see
`core.residency.table`).
"""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lorapick.cli import admin_client
from lorapick.live.admin_views import Residency
from lorapick.model.tiers import Evidence, Tier
from lorapick.model.units import Seconds
from lorapick.wire.api import Cell

_LOW = (Tier.DISK.word, Tier.UNREGISTERED.word)
_STYLES = {Tier.GPU_SERVING.word: "bold green", Tier.GPU_IDLE.word: "green", Tier.LOADING.word: "yellow"}
_SPOKE = {
    Evidence.ANSWER: "answered",
    Evidence.SCRAPE: "named in its metrics",
    Evidence.LIST: "in the pod's list",
    Evidence.KV_EVENT: "stored KV blocks",
    Evidence.COMMAND: "agreed to a command",
}
_UNITS = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("residency")(residency)


def residency(
    pod: Annotated[str | None, typer.Option(help="Only this pod.")] = None,
    adapter: Annotated[str | None, typer.Option(help="Only this adapter.")] = None,
    admin: admin_client.AdminOption = admin_client.DEFAULT,
    every: Annotated[bool, typer.Option("--all", help="Show adapters that are only on disk, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the API's answer.")] = False,
) -> None:
    """Say which adapter is believed to be where, since when, how the picker knows, and what last spoke of it."""
    given = {"pod": pod, "adapter": adapter}
    query = urlencode({name: value for name, value in given.items() if value is not None})
    with admin_client.told("residency"):
        body = admin_client.get(admin, f"/v1/residency?{query}")
        document = admin_client.decode(body, Residency, admin)
    if as_json:
        print(body.decode())
        return
    show(document, admin_client.console(), every=every or adapter is not None)


def show(document: Residency, console: Console, *, every: bool) -> None:
    """Print the cells; without `every` those that are only on disk are counted."""
    shown = [cell for cell in document.cells if every or cell.tier not in _LOW]
    if shown:
        console.print(_table(shown))
    else:
        console.print("nothing is believed to be in any pod's memory")
    low = len(document.cells) - len(shown)
    if low:
        console.print(Text(f"  and {low} only on disk, or not registered; --all shows them", style="dim"))
    if document.total > len(document.cells):
        left = document.total - len(document.cells)
        console.print(Text(f"  and {left} more that the picker did not send; --pod or --adapter asks for fewer"))


def _table(cells: Sequence[Cell]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("pod", "adapter", "tier", "for", "source"):
        table.add_column(name, overflow="fold")
    table.add_column("in flight", justify="right")
    table.add_column("last evidence")
    for cell in cells:
        name = f"{cell.adapter} (pinned)" if cell.pinned else cell.adapter
        tier = Text(cell.tier, style=_STYLES.get(cell.tier, ""))
        in_flight = str(cell.in_flight) if cell.in_flight else "-"
        row = (cell.pod, Text(name), tier, _span(cell.age_s), cell.source.value, in_flight, _evidence(cell))
        table.add_row(*row)
    return table


def _evidence(cell: Cell) -> str:
    if cell.evidence is None or cell.evidence_age_s is None:
        return "none"
    missing = cell.evidence is Evidence.LIST and cell.tier in _LOW
    return f"{'not ' if missing else ''}{_SPOKE[cell.evidence]} {_span(cell.evidence_age_s)} ago"


def _span(seconds: Seconds | None) -> str:
    """An age in words: the largest unit of which there are two, so that no more than half of it is hidden."""
    if seconds is None:
        return "?"
    for length, unit in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
