"""`lorapick calibrate FILE`: fit the pod model to measured runs, and say how far it is off on runs it has not seen.

In: a table of runs, a table of slot costs. Out: errors per run, the aims, JSON, a page's figures, a file of
coefficients. Exit code 2 for files that cannot be used. Not here: fitting and playing (see `plan.calibration`).
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lorapick.cli.progress_bar import progress_bar
from lorapick.plan.calibration.aims import Score, score
from lorapick.plan.calibration.fit import FitError
from lorapick.plan.calibration.held_out import Calibration, Plan, calibrate
from lorapick.plan.calibration.report import document_of, figures_of, page_with
from lorapick.plan.calibration.runs import Group, Run, SlotCosts, TableError, read_runs, read_slot_costs
from lorapick.plan.calibration.scoring import Outcome
from lorapick.plan.datafiles import DataFileError, data_names, data_path, open_lines
from lorapick.plan.spreading import WorkerDied

SLOT_COSTS = "calibration/vllm085_h100_lora_slot_cost.csv"


class BadInput(Exception):  # noqa: N818 - what it is
    """Something on the command line or in a file: the value, the limit, the remedy."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibrate")(calibrate_command)


def calibrate_command(
    file: Annotated[
        Path, typer.Argument(help="Table of measured runs: CSV, plain, .gz or .zst; or the name of one of lorapick's.")
    ],
    slot_costs: Annotated[
        Path | None, typer.Option(help="Table of what slots cost; default: the one that comes with lorapick.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Play so much of each run; default: as long as it was measured.")
    ] = None,
    only: Annotated[str, typer.Option(help="Play only runs whose name contains this, e.g. '8/16 r16'.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Of the requests.")] = 1,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one per core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
    write: Annotated[Path | None, typer.Option(help="Write the coefficients fitted to all runs, as YAML.")] = None,
    report: Annotated[Path | None, typer.Option(help="Put the figures into this Markdown page.")] = None,
) -> None:
    """Fit the pod model to measured runs, and say how far it is off on runs it has not seen."""
    plan = Plan(seconds=seconds, seed=seed, only=only, workers=workers)
    try:
        runs, costs = _tables(file, slot_costs)
        _check(plan, runs)
        page = _page(report)
        found = _calibrate(runs, costs, plan=plan)
        if write is not None:
            _write(write, found.coefficients.text(file.name), option="--write")
        if report is not None:
            _write(report, page_with(page, figures_of(found, file=file)), option="--report")
    except (BadInput, DataFileError, FitError) as error:
        print(f"lorapick calibrate: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except WorkerDied as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None
    if as_json:
        json.dump(document_of(found), sys.stdout, indent=1, allow_nan=False)
        print()
    else:
        _print(found)


def _tables(file: Path, slot_costs: Path | None) -> tuple[tuple[Run, ...], SlotCosts]:
    path = data_path(str(file)) if str(file) in data_names() and not file.exists() else file
    try:
        runs = read_runs(open_lines(path))
        path = data_path(SLOT_COSTS) if slot_costs is None else slot_costs
        return runs, read_slot_costs(open_lines(path))
    except TableError as error:
        raise BadInput(f"{path}, {error}") from None


def _check(plan: Plan, runs: tuple[Run, ...]) -> None:
    if plan.seconds is not None and not plan.seconds >= 1.0:
        raise BadInput(f"--seconds {plan.seconds:g} is too short; 1 is the least")
    if runs and not any(plan.only in run.name for run in runs):
        raise BadInput(f"--only {plan.only!r} is in no run's name; a name is like {runs[0].name!r}")


def _page(path: Path | None) -> str:
    """What is there already; found out before minutes of playing."""
    if path is None or not path.exists():
        return ""
    try:
        page = path.read_text(encoding="utf-8")
        page_with(page, "")
    except (OSError, ValueError) as error:
        raise BadInput(f"--report {path}: {getattr(error, 'strerror', None) or error}") from None
    return page


def _calibrate(runs: tuple[Run, ...], costs: SlotCosts, *, plan: Plan) -> Calibration:
    with progress_bar(f"calibrating, {len(runs)} runs") as told:
        return calibrate(runs, costs, plan=plan, progress=told)


def _write(path: Path, text: str, *, option: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{option} {path}: cannot be written: {error.strerror or error}") from None


# -- words


def _print(found: Calibration) -> None:
    console = Console(highlight=False)
    for group in sorted({each.run.group for each in found.outcomes}):
        console.print(_run_table(group, [each for each in found.outcomes if each.run.group == group]))
    scored = score(found.outcomes)
    left_out = len(found.outcomes) - scored.compared
    if left_out:
        words = "were not played long enough to be compared and count in no mean (--seconds): their queue grows"
        console.print(f"{left_out} of {len(found.outcomes)} runs {words}")
    console.print(_aim_table(scored))


def _run_table(group: Group, outcomes: Iterable[Outcome]) -> Table:
    table = Table(title=f"{' '.join(group)}, fitted without it; *: overloaded", title_justify="left")
    table.add_column("slots/adapters", no_wrap=True)
    for name in ("TPOT ms", "ours", "error", "req/s", "ours", "error", "TTFT s", "ours"):
        table.add_column(name, justify="right")
    for each in outcomes:
        table.add_row(*_cells(each), style=None if each.comparable else "dim")
    return table


def _cells(each: Outcome) -> tuple[str, ...]:
    run, ours = each.run, each.ours
    return (
        run.setting + ("*" if run.overloaded else ""),
        f"{run.tpot * 1e3:.1f}",
        "-" if ours.tpot is None else f"{ours.tpot * 1e3:.1f}",
        _percent(each.tpot_error) if each.comparable else "-",
        f"{run.served:.2f}",
        f"{ours.served:.2f}",
        _percent(each.served_error) if each.comparable else "-",
        f"{run.ttft:.3g}",
        "-" if ours.ttft is None else f"{ours.ttft:.3g}",
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1%}"


def _aim_table(scored: Score) -> Table:
    table = Table(title="aims, on groups that the fit had not seen", title_justify="left")
    for name in ("", "limit", "reached", ""):
        table.add_column(name)
    for aim in scored.aims:
        verdict = "" if aim.met is None else "met" if aim.met else "missed"
        table.add_row(aim.words, aim.limit, aim.reached or "nothing to compare", verdict)
    return table
