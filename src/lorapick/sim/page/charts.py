"""Charts as SVG: lines over time, shares over time, and who holds which slot.

In: values, axes. Out: SVG text; colours are classes of the page's style. Not here: which charts a page has.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from lorapick.model.units import Seconds
from lorapick.sim.page.scales import Scale, clock_ticks, log_ticks, ticks
from lorapick.sim.sampling import Timeline

WIDTH, HEIGHT = 560.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 8.0, 8.0, 22.0


class Span(NamedTuple):
    """The stretch of time, or of another number from 0, that a chart shows."""

    start: Seconds
    end: Seconds
    begin: Seconds | None
    """Seconds after midnight at t = 0. None: the numbers are no times."""


class Line(NamedTuple):
    """One line: None breaks it."""

    name: str
    style: str
    """Class of the page's style."""
    values: Sequence[float | None]


class Axis(NamedTuple):
    """A vertical axis."""

    low: float
    high: float
    log: bool = False


class Area(NamedTuple):
    """Shares of a whole by what they are."""

    name: str
    style: str
    shares: Sequence[float]


def line_chart(span: Span, times: Sequence[Seconds], *, lines: Sequence[Line], axis: Axis) -> str:
    """Lines over time."""
    across, up = _across(span), Scale(axis.low, axis.high, HEIGHT - _BOTTOM, _TOP, axis.log)
    marks = log_ticks(axis.low, axis.high) if axis.log else ticks(axis.high)
    parts = [_grid(span, [(up(each), _plain(each)) for each in marks])]
    for line in lines:
        path = _path(times, line.values, across=across, up=up)
        parts.append(f'<path class="line {line.style}" d="{path}">{_title(line.name)}</path>')
    return _svg("".join(parts), HEIGHT)


def _path(times: Sequence[Seconds], values: Sequence[float | None], *, across: Scale, up: Scale) -> str:
    pieces, pen = [], "M"
    for t, value in zip(times, values, strict=True):
        if value is None:
            pen = "M"
            continue
        pieces.append(f"{pen}{across(t):.1f} {up(value):.1f}")
        pen = "L"
    return "".join(pieces)


def share_chart(span: Span, times: Sequence[Seconds], *, window: Seconds, areas: Sequence[Area]) -> str:
    """Shares of a whole over time, one on top of the other; every window is a step."""
    across, up = _across(span), Scale(0.0, 1.0, HEIGHT - _BOTTOM, _TOP)

    def steps(values: Sequence[float]) -> list[tuple[float, float]]:
        return [(across(t + side), up(value)) for t, value in zip(times, values, strict=True) for side in (0.0, window)]

    below = [0.0] * len(times)
    parts = []
    for area in areas:
        above = [low + share for low, share in zip(below, area.shares, strict=True)]
        if any(area.shares):
            outline = steps(above) + steps(below)[::-1]
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)
            parts.append(f'<polygon class="area {area.style}" points="{points}">{_title(area.name)}</polygon>')
        below = above
    marks = [(up(each), f"{100 * each:.0f}") for each in (0.0, 0.25, 0.5, 0.75, 1.0)]
    parts.append(_grid(span, marks))
    return _svg("".join(parts), HEIGHT)


def slot_chart(span: Span, timeline: Timeline, *, most_rows: int = 128) -> str:
    """Pods x slots over time; each adapter has a colour. Pods beyond `most_rows` rows are left out."""
    pods = max(1, min(len(timeline.pods), most_rows // max(1, timeline.slots)))
    row = max(3.0, min(12.0, 360.0 / (pods * timeline.slots)))
    gap = 3.0
    height = _TOP + pods * (timeline.slots * row + gap) + _BOTTOM
    across = _across(span)
    by_adapter: dict[int, list[str]] = {}
    for held in timeline.held:
        if held.pod < pods and held.slot < timeline.slots:
            top = _TOP + held.pod * (timeline.slots * row + gap) + held.slot * row
            x, end = across(held.start), across(held.end)
            by_adapter.setdefault(held.adapter, []).append(
                f"M{x:.1f} {top:.1f}h{end - x:.1f}v{row - 0.5:.1f}h{x - end:.1f}z"
            )
    parts = [
        f'<path style="fill:{_hue(adapter)}" d="{"".join(pieces)}">{_title(timeline.adapters[adapter])}</path>'
        for adapter, pieces in sorted(by_adapter.items())
    ]
    names = [
        (_TOP + pod * (timeline.slots * row + gap) + timeline.slots * row / 2, timeline.pods[pod])
        for pod in range(pods)
    ]
    parts.append(_time_axis(span, height))
    parts += [
        f'<text class="tick" x="{_LEFT - 6:.0f}" y="{y + 3:.1f}" text-anchor="end">{escape(name)}</text>'
        for y, name in names
    ]
    return _svg("".join(parts), height)


def _hue(number: int) -> str:
    """Neighbours in number are far apart in colour: steps of the golden angle."""
    return f"oklch({0.62 + 0.12 * (number % 3) / 2:.2f} 0.13 {number * 137.508 % 360:.0f})"


def _across(span: Span) -> Scale:
    return Scale(span.start, span.end, _LEFT, WIDTH - _RIGHT)


def _grid(span: Span, marks: Sequence[tuple[float, str]]) -> str:
    parts = []
    for y, name in marks:
        parts.append(f'<path class="grid" d="M{_LEFT:.0f} {y:.1f}H{WIDTH - _RIGHT:.0f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 6:.0f}" y="{y + 3:.1f}" text-anchor="end">{name}</text>')
    parts.append(_time_axis(span, HEIGHT))
    return "".join(parts)


def _time_axis(span: Span, height: float) -> str:
    across = _across(span)
    parts = [f'<path class="axis" d="M{_LEFT:.0f} {height - _BOTTOM:.1f}H{WIDTH - _RIGHT:.0f}"/>']
    for t, name in _along(span):
        x = across(t)
        anchor = "end" if x > WIDTH - _RIGHT - 20 else "middle"
        parts.append(f'<path class="axis" d="M{x:.1f} {height - _BOTTOM:.1f}v4"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{height - 6:.1f}" text-anchor="{anchor}">{name}</text>')
    return "".join(parts)


def _along(span: Span) -> list[tuple[float, str]]:
    if span.begin is None:
        return [(each, _plain(each)) for each in ticks(span.end) if each >= span.start]
    return clock_ticks(span.start, span.end, begin=span.begin)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _svg(inside: str, height: float) -> str:
    return f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img">{inside}</svg>'
