"""The page: figures side by side, the article's beside ours, and four charts per policy.

In: a scenario, its reports, their comparison. Out: one HTML text that needs nothing else. Not here: how charts are
drawn (see `charts`), opening or writing files.
"""

from collections.abc import Sequence
from html import escape

from lorapick.model.units import Seconds
from lorapick.sim.compare import Comparison, Estimate, estimate
from lorapick.sim.hardware import PRESETS
from lorapick.sim.metrics import METRICS, Metric, shown
from lorapick.sim.page.assets import STYLE
from lorapick.sim.page.charts import Area, Axis, Line, Span, line_chart, share_chart, slot_chart
from lorapick.sim.page.scales import log_range, ticks
from lorapick.sim.report import RunReport
from lorapick.sim.scenario import Expected, Scenario

GROUPS = {
    "inference": ("inference", ("prefill", "decode")),
    "drain": ("drain", ("drain",)),
    "transfer": ("transfer", ("deallocation", "transfer", "merge")),
    "warm": ("warm-up", ("initialisation", "warm_up")),
    "idle": ("idle", ("idle",)),
    "down": ("no process", ("down",)),
}
"""Where GPU time goes, by style: its name, and the parts of `GpuTime` in it."""


def page(scenario: Scenario, reports: Sequence[RunReport], *, compared: Comparison) -> str:
    """Everything about some runs of one scenario; charts show the first seed of each policy."""
    first = {report.policy: report for report in reversed(reports)}
    shown_reports = [first[policy] for policy in compared.policies]
    body = "".join(
        (
            _head(scenario, compared),
            _figures(compared, "Figures", period=None),
            _bounds(compared, reports),
            *(_figures(compared, f"Period: {period.name}", period=period.name) for period in scenario.periods),
            _article(scenario, compared),
            *_charts(scenario, shown_reports),
        )
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(scenario.name)}</title><style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def _head(scenario: Scenario, compared: Comparison) -> str:
    hardware, fleet = PRESETS[scenario.fleet.hardware], scenario.fleet
    mark = ", extrapolated" if hardware.extrapolated else ""
    facts = (
        f"{fleet.pods} pods × {fleet.limits.max_loras} slots, {len(scenario.names())} adapters, "
        f"{hardware.name}{mark}; {scenario.source}; seeds "
    )
    seeds = ", ".join(str(seed) for seed in compared.seeds)
    return (
        f"<h1>{escape(scenario.name)}: {escape(scenario.title)}</h1>"
        f'<p class="soft">{escape(facts)}{seeds}</p>'
        "<details><summary>Assumptions and sources</summary>"
        f"{_list(scenario.assumes)}{_list(hardware.sources)}</details>"
    )


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


# -- tables


def _figures(compared: Comparison, title: str, *, period: str | None) -> str:
    heads = "".join(f"<th>{escape(policy)}</th>" for policy in compared.policies)
    shown_metrics = [metric for metric in METRICS.values() if not metric.rare or _has_any(metric, compared)]
    rows = "".join(_row(metric, compared, period=period) for metric in shown_metrics)
    note = f"<p class='soft'>± is half of a 95 % confidence interval over {len(compared.seeds)} seeds.</p>"
    table = f'<div class="scroll"><table><tr><th></th>{heads}</tr>{rows}</table></div>'
    whole = f"{table}{note if len(compared.seeds) > 1 else ''}"
    if period is not None:
        return f"<details><summary>{escape(title)}</summary>{whole}</details>"
    return f"<h2>{escape(title)}</h2>{whole}"


def _has_any(metric: Metric, compared: Comparison) -> bool:
    return any(compared.of(metric.name, policy).mean for policy in compared.policies)


def _bounds(compared: Comparison, reports: Sequence[RunReport]) -> str:
    """What the loads are measured by."""
    lines = []
    for policy in compared.policies:
        own = [report for report in reports if report.policy == policy and report.bounds is not None]
        served = estimate([report.bounds.service_order for report in own if report.bounds])
        arrived = estimate([report.bounds.arrival_order for report in own if report.bounds])
        if own:
            loads = compared.of("loads", policy)
            done, least, arrivals = (_estimate(each, METRICS["loads"]) for each in (loads, served, arrived))
            words = f"{done} loads; as served at least {least}, as arrived at least {arrivals}"
            lines.append(f"<li>{escape(policy)}: {words}</li>")
    head = "<p class='soft'>The fewest loads that any routing and replacement needs, all of the future known:</p>"
    return f"{head}<ul>{''.join(lines)}</ul>" if lines else ""


def _row(metric: Metric, compared: Comparison, *, period: str | None) -> str:
    cells = "".join(
        f"<td>{_estimate(compared.of(metric.name, policy, period=period), metric)}</td>" for policy in compared.policies
    )
    return f'<tr><td title="{escape(metric.means)}">{escape(metric.label)}</td>{cells}</tr>'


