"""Plays the scenarios and writes what came out, beside the article's figures, into docs/scenarios.md.

    python -m bench.scenarios [--only saas-50,convoy] [--seeds 3] [--workers 2]

Sections of scenarios that were not played stay as they are; so do the words above the first of them.
"""

import argparse
import datetime
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lorapick.cli import simulation_details as details
from lorapick.cli.capacity_table import WORDS, percent
from lorapick.cli.simulation_table import (
    BOUNDS,
    EXPECTED,
    NARROW_BOUNDS,
    NO_FIGURE,
    bound,
    estimated,
    expected_rows,
    said_of_all,
    said_of_some,
    scrapes,
)
from lorapick.plan.capacity import UNROUTED, Capacity
from lorapick.plan.capacity import beside as beside_capacity
from lorapick.plan.scenario_files import load_scenario, scenario_names
from lorapick.plan.simulations import capacities, jobs_for, play_all, points
from lorapick.sim.compare import Comparison, compare, estimate
from lorapick.sim.hardware import PRESETS
from lorapick.sim.metrics import METRICS
from lorapick.sim.report import RunReport
from lorapick.sim.scenario import Scenario, shortened
from lorapick.wire.config import ConfigError

PAGE = Path(__file__).parent.parent / "docs" / "scenarios.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
COLUMNS = ("p50_ms", "p95_ms", "swap_share", "swap_rate", "hit_ratio", "residency_s", "useful_share", "lost_share")
FAMILY = ("served_rate", "p95_ms", "ttft_p95_ms", "swap_share", "hit_ratio", "loads")
FEW_SEEDS = {"war-story": 1, "healthy": 1, "s-lora": 1}
"""Scenarios that take long, or have no seeds to speak of."""
PLAYED = {"war-story": ("weighted", "cost"), "healthy": ("weighted", "cost")}
"""Policies of scenarios that last for hours."""
CAPACITY_OF = ("saas-50", "convoy", "hotspot")
CAPACITY_POLICIES = ("round-robin", "chwbl", "gie-lora", "weighted", "cost")
FAMILY_SEEDS = {"pressure": 3}
IN_PERIODS = {"pressure": ("p50_ms", "p95_ms", "preemptions", "tight_share", "unloads", "lost_share")}
"""Families of which some figures are shown by period."""
MORE = {
    "disagg": "A quick look: `lorapick simulate disagg --until 40s`. What it shows, and when it gives nothing: "
    "[disaggregation](disaggregation.md#in-the-simulator).",
}
"""What is said of a scenario beside its figures."""
MEASURED = 120.0
"""Seconds after the warm-up that a search for a capacity plays."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def section(name: str, *, seeds: int, workers: int | None) -> str:
    """One scenario."""
    scenario = load_scenario(name)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    seeds = min(seeds, FEW_SEEDS.get(name, seeds))
    return "\n".join(
        [
            f"## {name}",
            "",
            f"{scenario.title}. Source: {scenario.source}.",
            "",
            *(f"- {line}" for line in scenario.assumes),
            "",
            f"Hardware: {hardware(scenario)}. Played {today}.",
            "",
            *((MORE[name], "") if name in MORE else ()),
            *(family(scenario, workers) if scenario.grid else figures(scenario, seeds=seeds, workers=workers)),
        ]
    )


def hardware(scenario: Scenario) -> str:
    preset = PRESETS[scenario.fleet.hardware]
    return f"{preset.name}, extrapolated" if preset.extrapolated else f"{preset.name}, calibrated"


def figures(scenario: Scenario, *, seeds: int, workers: int | None) -> Iterator[str]:
    policies = PLAYED.get(scenario.name, scenario.policies)
    jobs = jobs_for(scenario, policies=policies, seeds=range(1, seeds + 1))
    reports = play_all(jobs, workers=workers)
    compared = compare(reports)
    chosen = f" -p {' -p '.join(policies)}" if scenario.name in PLAYED else " --compare"
    yield f"    lorapick simulate {scenario.name}{chosen} --seeds {seeds}"
    yield ""
    yield f"{scrapes(scenario, compared.policies).capitalize()}."
    yield ""
    yield from beside(scenario, compared)
    heads = ["policy", *(METRICS[name].label for name in COLUMNS), "loads", *NARROW_BOUNDS]
    rows = [
        [policy, *(cell(compared, policy, name) for name in (*COLUMNS, "loads")), *fewest(reports, policy)]
        for policy in compared.policies
    ]
    yield from table(heads, rows)
    if scenario.name in CAPACITY_OF:
        yield from capacity(scenario, workers)


def cell(compared: Comparison, policy: str, name: str, *, period: str | None = None) -> str:
    return estimated(compared.of(name, policy, period=period), METRICS[name])


def fewest(reports: Sequence[RunReport], policy: str) -> list[str]:
    return [bound(reports, policy, name=name) for name in BOUNDS.values()]


def beside(scenario: Scenario, compared: Comparison) -> Iterator[str]:
    rows = list(expected_rows(scenario, compared))
    if rows:
        yield from table(EXPECTED, rows)
    else:
        yield f"{NO_FIGURE.capitalize()}."
        yield ""


def capacity(scenario: Scenario, workers: int | None) -> Iterator[str]:
    limit = scenario.latency_limit
    assert limit is not None, scenario.name
    policies = [policy for policy in CAPACITY_POLICIES if policy in scenario.policies]
    until = f"{(scenario.run.warm_up + MEASURED) / 60:g}m"
    brief = shortened(scenario, scenario.run.warm_up + MEASURED)
    found = list(capacities(jobs_for(brief, policies=policies, seeds=[1]), limit, workers=workers))
    yield f"    lorapick simulate {scenario.name} --until {until} --capacity -p {' -p '.join(policies)}"
    yield ""
    yield f"Highest rate with P95 of at most {limit:g} s and at most 1 % of requests refused:"
    yield ""
    rows = [[each.policy, rate(each), ratio(each, found[0])] for each in found]
    best: list[Capacity] = []
    if scenario.without_swaps:
        ideal = load_scenario(scenario.name, overrides=scenario.without_swaps)
        ideal = shortened(ideal, ideal.run.warm_up + MEASURED)
        best = list(capacities(jobs_for(ideal, policies=[UNROUTED], seeds=[1]), limit, workers=1))
        rows = [[*row, ratio(each, best[0])] for row, each in zip(rows, found, strict=True)]
        rows.append([f"{UNROUTED}, nothing to swap", rate(best[0]), ratio(best[0], found[0]), "1.00"])
    yield from table(["policy", "rate", f"to {found[0].policy}", *(["to no swaps"] if best else [])], rows)
    lines = [
        [WORDS[row.expected.capacity], row.policy, percent(row.expected.article), percent(estimate(row.ours))]
        for row in beside_capacity(scenario.expect_capacity, found, without_swaps=best)
    ]
    if lines:
        yield from table(["", "policy", "article", "ours"], lines)


def rate(found: Capacity) -> str:
    return "none" if found.rate is None else f"{found.rate:.1f} /s"


def ratio(one: Capacity, other: Capacity) -> str:
    return f"{one.rate / other.rate:.2f}" if one.rate and other.rate else "–"


def family(scenario: Scenario, workers: int | None) -> Iterator[str]:
    runs = FAMILY_SEEDS.get(scenario.name, 1)
    yield f"    lorapick simulate {scenario.name} --grid" + (f" --seeds {runs}" if runs > 1 else "")
    yield ""
    rows, places, said = [], [], []
    in_periods, by_period = IN_PERIODS.get(scenario.name, scenario.in_periods), list[list[str]]()
    by_part, by_side, told = list[list[str]](), list[list[str]](), list[str]()
    seeds = range(1, 1 + runs)
    for point in points(scenario.grid):
        try:
            there = load_scenario(scenario.name, overrides=point)
        except ConfigError as error:
            rows.append([*point.values(), error.problems[0].message, *[""] * len(FAMILY)])
            continue
        policy = there.settings.picking.policy
        reports = play_all(jobs_for(there, policies=[policy], seeds=seeds), workers=workers)
        compared = compare(reports)
        by_period += [
            [*point.values(), period.name, *(cell(compared, policy, name, period=period.name) for name in in_periods)]
            for period in (there.periods if in_periods else ())
        ]
        by_part += [[*point.values(), *row] for row in details.part_rows(reports, policy)]
        by_side += [[*point.values(), *row] for row in details.side_rows(reports, policy)]
        told += [line for report in reports for line in commands(report, [*point.values()])]
        cells = [cell(compared, policy, name) for name in FAMILY]
        rows.append([*point.values(), *cells, bound(reports, policy, name="service_order")])
        places.append([*point.values()])
        said.append(list(expected_rows(there, compared)))
    yield from table([*scenario.grid, *(METRICS[name].label for name in FAMILY), NARROW_BOUNDS[0]], rows)
    if in_periods:
        yield from table([*scenario.grid, "period", *(METRICS[name].label for name in in_periods)], by_period)
    if by_part:
        yield from table([*scenario.grid, *details.part_heads()], by_part)
    if by_side:
        yield from table([*scenario.grid, *details.side_heads()], by_side)
    yield from (*told, "") if told else ()
    for line in said_of_all(said):
        yield f"Beside the article: {line}."
        yield ""
    some = [[*place, *row] for place, found in zip(places, said_of_some(said), strict=True) for row in found]
    if some:
        yield from table([*scenario.grid, *EXPECTED], some)
    if not any(said):
        yield f"{NO_FIGURE.capitalize()}."
        yield ""


def commands(report: RunReport, place: Sequence[str]) -> Iterator[str]:
    """What pods were told to load, as an item of a list."""
    of = f"{', '.join(place)}, seed {report.seed}"
    if report.whole.commanded:
        yield f"- loads commanded, {of}: {', '.join(f'{why} {count}' for why, count in report.whole.commanded.items())}"
    if report.pins_missing is not None:
        yield f"- pins missing, {of}: for {report.pins_missing:,.1f} s at most"


def write(sections: dict[str, str]) -> None:
    """Exchange the sections that were played."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    kept = {part.split("\n", 1)[0]: f"## {part}" for part in old.split("## ")[1:]}
    kept.update(sections)
    body = "\n".join(kept[name].rstrip() + "\n" for name in scenario_names() if name in kept)
    PAGE.write_text(f"{before}{BEGIN}\n{body}{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(scenario_names()))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int)
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        print(f"playing {name}", file=sys.stderr, flush=True)
        write({name: section(name, seeds=arguments.seeds, workers=arguments.workers)})


if __name__ == "__main__":
    main()
