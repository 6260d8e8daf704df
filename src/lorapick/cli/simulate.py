"""`lorapick simulate NAME|FILE`: play a scenario and report.

In: a scenario's name or file, policies, seeds. Out: a table, JSON, an HTML page. Not here: what is simulated (see
`sim`), how runs are spread over processes (see `plan.simulations`).
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lorapick.cli.simulation_table import print_comparison, print_expected
from lorapick.core.picking.policies import POLICIES
from lorapick.plan.scenario_files import UnknownScenario, load_scenario
from lorapick.plan.simulations import Job, jobs_for, play_all
from lorapick.sim.compare import Comparison, compare
from lorapick.sim.report import RunReport
from lorapick.sim.scenario import Scenario
from lorapick.sim.scenario_text import shortened
from lorapick.wire.config import ConfigError
from lorapick.wire.units import UnitError, parse_duration


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate")(simulate)


def simulate(
    scenario: Annotated[str, typer.Argument(help="A scenario's name (`lorapick scenarios`) or a file.")],
    policy: Annotated[list[str] | None, typer.Option("--policy", "-p", help="Policy; may be given again.")] = None,
    compare_all: Annotated[
        bool, typer.Option("--compare", help="Compare the scenario's policies over several seeds.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(min=1, max=1000, help="Seeds (default: 1; with --compare 5).")] = None,
    until: Annotated[str | None, typer.Option(help="Stop after this much simulated time, e.g. 5m.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page with plots; it needs nothing else.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Processes (default: one per core).")] = None,
) -> None:
    """Play a scenario under one or more policies and say what happened, beside the article's figures."""
    played = _loaded(scenario, until)
    jobs = _jobs(played, policy or [], compare_all=compare_all, seeds=seeds)
    reports = _played(played, jobs, workers=workers)
    compared = compare(reports)
    if html is not None:
        _write_page(html, played, reports, compared)
    if as_json:
        json.dump(_document(played, reports, compared), sys.stdout, indent=2)
        print()
        return
    console = Console()
    print_comparison(console, played, compared)
    print_expected(console, played, compared, reports)
    if html is not None:
        console.print(f"page: {html}")


def _loaded(name: str, until: str | None) -> Scenario:
    try:
        scenario = load_scenario(name)
        return scenario if until is None else shortened(scenario, parse_duration(until))
    except (ConfigError, UnknownScenario) as error:
        print(error, file=sys.stderr)
    except UnitError as error:
        print(f"--until {until}: {error}", file=sys.stderr)
    except ValueError as error:
        print(f"--until {until}: {error}", file=sys.stderr)
    raise typer.Exit(2)


def _jobs(scenario: Scenario, policies: list[str], *, compare_all: bool, seeds: int | None) -> tuple[Job, ...]:
    for policy in policies:
        if policy not in POLICIES:
            print(f"--policy {policy} is unknown; use one of {', '.join(POLICIES)}", file=sys.stderr)
            raise typer.Exit(2)
    chosen = tuple(dict.fromkeys(policies))
    if not chosen:
        chosen = scenario.policies if compare_all else (scenario.settings.picking.policy,)
    count = seeds if seeds is not None else 5 if compare_all else 1
    first = scenario.run.seed
    return jobs_for(chosen, range(first, first + count))


def _played(scenario: Scenario, jobs: tuple[Job, ...], *, workers: int | None) -> tuple[RunReport, ...]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    # On stderr, so that --json stays JSON; gone when done.
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        runs = f"{len(jobs)} run{'s' if len(jobs) > 1 else ''}"
        task = bar.add_task(f"{scenario.name}, {runs}", total=1.0)
        return play_all(scenario, jobs, workers=workers, progress=lambda share: bar.update(task, completed=share))


def _document(scenario: Scenario, reports: tuple[RunReport, ...], compared: Comparison) -> object:
    return {
        "scenario": msgspec.to_builtins(
            {"name": scenario.name, "title": scenario.title, "source": scenario.source, "assumes": scenario.assumes}
        ),
        "comparison": msgspec.to_builtins(compared),
        "expect": msgspec.to_builtins(scenario.expect),
        "reports": msgspec.to_builtins(reports),
    }


def _write_page(path: Path, scenario: Scenario, reports: tuple[RunReport, ...], compared: Comparison) -> None:
    from lorapick.sim.page.page import page

    try:
        path.write_text(page(scenario, reports, compared), encoding="utf-8")
    except OSError as error:
        print(f"--html {path}: cannot be written: {error.strerror or error}", file=sys.stderr)
        raise typer.Exit(2) from None
