"""`lorapick simulate NAME|FILE`: play a scenario and report.

In: a scenario's name or file, policies, seeds. Out: a table, JSON, an HTML page. Not here: what is simulated (see
`sim`), how runs are spread over processes (see `plan.spreading`), layout (see `cli.simulation_table`).
"""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import typer

from lorapick.cli.capacity_table import print_capacities, print_capacities_expected
from lorapick.cli.fitting_table import console as out
from lorapick.cli.progress_bar import progress_bar
from lorapick.cli.simulate_series import play_with_series
from lorapick.cli.simulation_plan import SimulationError, SimulationPlan, plan_of
from lorapick.cli.simulation_table import Played, print_comparison, print_expected, print_family
from lorapick.plan.capacity import beside
from lorapick.plan.datafiles import DataFileError
from lorapick.plan.simulations import capacities, play_all
from lorapick.plan.spreading import Progress, WorkerDied
from lorapick.sim.compare import Comparison, compare
from lorapick.sim.page.page import page
from lorapick.sim.report import RunReport
from lorapick.sim.scenario import Scenario
from lorapick.wire.config import ConfigError
from lorapick.wire.traces.rows import TraceError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate")(simulate)


def simulate(
    scenario: Annotated[str, typer.Argument(help="A scenario's name (`lorapick scenarios`) or a file.")],
    policy: Annotated[list[str] | None, typer.Option("--policy", "-p", help="Policy; may be given again.")] = None,
    compare_all: Annotated[
        bool, typer.Option("--compare", help="The scenario's policies side by side, over several seeds.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(help="Seeds; default: 1, with --compare 5.")] = None,
    until: Annotated[str | None, typer.Option(help="Stop after this much simulated time, e.g. 5m.")] = None,
    put: Annotated[
        list[str] | None, typer.Option("--set", help="Another value for a key of the file, e.g. fleet.slots=8.")
    ] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Play every point of a family (`grid:` in the file).")] = False,
    suite: Annotated[str | None, typer.Option(help="Play every point of a named grid (`suites:` in the file).")] = None,
    capacity: Annotated[
        bool, typer.Option("--capacity", help="Search the highest rate that keeps the scenario's latency limit.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with plots; it needs nothing else.")] = None,
    series: Annotated[
        Path | None, typer.Option(help="Write the picker's metrics over time, for `promtool tsdb create-blocks-from`.")
    ] = None,
    series_every: Annotated[str, typer.Option(help="Time between two looks at them.")] = "15s",
    workers: Annotated[int | None, typer.Option(help="Processes; default: one per core.")] = None,
) -> None:
    """Play a scenario under one or more policies and say what happened, beside the article's figures."""
    flags = dict(locals())
    try:
        plan = plan_of(flags)
    except (ConfigError, SimulationError) as error:
        _refuse(str(error))
    for flag, path in (("--html", html), ("--series", series)):
        if path is not None and not os.access(path if path.exists() else path.parent, os.W_OK):
            _refuse(f"{flag} {path}: cannot be written: no such directory, or it belongs to somebody else")
    try:
        if capacity:
            _capacity(plan, as_json=as_json)
        elif plan.family:
            _family(plan, as_json=as_json)
        else:
            _runs(plan, as_json=as_json, html=html, series=series)
    except (DataFileError, TraceError) as error:
        _refuse(str(error))
    except WorkerDied as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None


def _refuse(text: str) -> NoReturn:
    print(text, file=sys.stderr)
    raise typer.Exit(2)


def _runs(plan: SimulationPlan, *, as_json: bool, html: Path | None, series: Path | None) -> None:
    scenario = plan.scenario
    with progress_bar(f"{scenario.name}, {_counted(len(plan.jobs), 'run')}") as told:
        if series is None:
            reports = play_all(plan.jobs, workers=plan.workers, progress=told)
        else:
            reports = (_with_series(plan, series, told),)
    compared = compare(reports)
    console = out()
    if as_json:
        _print(_document(scenario, reports, compared))
    else:
        print_comparison(console, scenario, compared, reports)
        print_expected(console, scenario, compared)
    # Last, so that a full disk costs the page and not the figures.
    if html is not None:
        _write(html, page(scenario, reports, compared=compared))
        if not as_json:
            console.print(f"page: {html}", markup=False)


def _with_series(plan: SimulationPlan, path: Path, told: Progress) -> RunReport:
    assert plan.series_every is not None, "the plan was checked"
    try:
        return play_with_series(plan.jobs[0], path, every=plan.series_every, progress=told)
    except OSError as error:
        _refuse(f"--series {path}: cannot be written: {error.strerror or error}")


def _family(plan: SimulationPlan, *, as_json: bool) -> None:
    jobs = [job for point in plan.family for job in point.jobs]
    with progress_bar(f"{plan.scenario.name}, {_counted(len(jobs), 'run')}") as told:
        reports = list(play_all(jobs, workers=plan.workers, progress=told))
    results: list[Played] = []
    for point in plan.family:
        found, reports = reports[: len(point.jobs)], reports[len(point.jobs) :]
        results.append(Played(point, tuple(found), compare(found) if found else None))
    if as_json:
        _print([_point(played) for played in results])
    else:
        print_family(out(), plan.scenario, results)


def _point(played: Played) -> dict[str, Any]:
    return {
        "point": played.point.values,
        "why_not": played.point.why_not or None,
        "comparison": msgspec.to_builtins(played.compared),
        "bounds": [msgspec.to_builtins(report.bounds) for report in played.reports],
    }


def _capacity(plan: SimulationPlan, *, as_json: bool) -> None:
    assert plan.limit is not None, "the plan was checked"
    jobs = (*plan.jobs, *plan.without_swaps)
    with progress_bar(f"{plan.scenario.name}, {_counted(len(jobs), 'search', 'searches')}") as told:
        both = capacities(jobs, plan.limit, workers=plan.workers, progress=told)
    found, best = both[: len(plan.jobs)], both[len(plan.jobs) :]
    rows = beside(plan.scenario.expect_capacity, found, without_swaps=best)
    if as_json:
        document = {"capacities": found, "without_swaps": best, "expect": rows}
        _print(msgspec.to_builtins(document))
    else:
        print_capacities(out(), plan.scenario, found, without_swaps=best)
        print_capacities_expected(out(), rows)


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _document(scenario: Scenario, reports: tuple[RunReport, ...], compared: Comparison) -> dict[str, Any]:
    return {
        "scenario": {
            "name": scenario.name,
            "title": scenario.title,
            "source": scenario.source,
            "assumes": list(scenario.assumes),
        },
        "scrape_intervals": {policy: scenario.scrape_interval(policy) for policy in compared.policies},
        "expect": msgspec.to_builtins(scenario.expect),
        "comparison": msgspec.to_builtins(compared),
        "reports": msgspec.to_builtins(reports),
    }


def _print(document: object) -> None:
    json.dump(document, sys.stdout, indent=1)
    print()


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        _refuse(f"--html {path}: cannot be written: {error.strerror or error}")
