"""What `lorapick simulate` prints: figures side by side, and the article's beside ours.

In: a scenario, a comparison, reports. Out: tables on a console. Not here: figures (see `sim.metrics`).
"""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lorapick.sim.compare import Comparison, Estimate
from lorapick.sim.hardware import PRESETS
from lorapick.sim.metrics import METRICS, Metric, shown
from lorapick.sim.report import RunReport
from lorapick.sim.scenario import Expected, Scenario


def print_comparison(console: Console, scenario: Scenario, compared: Comparison) -> None:
    """All metrics of the whole run, a column per policy."""
    seeds = f"{len(compared.seeds)} seeds, 95 % intervals" if len(compared.seeds) > 1 else f"seed {compared.seeds[0]}"
    hardware = PRESETS[scenario.fleet.hardware]
    mark = " (extrapolated)" if hardware.extrapolated else ""
    console.print(f"[bold]{scenario.name}[/bold]: {scenario.title}")
    console.print(
        f"{scenario.fleet.pods} pods x {scenario.fleet.limits.max_loras} slots, {hardware.name}{mark}; {seeds}"
    )
    table = Table()
    table.add_column("")
    for policy in compared.policies:
        table.add_column(policy, justify="right")
    for metric in METRICS.values():
        table.add_row(
            metric.label, *(estimated(compared.of(metric.name, policy), metric) for policy in compared.policies)
        )
    console.print(table)


def estimated(value: Estimate, metric: Metric) -> str:
    """`12.3 ± 0.4 ms`."""
    text = shown(value.mean, metric.unit)
    if value.mean is None or not value.half_width:
        return text
    number, _, unit = text.partition(" ")
    half, _, _ = shown(value.half_width, metric.unit).partition(" ")
    return f"{number} ± {half} {unit}".rstrip()


def print_expected(console: Console, scenario: Scenario, compared: Comparison, reports: Sequence[RunReport]) -> None:
    """The article's figures beside ours, for the policies that ran."""
    table = Table(title="beside the article")
    for name in ("", "policy", "when", "article", "ours", "note"):
        table.add_column(name, justify="right" if name in ("article", "ours") else "left")
    for each in scenario.expect:
        for policy in compared.policies if each.policy is None else (each.policy,):
            if policy in compared.policies:
                metric = METRICS[each.metric]
                ours = estimated(compared.of(metric.name, policy, each.period), metric)
                table.add_row(metric.label, policy, each.period or "all", articles(each, metric), ours, each.note)
    if table.row_count:
        console.print(table)
    del reports


def articles(each: Expected, metric: Metric) -> str:
    """The article's figure as people read it."""
    return each.article if isinstance(each.article, str) else shown(each.article, metric.unit)
