"""`lorapick report`: both arms of a trial side by side, and whether they differ.

In: a running picker's admin API; or a ledger's file and a window of time. Out: a table and a sentence, or JSON.
Not here: the arithmetic (`core.arms_report`), how the observed arm is routed (docs/trying.md).
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from lorapick.cli import admin_client
from lorapick.cli.admin_client import DEFAULT, AdminError, AdminOption, JsonOption
from lorapick.core.arms_report import report_of_rows
from lorapick.live.ledger.file import LedgerError
from lorapick.live.ledger.reader import requests_of
from lorapick.model.arms import ArmFinding, ArmsReport, Interval, WouldBe
from lorapick.wire.moments import MomentError, parse_window
from lorapick.wire.words import span

FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="With --file: 14:00, or a whole time. None: an hour before."),
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="TIME", help="As --from. None: now.")]
FileOption = Annotated[Path | None, typer.Option("--file", help="A ledger's file, in place of a running picker.")]


def register(app: typer.Typer) -> None:
    """Add the command `report`."""
    app.command("report")(report)


def report(
    since: FromOption = None,
    until: ToOption = None,
    file: FileOption = None,
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Compare requests that lorapick picks for with those that are routed as before."""
    with admin_client.told("report"):
        if file is None and (since is not None or until is not None):
            raise AdminError("--from and --to are of a ledger: name its file with --file")
        found = _of_picker(admin) if file is None else _of_file(file, since, until)
    if as_json:
        print(msgspec.json.encode(found).decode())
        return
    show(found, admin_client.console())


def _of_picker(admin: str) -> ArmsReport:
    return admin_client.decode(admin_client.get(admin, "/v1/report"), ArmsReport, admin)


def _of_file(file: Path, since: str | None, until: str | None) -> ArmsReport:
    try:
        window = parse_window(since, until, now=datetime.now(UTC))
        rows = requests_of(file, since=window.since, until=window.until)
    except (MomentError, LedgerError) as error:
        raise AdminError(str(error)) from None
    return report_of_rows(rows, seconds=window.until - window.since)


def show(found: ArmsReport, console: Console) -> None:
    """Print a report."""
    route = f", the observed arm by {found.route}" if found.route is not None else ""
    console.print(f"mode {found.mode}{route}; {span(found.seconds)} of the {found.source}", style="dim")
    console.print(_table(found))
    if found.would.decisions:
        console.print(_would(found.would))
    console.print()
    console.print(found.sentence, style="bold")


def _table(found: ArmsReport) -> Table:
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="dim")
    table.add_column("")
    for arm in found.arms:
        table.add_column(arm.arm.value, justify="right", no_wrap=True)
    table.add_column("")
    for name, values in (
        ("requests", [f"{each.requests}" for each in found.arms]),
        ("loads", [f"{each.loads}" for each in found.arms]),
        ("swap seconds", [f"{each.swap_seconds:.3g}" for each in found.arms]),
    ):
        table.add_row(name, *values, "")
    for finding in found.findings:
        table.add_row(*_row(finding))
    return table


def _row(finding: ArmFinding) -> tuple[str, str, str, str]:
    name = {"hits": "hit ratio", "loads": "loads per 1000", "errors": "error ratio"}.get(finding.what, finding.what)
    return name, _figure(finding.what, finding.enforced), _figure(finding.what, finding.observed), finding.verdict.value


def _figure(what: str, interval: Interval | None) -> str:
    if interval is None:
        return "-"
    scale, unit = (100.0, " %") if what in ("hits", "errors") else (1.0, "") if what == "loads" else (1.0, " s")
    bounds = (
        ""
        if interval.low is None or interval.high is None
        else (f" ({interval.low * scale:.3g} to {interval.high * scale:.3g})")
    )
    return f"{interval.value * scale:.3g}{unit}{bounds}"


def _would(would: WouldBe) -> str:
    told = [f"{would.decisions} observed requests, by lorapick's picks"]
    if would.hit_ratio is not None:
        told.append(f"{100 * would.hit_ratio.value:.3g} % of those with an adapter would have found it in a slot")
    if would.agreement is not None:
        told.append(f"{100 * would.agreement:.3g} % went where they would have gone")
    return "; ".join(told)
