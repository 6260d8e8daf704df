"""`lorapick explain`: why a request went where it went.

In: a request id, or none for the last decision, or the last refusal; the admin API's URL. Out: the decision in words
and figures.
Not here: what decides (see `core.picking`), how an explanation is kept (see `core.explain`), its words (see
`wire.words`).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import quote

import msgspec
import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lorapick.cli import admin_client
from lorapick.live.publish import DecisionRow
from lorapick.model.disaggregation import SplitCosts
from lorapick.model.picks import What
from lorapick.model.pods import GpuSource
from lorapick.model.units import PodName
from lorapick.wire.api import TERMS, ExplanationDocument, PrefillVerdictDocument, VerdictDocument
from lorapick.wire.words import span

MOST_LOSERS = 20
_RECENT = 200
"""Decisions looked through for the last one that was kept in full."""
_MOST_RECENT = 1000
"""Decisions looked through for the last refused one: the most that the API gives."""


class _Recent(msgspec.Struct, frozen=True):
    decisions: tuple[DecisionRow, ...]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("explain")(explain)


def explain(
    request_id: Annotated[
        str | None, typer.Argument(metavar="[REQUEST_ID]", help="As in x-request-id; none: the last decision.")
    ] = None,
    admin: admin_client.AdminOption = admin_client.DEFAULT,
    every: Annotated[bool, typer.Option("--all", help=f"Show all pods, not only the first {MOST_LOSERS}.")] = False,
    refused: Annotated[bool, typer.Option("--refused", help="The last request that was refused.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
) -> None:
    """Say why a request went where it went: the winner's terms, and what cost every other pod the request."""
    with admin_client.told("explain"):
        if refused and request_id is not None:
            raise admin_client.AdminError(f"--refused means the last refused request, not {request_id}; give only one")
        asked_for = request_id or _last(admin, refused=refused)
        body = admin_client.get(admin, f"/v1/decisions/{quote(asked_for, safe='')}")
        document = admin_client.decode(body, ExplanationDocument, admin)
    if as_json:
        print(body.decode())
        return
    show(document, admin_client.console(), most=len(document.verdicts) if every else MOST_LOSERS)


def _last(admin: str, *, refused: bool) -> str:
    most = _MOST_RECENT if refused else _RECENT
    recent = admin_client.decode(admin_client.get(admin, f"/v1/decisions?limit={most}"), _Recent, admin)
    for row in recent.decisions:
        if row.explained and (row.outcome == "rejected" or not refused):
            return row.request_id
    if refused and recent.decisions:
        raise admin_client.AdminError(
            f"of the last {len(recent.decisions)} requests none was refused; earlier ones are in the ledger: "
            "`lorapick ledger requests --outcome rejected`"
        )
    raise admin_client.AdminError("the picker has decided nothing yet; send it a request, then ask again")


def show(document: ExplanationDocument, console: Console, *, most: int = MOST_LOSERS) -> None:
    """Print one explanation; at most `most` losers in full, the rest counted by reason."""
    winner = next((verdict for verdict in document.verdicts if verdict.won), None)
    others = [verdict.pod for verdict in document.prefill_side if verdict.only]
    losers = [verdict for verdict in document.verdicts if not verdict.won and verdict.pod not in others]
    console.print(_headline(document, winner))
    for sentence in document.words:
        console.print(Padding(Text(admin_client.printable(sentence)), (0, 0, 0, 2)))
    adapter = "base model" if document.adapter is None else f"adapter {document.adapter}"
    console.print(Text(admin_client.printable(f"  policy {document.policy} · {adapter}"), style="dim"))
    if document.pair is not None:
        console.print(_pair_table(document.pair, prefill=document.prefill, decode=winner.pod if winner else "-"))
    if document.prefill_side:
        console.print(_side_table(document.prefill_side[:most], decode=winner.pod if winner else None))
    if document.prefill_side[most:]:
        console.print(
            Text(f"  and {len(document.prefill_side) - most} more that prefill; --all shows them", style="dim")
        )
    if winner is not None:
        _show_winner(winner, document, console)
    if losers:
        console.print()
        console.print(_losers_table(losers[:most], document))
    if losers[most:]:
        console.print(Text(f"  and {_counted(losers[most:])}; --all shows them", style="dim"))


def _headline(document: ExplanationDocument, winner: VerdictDocument | None) -> Text:
    text = Text(f"{admin_client.printable(document.request_id)}: ")
    text.append(admin_client.printable(document.model), style="bold")
    if document.outcome == "observed":
        went = next((came.pod for came in reversed(document.came) if came.what is What.WENT), None)
        would = winner.pod if winner is not None else str(document.reason)
        text.append(" went to ").append(went or "where nobody knows", style="bold")
        return text.append(f", as before; lorapick: {would}", style="dim")
    if winner is not None:
        return text.append(" went to ").append(winner.pod, style="bold green")
    reason = f" ({document.reason})" if document.reason is not None else ""
    return text.append(" was ").append(document.outcome + reason, style="bold red")


