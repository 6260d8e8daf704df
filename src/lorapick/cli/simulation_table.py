"""What `lorapick simulate` prints: figures side by side, and the article's beside ours.

In: a scenario, comparisons, capacities. Out: tables on a console. Not here: figures (see `sim.metrics`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from lorapick.cli import simulation_details as details
from lorapick.cli.fitting_table import UNBOUNDED, print_table
from lorapick.cli.simulation_plan import Point
from lorapick.model.units import Seconds
from lorapick.sim.compare import Comparison, Estimate, estimate
from lorapick.sim.hardware import PRESETS
from lorapick.sim.metrics import METRICS, Metric, shown
from lorapick.sim.report import RunReport
from lorapick.sim.scenario import Expected, Scenario

FAMILY = ("served_rate", "p95_ms", "ttft_p95_ms", "swap_share", "loads")
"""Metrics of a family's table."""
COMMANDED = ("first_ttft_ms", "loads_commanded")
"""Those that follow where pods are told to load, or days begin."""
HEADLINES = ("p95_ms", "swap_share", "loads", "hit_ratio", "lost_share", "useful_share", "ttft_p95_ms", "served_rate")
"""Metrics of a narrow table, the ones that say most first."""
EXPECTED = ("", "policy", "when", "article", "ours", "note")
"""Columns of the article's figures."""
NO_FIGURE = "beside the article: it gives no figure for this"
EXPECTED_TITLE = "beside the article"
BOUNDS = {"fewest loads possible, as served": "service_order", "... as arrived": "arrival_order"}
"""Bounds below the number of loads, by what a report calls them."""
NARROW_BOUNDS = ("fewest as served", "fewest as arrived")
"""The same bounds as headings of a narrow table."""


def print_comparison(console: Console, scenario: Scenario, compared: Comparison, reports: Sequence[RunReport]) -> None:
    """All metrics of the whole run, a column per policy; or where those do not fit, a row, and what fits of metrics."""
    print_head(console, scenario, compared.seeds)
    console.print(scrapes(scenario, compared.policies), highlight=False)
    metrics = {
        metric.label: [estimated(compared.of(metric.name, policy), metric) for policy in compared.policies]
        for metric in METRICS.values()
        if not metric.rare or has_any(compared, metric.name)
    }
    bounds = {
        words: [bound(reports, policy, name=name) for policy in compared.policies] for words, name in BOUNDS.items()
    }
    table = _by_metric(compared.policies, metrics, bounds)
    if Measurement.get(console, console.options.update(max_width=UNBOUNDED), table).maximum <= console.width:
        console.print(table)
    else:
        console.print(_by_policy(compared.policies, metrics, bounds, width=console.width))
        console.print("all figures: a wider terminal, fewer policies, --html or --json", highlight=False)
    details.print_details(console, [details.Played(scenario, tuple(reports), compared)])
    details.print_commands(console, reports)
    for report in reports:
        if report.alerts:
            alerts = ", ".join(f"{alert} {count}" for alert, count in report.alerts.items())
            console.print(f"alerts raised, {report.policy}, seed {report.seed}: {alerts}", highlight=False)


def has_any(compared: Comparison, name: str) -> bool:
    """Whether some policy has something of a metric in the whole run."""
    return any(compared.of(name, policy).mean for policy in compared.policies)


def _by_metric(policies: Sequence[str], metrics: Mapping[str, list[str]], bounds: Mapping[str, list[str]]) -> Table:
    table = Table("")
    for policy in policies:
        table.add_column(policy, justify="right", no_wrap=True)
    for label, cells in metrics.items():
        table.add_row(label, *cells)
    table.add_section()
    for label, cells in bounds.items():
        table.add_row(label, *cells)
    return table


def _by_policy(
    policies: Sequence[str], metrics: Mapping[str, list[str]], bounds: Mapping[str, list[str]], *, width: int
) -> Table:
    """The metrics that say most, as many as fit, and beside the loads their bounds."""
    table = Table("policy")
    left = width - max(map(len, policies)) - 4
    chosen: list[list[str]] = []
    for label, cells in _headlines(metrics, bounds):
        # A heading may break at its spaces, figures may not.
        left -= max(map(len, (*cells, *label.split()))) + 3
        if left < 0:
            break
        table.add_column(label, justify="right", no_wrap=False)
        chosen.append(cells)
    for row in zip(policies, *chosen, strict=True):
        table.add_row(*row)
    return table


