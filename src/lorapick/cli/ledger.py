"""`lorapick ledger`: which evictions made a window of time slow, and the rows behind the answer.

In: a window; a running picker's admin API, or the ledger's file. Out: the answer in words and figures, rows, or
Parquet. Not here: the arithmetic (`core.ledger.report`), the words (`cli.ledger_text`).
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import typer

from lorapick.cli import admin_client, ledger_text
from lorapick.cli.admin_client import DEFAULT, AdminError, AdminOption
from lorapick.core.ledger.report import MOST_LISTED, Asked
from lorapick.live.ledger.answers import LedgerAnswer, View, answer
from lorapick.live.ledger.export import export as export_tables
from lorapick.live.ledger.file import LedgerError
from lorapick.model.requests import Outcome
from lorapick.wire.moments import MomentError, parse_window

SECONDS_FOR_ANSWER = 65.0

FromOption = Annotated[
    str | None, typer.Option("--from", metavar="TIME", help="14:00, or 2026-11-30T14:00+01:00. None: an hour before.")
]
ToOption = Annotated[str | None, typer.Option("--to", metavar="TIME", help="As --from. None: now.")]
FileOption = Annotated[
    Path | None, typer.Option("--file", help="The ledger's file itself, with or without a picker running.")
]
AdapterOption = Annotated[str | None, typer.Option("--adapter", help="Only requests for this adapter.")]
PodOption = Annotated[str | None, typer.Option("--pod", help="Only requests that were at this pod.")]
OutcomeOption = Annotated[
    Outcome | None, typer.Option("--outcome", help="Only requests that ended like this; `rejected` were refused.")
]
MostOption = Annotated[int, typer.Option("--most", min=1, max=10_000, help="Rows at most.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


class _Where(NamedTuple):
    """Whom to ask, and for what."""

    admin: str
    file: Path | None
    asked: Asked


def register(app: typer.Typer) -> None:
    """Add the command group `ledger`."""
    commands = typer.Typer(help="Which evictions made a window of time slow, and the rows behind the answer.")
    commands.callback(invoke_without_command=True)(report)
    for name, words in (
        ("requests", "Requests that ended in the window, the latest first, with what each spent its time on."),
        ("loads", "Loads that ended in the window, the latest first: whose doing each was, how long it took."),
        ("evictions", "Evictions of the window, the latest first: who got the slot, how long the stay had been."),
    ):
        commands.command(name, help=words)(_requests if name == "requests" else _lister(View(name)))
    commands.command("export")(export)
    app.add_typer(commands, name="ledger")


def report(
    context: typer.Context,
    since: FromOption = None,
    until: ToOption = None,
    file: FileOption = None,
    adapter: AdapterOption = None,
    pod: PodOption = None,
    most: MostOption = MOST_LISTED,
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Say which evictions made P95 worse between two times, and by how much."""
    if context.invoked_subcommand is not None:
        return
    with _told("ledger"):
        where = _Where(admin, file, _asked(since, until, adapter=adapter, pod=pod, most=most))
        found = _answer(where, View.REPORT)
        assert found.report is not None
    if as_json:
        print(msgspec.json.encode(found.report).decode())
        return
    ledger_text.show_report(found.report, admin_client.console())


def _requests(
    since: FromOption = None,
    until: ToOption = None,
    file: FileOption = None,
    adapter: AdapterOption = None,
    pod: PodOption = None,
    outcome: OutcomeOption = None,
    most: MostOption = 50,
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    with _told(f"ledger {View.REQUESTS}"):
        asked = _asked(since, until, adapter=adapter, pod=pod, most=most)._replace(outcome=outcome)
        _list(View.REQUESTS, _Where(admin, file, asked), as_json=as_json)


def _lister(view: View) -> Callable[..., None]:
    def command(
        since: FromOption = None,
        until: ToOption = None,
        file: FileOption = None,
        adapter: AdapterOption = None,
        pod: PodOption = None,
        most: MostOption = 50,
        admin: AdminOption = DEFAULT,
        as_json: JsonOption = False,
    ) -> None:
        with _told(f"ledger {view}"):
            asked = _asked(since, until, adapter=adapter, pod=pod, most=most)
            _list(view, _Where(admin, file, asked), as_json=as_json)

    return command


def _list(view: View, where: _Where, *, as_json: bool) -> None:
    rows = getattr(_answer(where, view), view)
    if as_json:
        print(msgspec.json.encode(rows).decode())
        return
    ledger_text.show_rows(view, rows, asked=where.asked, console=admin_client.console())


def export(
    target: Annotated[Path, typer.Argument(help="A directory for all tables, or FILE.parquet for requests alone.")],
    file: Annotated[Path, typer.Option("--file", help="The ledger's file.")],
) -> None:
    """Write the ledger as Parquet."""
    with _told("ledger export"):
        try:
            written = export_tables(file, target)
        except OSError as error:
            raise LedgerError(f"{target} cannot be written: {error.strerror}; choose another place") from None
    for place, rows in written.items():
        print(f"{place}: {rows} rows")


def _asked(since: str | None, until: str | None, *, adapter: str | None, pod: str | None, most: int) -> Asked:
    window = parse_window(since, until, now=datetime.now(UTC))
    if window.note:
        print(window.note, file=sys.stderr)  # not on stdout, which may be JSON
    return Asked(window.since, window.until, adapter=adapter, pod=pod, most=most)


def _answer(where: _Where, view: View) -> LedgerAnswer:
    if where.file is not None:
        return answer(where.file, view, asked=where.asked)
    asked = where.asked
    parameters: dict[str, Any] = {"view": view, "from": repr(asked.since), "to": repr(asked.until), "limit": asked.most}
    only = (("adapter", asked.adapter), ("pod", asked.pod), ("outcome", asked.outcome))
    parameters |= {key: str(value) for key, value in only if value is not None}
    body = admin_client.get(where.admin, f"/v1/ledger?{urlencode(parameters)}", timeout=SECONDS_FOR_ANSWER)
    return admin_client.decode(body, LedgerAnswer, where.admin)


@contextmanager
def _told(command: str) -> Iterator[None]:
    """Faults as one line on stderr, and exit code 2."""
    with admin_client.told(command):
        try:
            yield
        except (MomentError, LedgerError) as error:
            raise AdminError(str(error)) from None