def _show_winner(winner: VerdictDocument, document: ExplanationDocument, console: Console) -> None:
    score = "without a score" if winner.score is None else f"with {winner.score:.5f}"
    console.print()
    console.print(f"  {winner.pod} won {score}", style="bold")
    table = Table.grid(padding=(0, 2))
    for term in _terms(document):
        value = winner.scorers.get(term) if winner.terms is None else getattr(winner.terms, term)
        table.add_row(
            f"    {term}",
            "unknown" if value is None else f"{value:.3f}",
            f"× {document.weights[term]:.2f}",
            f"= {_number(winner.contributions.get(term))}",
            Text(_because(winner, term), style="dim"),
        )
    console.print(table)


def _pair_table(pair: SplitCosts, *, prefill: PodName | None, decode: PodName) -> Padding:
    """Expected seconds of both ways, the one taken first in the order of time."""
    counted = [("counted", "with loads that nobody waits for", pair.counted)] if pair.besides else []
    table = Table.grid(padding=(0, 2))
    for name, where, seconds in (
        ("prefill", prefill or "the best other pod", pair.prefill),
        ("KV transfer", "", pair.transfer),
        ("decode", decode, pair.decode),
        ("together", "taken" if prefill is not None else "", pair.together),
        *counted,
        ("alone", f"all on {decode}{'' if prefill is not None else ', taken'}", pair.alone),
    ):
        table.add_row(f"    {name}", "unknown" if seconds is None else f"{seconds:.4f} s", Text(where, style="dim"))
    return Padding(table, (1, 0, 0, 0))


_SIDE = ("queue", "load", "prompt", "transfer", "besides", "counted")
"""Seconds that make up what a pod would have cost as the one that prefills, and their sum."""


def _side_table(side: Sequence[PrefillVerdictDocument], *, decode: PodName | None) -> Padding:
    """What each pod would have cost as the one that prefills, or why it was no candidate."""
    by_score = any(verdict.score is not None for verdict in side)
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="dim")
    table.add_column("to prefill" if decode is None else f"to prefill for {decode}", overflow="fold")
    for name in ("score",) if by_score else _SIDE:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why not")
    for verdict in side:
        seconds = [_seconds(getattr(verdict, f"{name}_s")) for name in _SIDE]
        table.add_row(verdict.pod, *([_number(verdict.score)] if by_score else seconds), _why_no_prefill(verdict))
    return Padding(table, (1, 0, 0, 0))


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _why_no_prefill(verdict: PrefillVerdictDocument) -> Text:
    word = "taken" if verdict.chosen else "" if verdict.reason is None else str(verdict.reason)
    text = Text(word, style="green" if verdict.chosen else "yellow" if verdict.counted_s is None else "")
    details = [*([verdict.tier] if verdict.tier is not None else []), *(["prefills failed there"] * verdict.paused)]
    return text.append(f"{': ' if word else ''}{'; '.join(details)}", style="dim") if details else text


def _because(verdict: VerdictDocument, term: str) -> str:
    if term == "adapter":
        return _where(verdict) + (", pinned here" if verdict.pinned else "")
    if term == "queue":
        return "depth " + _queue(verdict)
    if term == "gpu":
        return f"GPU figure from {verdict.gpu_source}"
    return ""


def _losers_table(losers: Sequence[VerdictDocument], document: ExplanationDocument) -> Table:
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="dim")
    table.add_column("pod", overflow="fold")
    for name in ("score", *_terms(document)):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why not")
    for verdict in losers:
        parts = [_number(verdict.contributions.get(term)) for term in _terms(document)]
        table.add_row(verdict.pod, _number(verdict.score), *parts, _why_not(verdict))
    return table


def _why_not(verdict: VerdictDocument) -> Text:
    reason = str(verdict.reason or "unknown")
    text = Text(reason, style="yellow" if verdict.score is None else "")
    details = [f"queue {_queue(verdict)}"]
    if verdict.tier is not None:
        details.append(_where(verdict))
    if verdict.gpu_source is not GpuSource.UNKNOWN:
        details.append(f"GPU figure from {verdict.gpu_source}")
    return text.append(f": {'; '.join(details)}", style="dim")


def _terms(document: ExplanationDocument) -> list[str]:
    return [term for term in TERMS if term in document.weights] or list(document.weights)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5f}"


def _queue(verdict: VerdictDocument) -> str:
    depth = "unknown" if verdict.queue_depth is None else f"{verdict.queue_depth:g}"
    return f"{depth} of {verdict.max_queue}"


def _where(verdict: VerdictDocument) -> str:
    if verdict.tier is None:
        return "-"
    known = verdict.tier if verdict.source is None else f"{verdict.tier}, {verdict.source}"
    if verdict.evidence is None or verdict.evidence_age_s is None:
        return known
    return f"{known}, {verdict.evidence} {span(verdict.evidence_age_s)} before"


def _counted(losers: Sequence[VerdictDocument]) -> str:
    reasons = Counter(str(verdict.reason or "unknown") for verdict in losers)
    told = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    return f"{len(losers)} more: {told}"