def _estimate(value: Estimate, metric: Metric) -> str:
    text = escape(shown(value.mean, metric.unit))
    if value.mean is None or not value.half_width:
        return text
    half = shown(value.half_width, metric.unit, beside=value.mean)
    return f'{text} <span class="half">± {escape(half.split(" ")[0])}</span>'


def _article(scenario: Scenario, compared: Comparison) -> str:
    rows = [
        _expected(each, policy, compared=compared)
        for each in scenario.expect
        for policy in (compared.policies if each.policy is None else (each.policy,))
        if policy in compared.policies
    ]
    if not rows:
        return ""
    heads = "<th></th><th class='words'>policy</th><th class='words'>when</th><th>article</th><th>ours</th><th></th>"
    return (
        "<h2>Beside the article</h2><p class='soft'>Its figures were no target: coefficients were fixed before.</p>"
        f'<div class="scroll"><table><tr>{heads}</tr>{"".join(rows)}</table></div>'
    )


def _expected(each: Expected, policy: str, *, compared: Comparison) -> str:
    metric = METRICS[each.metric]
    article = each.article if isinstance(each.article, str) else shown(each.article, metric.unit)
    ours = _estimate(compared.of(metric.name, policy, period=each.period), metric)
    return (
        f"<tr><td>{escape(metric.label)}</td><td class='words'>{escape(policy)}</td>"
        f"<td class='words'>{escape(each.period or 'all')}</td><td>{escape(article)}</td><td>{ours}</td>"
        f"<td class='words soft'>{escape(each.note)}</td></tr>"
    )


# -- charts


def _charts(scenario: Scenario, reports: Sequence[RunReport]) -> list[str]:
    """The same axes for all policies, so that they can be compared by eye."""
    latencies = [
        value
        for report in reports
        for series in (report.series.p50_ms, report.series.p99_ms)
        for value in series
        if value is not None
    ]
    latency = Axis(*log_range(latencies), log=True)
    highest = max((rate for report in reports for pod in report.series.swap_rate for rate in pod), default=0.0)
    top = ticks(highest)[-1] if highest else 1.0
    rate = Axis(0.0, top if top >= highest else top + ticks(highest)[1])
    return [_policy(report, begin=scenario.run.begin, latency=latency, rate=rate) for report in reports]


def _policy(report: RunReport, *, begin: Seconds, latency: Axis, rate: Axis) -> str:
    series = report.series
    span = Span(report.whole.start, report.whole.end, begin)
    lines = [
        Line("p50", "p50", series.p50_ms),
        Line("p95", "p95", series.p95_ms),
        Line("p99", "p99", series.p99_ms),
    ]
    pods = [Line(row.pod, "pod", swaps) for row, swaps in zip(report.pods, series.swap_rate, strict=True)]
    mean = [sum(each) / len(each) for each in zip(*series.swap_rate, strict=True)]
    timeline = report.timeline
    return (
        f'<h2>{escape(report.policy)} <span class="soft">seed {report.seed}</span></h2><div class="charts">'
        + _figure(
            "Latency of requests by arrival, ms, logarithmic",
            _keys([("p50", "p50"), ("p95", "p95"), ("p99", "p99")], stroke=True),
            chart=line_chart(span, series.t, lines=lines, axis=latency),
        )
        + _figure(
            "Swaps per second and pod",
            _keys([("each pod", "pod"), ("mean", "mean")], stroke=True),
            chart=line_chart(span, series.t, lines=[*pods, Line("mean", "mean", mean)], axis=rate),
        )
        + _figure(
            "Where GPU time went, %",
            _keys([(name, style) for style, (name, _) in GROUPS.items()], stroke=False),
            chart=share_chart(span, series.t, window=series.window, areas=_areas(report)),
        )
        + _figure(
            "Who held which slot",
            f"looked at every {timeline.every:g} s; what came and went in between is not drawn; a colour per adapter",
            chart=slot_chart(span, timeline),
        )
        + "</div>"
    )


def _areas(report: RunReport) -> list[Area]:
    gpu, count = report.series.gpu, len(report.series.t)
    return [
        Area(name, style, [sum(gpu[part][at] for part in parts) for at in range(count)])
        for style, (name, parts) in GROUPS.items()
    ]


def _figure(title: str, keys: str, *, chart: str) -> str:
    return f'<figure><figcaption><h3>{escape(title)}</h3><div class="soft">{keys}</div></figcaption>{chart}</figure>'


def _keys(keys: Sequence[tuple[str, str]], *, stroke: bool) -> str:
    shape = ' class="stroke"' if stroke else ""
    return "".join(
        f'<span class="key"><i{shape} style="background:var(--{style})"></i>{escape(name)}</span>'
        for name, style in keys
    )
