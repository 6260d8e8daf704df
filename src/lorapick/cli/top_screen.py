"""How `lorapick top` looks: lines of text for a terminal of a given size.

In: a `Board`, what the user wants to see of it, a width and a height in characters. Out: lines that fit. Every mark has
a letter or a word beside its colour. Not here: the terminal itself (see `cli.top`), lines of pods and of adapters (see
`cli.top_rows`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from lorapick.cli.admin_client import printable
from lorapick.cli.top_board import Board
from lorapick.cli.top_rows import LEGEND, ORDERS, adapter_lines, adapters_head, fit, pod_lines, pods_head
from lorapick.live.admin_views import Frame
from lorapick.live.publish import AlertRow, DecisionRow
from lorapick.model.alerts import Severity
from lorapick.model.signals import FleetSignals
from lorapick.model.units import Seconds
from lorapick.wire.words import span

RUNBOOKS = "/runbooks/"
"""Path of the admin API below which each alert has its page."""
MOST_ALERTS = 4
MOST_LINES = 3
"""Lines of the verdict, and of an alert, where there is the fleet to show below."""
_LINES_MINUTES = 15
_BARS = "▁▂▃▄▅▆▇█"
_HEALTHY = {"healthy": "green", "idle": "", "warming_up": "", "watch": "yellow"}
_KEYS = "q quit  p pause  s sort  a alerts  ↑↓ PgUp PgDn scroll"
_PLAIN = Console()


@dataclass
class View:
    """What the user wants to see."""

    admin: str
    order: str = ORDERS[0]
    first: int = 0
    """Pods that are scrolled away above."""
    paused: bool = False
    alerts: bool = False
    """Only alerts, each with all its facts."""
    trouble: str | None = None
    """Why nothing new comes; None: it does."""
    keys: bool = True
    """Whether anybody can press one."""


def screen(board: Board, view: View, *, width: int, height: int) -> list[Text]:
    """At most `height` lines of at most `width` cells."""
    frame = board.frame
    if frame is None:
        return [cut(Text(f"lorapick top: {view.trouble or f'waiting for {view.admin}'}"), width)]
    head = _head(board, frame, view, width=width)
    if view.alerts:
        return [cut(line, width) for line in [*head, *_all_alerts(board.alerts, frame.now, width=width)][:height]]
    above = [*head, *_alerts(board.alerts, frame.now, width=width)]
    room = max(0, height - len(above) - 4 - view.keys)
    adapters = adapter_lines(board, most=min(8, room // 4), width=width) if room >= 8 else []
    decisions = _decisions(board.decisions[: min(6, room // 5)], frame.now) if room >= 8 else []
    most = max(1, room - len(adapters) - len(decisions))
    view.first = max(0, min(view.first, len(board.pods) - most))
    pods = pod_lines(board, order=view.order, width=width, rows=slice(view.first, view.first + most))
    lines = [*above, pods_head(board, width=width), *pods, _which(frame, view, shown=len(pods))]
    if adapters:
        lines += [adapters_head(width), *adapters]
    if decisions:
        lines += [Text("LAST DECISIONS", style="dim"), *decisions]
    if view.keys:
        lines.append(Text(_KEYS, style="dim"))
    return [cut(line, width) for line in lines[:height]]


def cut(line: Text, width: int) -> Text:
    """The line, no wider than that."""
    if cell_len(line.plain) > width:
        line = line.copy()
        line.truncate(width, overflow="ellipsis")
    return line


def wrapped(line: Text, width: int, *, most: int, indent: int = 0) -> list[Text]:
    """The line in as many lines as it needs, at most so many: then it ends in an ellipsis."""
    if cell_len(line.plain) <= width or indent >= width:
        return [line]
    first, *rest = line.wrap(_PLAIN, width)
    if not rest or most == 1:
        return [cut(line, width)]
    behind = line[len(first.plain) :]
    behind = behind[len(behind.plain) - len(behind.plain.lstrip()) :]
    lines = [*behind.wrap(_PLAIN, width - indent)]
    kept = lines[: most - 1]
    if lines[most - 1 :]:
        kept[-1] = cut(kept[-1] + Text(" ") + lines[most - 1], width - indent)
    for each in (first, *kept):
        each.rstrip()
    return [first, *(Text(" " * indent) + each for each in kept)]


def _which(frame: Frame, view: View, *, shown: int) -> Text:
    """Which pods are shown, and what their letters mean."""
    which = f"{view.first + 1}-{view.first + shown} of {frame.pods_total}" if shown else "no pods"
    return Text(f"{which} by {view.order}  {LEGEND}", style="dim")


# -- above


def _head(board: Board, frame: Frame, view: View, *, width: int) -> list[Text]:
    fleet = frame.fleet
    title = Text("lorapick top", style="bold")
    if view.paused:
        title.append("  PAUSED", style="bold reverse")
    title.append(f"  {view.admin}  {frame.policy}  up {span(frame.wall - frame.started_at)}", style="")
    title.append(f"  {frame.pods_ready}/{frame.pods_total} pods ready")
    health = str(frame.verdict.health)
    style = _HEALTHY.get(health, "bold red")
    verdict = Text(printable(frame.verdict.text), style=style)
    lines = [title, *wrapped(verdict, width, most=MOST_LINES)]
    if view.trouble is not None:
        lines.append(Text(f"NO NEWS, what follows is old: {view.trouble}", style="bold red"))
    loading = sum(pod.loading for pod in board.pods.values())
    asked = f"req/s {fleet.requests_per_second:.1f}  P95 {_time(fleet.latency_p95)}  TTFT P95 {_time(fleet.ttft_p95)}"
    hits = f"hits {_share(fleet.hit_ratio)} (believed {_share(fleet.believed_hit_ratio)})"
    slots = f"adapters/slots {_room(fleet)}  stays {_time(fleet.mean_residency)}"
    waits = f"loading {loading}  held {fleet.waiting}  full queues {fleet.critical_queues}"
    figures = (
        f"{asked}  swaps/s/pod {fleet.swaps_per_second:.2f}  {hits}",
        f"useful {_share(fleet.useful_share)}  {slots}  {waits}",
        *_splits(fleet),
    )
    lines += [line for each in figures for line in wrapped(Text(each), width, most=2)]
    lines.append(_lines(board))
    return lines


def _room(fleet: FleetSignals) -> str:
    """Active adapters and slots; of either side, where there are two."""
    sides = [f"{side.side} {side.active_adapters}/{side.slots}" for side in fleet.sides]
    return ", ".join(sides) if sides else f"{fleet.active_adapters}/{fleet.slots}"


def _splits(fleet: FleetSignals) -> Iterator[str]:
    """How many requests were prefilled on another pod, and why others were not; nothing where none is split."""
    every = sum(fleet.splits.values())
    if every:
        others = {word: count for word, count in fleet.splits.items() if word != "split"}
        why = ", ".join(f"{word.replace('_', ' ')} {count}" for word, count in others.items())
        yield f"split {fleet.splits.get('split', 0)} of {every} in 10 min{f'  not: {why}' if why else ''}"


def _lines(board: Board) -> Text:
    """Swap rate, P95 and useful share over the last minutes, each by its own scale."""
    points = [point for point in board.points if point.t >= board.points[-1].t - 60.0 * _LINES_MINUTES]
    drawn: dict[str, Sequence[float | None]] = {
        "swaps": [point.swaps_per_second for point in points],
        "P95": [point.latency_p95 for point in points],
        "useful": [point.useful_share for point in points],
    }
    parts = [f"{name} {sparkline(values)}" for name, values in drawn.items() if values]
    return Text(f"{_LINES_MINUTES} min: {'  '.join(parts)}" if parts else "no history yet", style="dim")


def sparkline(values: Sequence[float | None], *, cells: int = 16) -> str:
    """The values in so many characters, each the largest of its share; a blank where nothing is known."""
    known = [value for value in values if value is not None]
    top = max(known, default=0.0)
    cells = min(cells, len(values))
    drawn = ""
    for cell in range(cells):
        part = values[cell * len(values) // cells : (cell + 1) * len(values) // cells]
        highest = max((value for value in part if value is not None), default=None)
        drawn += " " if highest is None else _BARS[min(7, int(8 * highest / top))] if top > 0 else _BARS[0]
    return drawn


def _alerts(alerts: Sequence[AlertRow], now: Seconds, *, width: int) -> list[Text]:
    """Standing alerts, those that harm users first, each with its runbook."""
    ordered = _ordered(alerts)
    lines = [
        line
        for row in ordered[:MOST_ALERTS]
        for line in wrapped(_alert(row, now).append(f"  {_facts(row)}"), width, most=MOST_LINES, indent=2)
    ]
    if ordered[MOST_ALERTS:]:
        more = ", ".join(row.name for row in ordered[MOST_ALERTS:])
        lines.append(Text(f"and {len(ordered) - MOST_ALERTS} more: {more}", style="yellow"))
    return lines


def _all_alerts(alerts: Sequence[AlertRow], now: Seconds, *, width: int) -> list[Text]:
    """The same with a line for each fact, however many alerts there are."""
    lines = []
    for row in _ordered(alerts):
        lines.append(_alert(row, now))
        for name, value in row.facts.items():
            fact = Text(f"  {printable(name).replace('_', ' ')}: {printable(_said(value))}")
            lines += wrapped(fact, width, most=len(fact), indent=4)
    return lines or [Text("no alert stands")]


def _ordered(alerts: Sequence[AlertRow]) -> list[AlertRow]:
    return sorted(alerts, key=lambda row: (row.severity != Severity.PAGE, row.since, row.name))


def _alert(row: AlertRow, now: Seconds) -> Text:
    line = Text(f"{row.severity.upper()} {row.name}", style="bold red" if row.severity == Severity.PAGE else "yellow")
    return line.append(f" for {span(max(0.0, now - row.since))}  {RUNBOOKS}{row.name}", style="")


def _facts(row: AlertRow) -> str:
    return printable(" ".join(f"{key}={_said(value)}" for key, value in row.facts.items()))


def _said(value: str | float) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _time(seconds: Seconds | None) -> str:
    return "-" if seconds is None else span(seconds)


def _share(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.0f} %"


# -- below


def _decisions(rows: Sequence[DecisionRow], now: Seconds) -> list[Text]:
    return [_decision(row, now) for row in rows]


def _decision(row: DecisionRow, now: Seconds) -> Text:
    ago = span(max(0.0, now - row.t))
    line = Text(f"{fit(ago, 6)} {fit(row.request_id, 16)} {printable(row.model)} ")
    if row.outcome == "observed":
        went = row.served_by or "gateway's choice"
        return line.append(f"-> {printable(went)} (observed; lorapick: {printable(row.pod or str(row.reason))})")
    if row.pod is not None:
        return line.append(f"-> {printable(row.pod)} ({row.tier or 'base model'})")
    return line.append(f"{row.outcome} ({row.reason or '-'})", style="yellow" if row.outcome == "held" else "red")
