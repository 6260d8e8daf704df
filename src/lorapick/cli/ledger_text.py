"""The ledger's answers in words and tables.

In: a `LedgerReport`, or rows. Out: lines on a console. Not here: the arithmetic (`core.ledger.report`).
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lorapick.cli.admin_client import printable
from lorapick.core.ledger.report import Asked
from lorapick.live.ledger.answers import View
from lorapick.model.ledger import LoadBy, LoadRow, RequestRow, ResidencyRow
from lorapick.model.ledger_report import Conservation, EvictionCost, Latencies, LedgerReport, Parts
from lorapick.model.units import Seconds

_AGREE = 0.02
"""Product and count of slots in use may differ by this share: counts are cut between two of them."""
_MUCH_QUEUE = 0.3
"""Of the latency beyond P95, from which on waiting at the picker is what made it slow."""
_PARTS = (
    ("queue", "waited at the picker for a place"),
    ("load_wait", "waited for its adapter to be loaded"),
    ("drain", "stood still while its pod loaded others"),
    ("served", "the rest: served by the pod"),
)


def show_report(report: LedgerReport, console: Console) -> None:
    """Print one report."""
    window = report.window
    only = [
        f"{name} {value}" for name, value in (("adapter", report.adapter), ("pod", report.pod)) if value is not None
    ]
    named = "".join(f", {printable(each)}" for each in only)
    console.print(Text(f"{_moments(window)}{named}", style="bold"))
    if report.watched_since is None or report.watched_since > window.since:
        since = "nothing yet" if report.watched_since is None else f"nothing before {_moment(report.watched_since)}"
        console.print(Text(f"  the ledger has {since}", style="yellow"))
    _show_pickers(report, console)
    console.print(_latencies(report))
    if report.refused:
        told = ", ".join(f"{count} {reason}" for reason, count in report.refused.items())
        console.print(f"  refused, which is in no latency: {told}; `lorapick ledger requests --outcome rejected`")
    if report.beyond is None:
        console.print("  no request was served in this time")
    else:
        _show_parts(report.beyond, report.rest, console)
        _show_queue(report, report.beyond, console)
        _show_evictions(report, console)
        _show_without(report, console)
    _show_conservation(report.conservation, console)
    if report.rows_lost:
        console.print(
            Text(f"  {report.rows_lost} rows are missing: the file could not be written in time", style="red")
        )


def _show_pickers(report: LedgerReport, console: Console) -> None:
    """Several runs in one file are one picker that was started again, or fleets that have nothing in common."""
    if len(report.pickers) > 1:
        last = max(report.pickers)
        console.print(
            f"  {len(report.pickers)} runs of a picker are in this time, the last since {_moment(last)}; if they were "
            f"of different fleets, figures of pods and slots mix them: --from {_argument(last)} is the last alone",
            style="yellow",
        )


def _argument(moment: Seconds) -> str:
    """As --from takes it, after the moment and not before it."""
    return f"{datetime.fromtimestamp(ceil(moment), UTC):%Y-%m-%dT%H:%M:%SZ}"


def _latencies(report: LedgerReport) -> Table:
    table = _table("", "requests", "P50", "P95", "hits", "not served")
    for name, row in (("this time", report.window), ("the hour before", report.before)):
        others = {"failed": row.failed, "rejected": row.rejected, "abandoned": row.abandoned}
        told = ", ".join(f"{count} {word}" for word, count in others.items() if count)
        hits = "-" if row.hit_ratio is None else f"{row.hit_ratio:.1%}"
        _add(table, name, str(row.served), _seconds(row.p50), _seconds(row.p95), hits, told or "-")
    return table


def _show_parts(beyond: Parts, rest: Parts | None, console: Console) -> None:
    console.print()
    console.print(f"  the {beyond.requests} requests beyond P95, in the mean, beside the others")
    table = _table("", "beyond P95", "others", "")
    for name, words in _PARTS:
        _add(
            table,
            f"  {name}",
            _seconds(getattr(beyond, name)),
            _seconds(getattr(rest, name, None)),
            Text(words, style="dim"),
        )
        if name == "served" and beyond.prefill is not None:
            for part in ("prefill", "decode"):
                _add(table, f"    {part}", _seconds(getattr(beyond, part)), _seconds(getattr(rest, part, None)), "")
    _add(table, "  together", _seconds(beyond.latency), _seconds(rest.latency if rest else None), "")
    console.print(table)


def _show_queue(report: LedgerReport, beyond: Parts, console: Console) -> None:
    """Loads cost nothing while requests wait at the picker: what they wait for is a slot, or room in a queue."""
    if beyond.queue < _MUCH_QUEUE * beyond.latency:
        return
    console.print()
    console.print(
        f"  {beyond.queue / beyond.latency:.0%} of it is queue: no pod had a slot for the adapter, or room for the "
        "request",
        style="yellow",
    )
    held = report.conservation
    used = held.counted if held.counted is not None else held.slots_in_use
    if used is not None and report.adapters > used:
        told = (
            f"  {report.adapters} adapters were asked for, and {used:.3g} slots were in use: waiting for a slot is the "
            "cost of too few slots for the adapters asked for, which is thrash; more slots, or fewer adapters, help "
            "(`lorapick doctor`). What P95 would have been without loads, below, leaves this wait as it is"
        )
    else:
        told = (
            "  adapters asked for had slots enough: pods were full of requests; more pods help, or fewer requests "
            "(runbook critical_queues)"
        )
    console.print(told)


def _show_evictions(report: LedgerReport, console: Console) -> None:
    console.print()
    if not report.evictions:
        console.print("  no eviction cost these requests anything")
    else:
        shown = (
            "" if len(report.evictions) == report.groups else f", the first {len(report.evictions)} of {report.groups}"
        )
        console.print(f"  evictions by what the reloads after them cost these requests{shown}")
        table = _table("evicted", "from", "by", "times", "reloads", "requests", "waited", "others stood", "beyond P95")
        for each in report.evictions:
            _add(
                table,
                *(each.adapter, each.pod, _by(each)),
                *(str(each.evictions), str(each.reloads), str(each.requests)),
                *(_seconds(each.waited), _seconds(each.drained), _seconds(each.beyond)),
            )
        console.print(table)
    other = report.other_loads
    if other.loads:
        cost = f"waited {_seconds(other.waited)}, others stood {_seconds(other.drained)}"
        console.print(Text(f"  {other.loads} loads that followed no eviction (first ones, say): {cost}", style="dim"))


def _by(each: EvictionCost) -> str:
    return each.by if each.by is not None else f"({each.why})"


def _show_without(report: LedgerReport, console: Console) -> None:
    console.print()
    console.print("  what P95 would have been without what reloads cost, all else as it was (a counterfactual)")
    for each in report.without:
        name = "no load at all" if each.evictions is None else f"without the costliest {each.evictions}"
        console.print(f"    {name}: P95 {_seconds(each.p95)}, P50 {_seconds(each.p50)}")


def _show_conservation(held: Conservation, console: Console) -> None:
    console.print()
    if held.mean_residency is None or held.per_second is None or held.slots_in_use is None:
        console.print("  no adapter was in a slot in this time")
        return
    line = (
        f"  {held.stays} stays in slots, {held.at_start} of them from before: mean residency "
        f"{_seconds(held.mean_residency)} x {held.per_second:.4g} a second = {held.slots_in_use:.4g} slots in use"
    )
    console.print(line)
    if held.counted is not None:
        apart = abs(held.counted - held.slots_in_use) > _AGREE * max(held.counted, 1.0)
        note = "; rows are missing, or the time is too short for counts every ten seconds" if apart else ""
        console.print(
            f"  counted as adapters come and leave: {held.counted:.4g}{note}", style="yellow" if apart else ""
        )


def show_rows(view: View, rows: Sequence[Any], *, asked: Asked, console: Console) -> None:
    """Print rows of one kind."""
    if not rows:
        console.print(f"no {view} from {_moment(asked.since)} to {_moment(asked.until)}")
        return
    makers: dict[View, Callable[[Sequence[Any]], Table]] = {
        View.REQUESTS: _requests,
        View.LOADS: _loads,
        View.EVICTIONS: _evictions,
    }
    console.print(makers[view](rows))
    if len(rows) == asked.most:
        console.print(Text(f"the last {len(rows)}; --most shows more", style="dim"))


def _requests(rows: Sequence[RequestRow]) -> Table:
    table = _table(
        "ended", "request", "adapter", "pod", "outcome", "reason", "hit", "latency", *(name for name, _ in _PARTS)
    )
    for row in rows:
        hit = {None: "-", True: "yes", False: "no"}[row.hit]
        parts = [_seconds(getattr(row, name)) for name, _ in _PARTS]
        name = row.adapter or row.model or "-"
        latency = _seconds(row.ended - row.arrived)
        _add(
            table,
            _moment(row.ended),
            row.id or "-",
            name,
            _pods(row),
            row.outcome,
            row.reason or "-",
            hit,
            latency,
            *parts,
        )
    return table


def _pods(row: RequestRow) -> str:
    """Who served it, after whom."""
    pod = row.pod or "-"
    return pod if row.prefilled_by is None else f"{pod} after {row.prefilled_by}"


def _loads(rows: Sequence[LoadRow]) -> Table:
    table = _table("over", "adapter", "pod", "from", "took", "by", "result")
    for row in rows:
        took = None if row.begun is None or row.over is None else row.over - row.begun
        by = {LoadBy.REQUEST: f"request {row.request}", LoadBy.CONTROLLER: f"controller: {row.why}"}
        told = by.get(row.caused_by, row.caused_by)
        _add(
            table,
            _moment(row.over),
            row.adapter,
            row.pod,
            row.tier,
            _seconds(took),
            told,
            str(row.result or "under way"),
        )
    return table


def _evictions(rows: Sequence[ResidencyRow]) -> Table:
    table = _table("left", "adapter", "pod", "stayed", "requests", "since the last", "by")
    for row in rows:
        stayed = None if row.until is None else row.until - row.since
        idle = None if row.last_request is None or row.until is None else row.until - row.last_request
        by = row.evicted_by or f"({row.why})"
        _add(table, _moment(row.until), row.adapter, row.pod, _seconds(stayed), str(row.requests), _seconds(idle), by)
    return table


def _add(table: Table, *cells: str | Text) -> None:
    """A row. Names come from clients: neither the terminal nor the table may take them for more than letters."""
    table.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in cells))


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="dim")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in _FIGURES else "left", overflow="fold")
    return table


_FIGURES = {
    *("requests", "P50", "P95", "hits", "beyond P95", "others", "times", "reloads", "waited", "others stood"),
    *("latency", "queue", "load_wait", "drain", "served", "took", "stayed", "since the last"),
}


def _seconds(value: Seconds | None) -> str:
    if value is None:
        return "-"
    if value < 1.0:
        return f"{value * 1000:.0f} ms"
    if value < 600.0:
        return f"{value:.3g} s"
    return f"{value / 60:.3g} min" if value < 36_000.0 else f"{value / 3600:.3g} h"


def _moments(window: Latencies) -> str:
    begin, end = (datetime.fromtimestamp(t, UTC).astimezone() for t in (window.since, window.until))
    last = f"{end:%H:%M:%S}" if end.date() == begin.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"{begin:%Y-%m-%d %H:%M:%S} to {last} {end:%Z}"


def _moment(t: Seconds | None) -> str:
    return "-" if t is None else f"{datetime.fromtimestamp(t, UTC).astimezone():%Y-%m-%d %H:%M:%S}"