def _headlines(metrics: Mapping[str, list[str]], bounds: Mapping[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    for name in HEADLINES:
        yield METRICS[name].label, metrics[METRICS[name].label]
        if name == "loads":
            yield from zip(NARROW_BOUNDS, bounds.values(), strict=True)


def print_head(console: Console, scenario: Scenario, seeds: Sequence[int]) -> None:
    """What is simulated."""
    hardware = PRESETS[scenario.fleet.hardware]
    mark = " (extrapolated)" if hardware.extrapolated else ""
    counted = f"{len(seeds)} seeds, 95 % intervals" if len(seeds) > 1 else f"seed {seeds[0]}"
    console.print(f"[bold]{escape(scenario.name)}[/bold]: {escape(scenario.title)}", highlight=False)
    fleet = f"{scenario.fleet.pods} pods x {scenario.fleet.limits.max_loras} slots"
    console.print(f"{fleet}, {hardware.name}{mark}; {counted}", highlight=False)


def scrapes(scenario: Scenario, policies: Sequence[str]) -> str:
    """How often pods are looked at under each policy."""
    by: dict[float, list[str]] = {}
    for policy in policies:
        by.setdefault(scenario.scrape_interval(policy), []).append(policy)
    if len(by) == 1:
        return f"pods are scraped every {milliseconds(next(iter(by)))}"
    usual = max(by, key=lambda interval: len(by[interval]))
    others = "; ".join(
        f"every {milliseconds(interval)} under {', '.join(names)}"
        for interval, names in by.items()
        if interval != usual
    )
    return f"pods are scraped every {milliseconds(usual)}, but {others}"


def milliseconds(value: Seconds) -> str:
    """`50 ms`, `1 s`."""
    return f"{value:g} s" if value >= 1 else f"{value * 1e3:g} ms"


def bound(reports: Sequence[RunReport], policy: str, *, name: str) -> str:
    """The fewest possible loads, over the seeds of a policy."""
    found = [getattr(report.bounds, name) for report in reports if report.policy == policy and report.bounds]
    return estimated(estimate(found), METRICS["loads"])


def estimated(value: Estimate, metric: Metric) -> str:
    """`12.3 ± 0.4 ms`."""
    return details.estimated(value, metric.unit)


def print_expected(console: Console, scenario: Scenario, compared: Comparison) -> None:
    """The article's figures beside ours, for the policies that ran."""
    if not scenario.expect:
        console.print(NO_FIGURE, highlight=False)
    rows = list(expected_rows(scenario, compared))
    if rows:
        print_table(console, EXPECTED, rows, named=3, title=EXPECTED_TITLE)


def expected_rows(scenario: Scenario, compared: Comparison) -> Iterator[list[str]]:
    """The article's figures beside ours; columns as in `EXPECTED`."""
    for each in scenario.expect:
        for policy in compared.policies if each.policy is None else (each.policy,):
            if policy in compared.policies:
                metric = METRICS[each.metric]
                ours = estimated(compared.of(metric.name, policy, period=each.period), metric)
                yield [metric.label, policy, each.period or "all", articles(each, metric), ours, each.note]


def articles(each: Expected, metric: Metric) -> str:
    """The article's figure as people read it."""
    return each.article if isinstance(each.article, str) else shown(each.article, metric.unit)


class Played(NamedTuple):
    """A point of a family, and what came of it."""

    point: Point
    reports: tuple[RunReport, ...]
    compared: Comparison | None
    """None: the point cannot be."""


def print_family(console: Console, scenario: Scenario, results: Sequence[Played]) -> None:
    """A row per point and policy."""
    hardware = PRESETS[scenario.fleet.hardware]
    console.print(f"[bold]{escape(scenario.name)}[/bold]: {escape(scenario.title)}; {hardware.name}", highlight=False)
    keys, fixed = _varied(results)
    if fixed:
        console.print(
            f"with {', '.join(f'{key}={value}' for key, value in fixed.items())}", highlight=False, markup=False
        )
    played = [compared for _, _, compared in results if compared is not None]
    names = family_metrics(played)
    several = details.names_policies(played, keys=[*map(_last, keys)])
    left = (*map(_last, keys), *(("policy",) if several else ()))
    rows: list[list[str]] = []
    for point, reports, compared in results:
        if compared is None:
            rows.append([*_at(point, keys), *([""] if several else []), "cannot be"])
            continue
        for policy in compared.policies:
            cells = [estimated(compared.of(name, policy), METRICS[name]) for name in names]
            named = [policy] if several else []
            rows.append([*_at(point, keys), *named, *cells, bound(reports, policy, name="service_order")])
    print_table(console, [*left, *(METRICS[name].label for name in names), NARROW_BOUNDS[0]], rows, named=len(left))
    _print_family_details(console, keys, results)
    _print_family_expected(console, keys, results)
    for point, _, _ in results:
        if point.why_not:
            values = ", ".join(f"{key}={value}" for key, value in point.values.items())
            console.print(f"{values}: {point.why_not}", highlight=False)


def _print_family_details(console: Console, keys: Sequence[str], results: Sequence[Played]) -> None:
    found = [
        details.Played(point.jobs[0].scenario, reports, compared, tuple(point.values[key] for key in keys))
        for point, reports, compared in results
        if compared is not None
    ]
    details.print_details(console, found, keys=[_last(key) for key in keys])
    for each in found:
        at = ", ".join(f"{_last(key)} {value}" for key, value in zip(keys, each.place, strict=True))
        details.print_commands(console, each.reports, of=f"{at}, ")


def family_metrics(played: Sequence[Comparison]) -> tuple[str, ...]:
    """Metrics of a family's table: those of commands too where there are any."""
    return (*FAMILY, *(name for name in COMMANDED if any(has_any(compared, name) for compared in played)))


def _varied(results: Sequence[Played]) -> tuple[list[str], dict[str, str]]:
    """Keys of a grid that take several values, and those with only one."""
    first = results[0].point.values
    keys = [key for key in first if any(point.values[key] != first[key] for point, _, _ in results)]
    return keys, {key: value for key, value in first.items() if key not in keys}


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _at(point: Point, keys: Sequence[str]) -> list[str]:
    return [point.values[key] for key in keys]


def _print_family_expected(console: Console, keys: Sequence[str], results: Sequence[Played]) -> None:
    played = [each for each in results if each.compared is not None]
    found = [list(expected_rows(point.jobs[0].scenario, compared)) for point, _, compared in played if compared]
    for line in said_of_all(found):
        console.print(f"beside the article: {line}", highlight=False)
    heads = [*map(_last, keys)]
    # The policy stands among the keys already.
    kept = [at for at, name in enumerate(EXPECTED) if name not in heads]
    lines = [
        [*_at(each.point, keys), *(row[at] for at in kept)]
        for each, rows in zip(played, said_of_some(found), strict=True)
        for row in rows
    ]
    if lines:
        heads += [EXPECTED[at] for at in kept]
        print_table(console, heads, lines, named=heads.index("article"), title=EXPECTED_TITLE)
    if not any(found):
        console.print(NO_FIGURE, highlight=False)


def said_of_all(found: Sequence[list[list[str]]]) -> list[str]:
    """What the article says of every point alike, from the rows of each point; once, and without our figures."""
    lines = []
    for row in found[0] if len(found) > 1 else []:
        if all(_words(row) in map(_words, rows) for rows in found):
            label, policy, when, article, _, note = row
            lines.append(f"{label}, {policy}, {when}: {article}" + (f" ({note})" if note else ""))
    return lines


def said_of_some(found: Sequence[list[list[str]]]) -> list[list[list[str]]]:
    """The other rows of each point."""
    if len(found) < 2:
        return list(found)
    return [[row for row in rows if not all(_words(row) in map(_words, other) for other in found)] for rows in found]


def _words(row: list[str]) -> list[str]:
    """All but our own figure."""
    return row[:4] + row[5:]
