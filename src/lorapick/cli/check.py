"""`lorapick check`: whether a rollout of adapters may go out, before it does.

In: a configuration or a running picker; a rollout. Out: a verdict as text, JSON, JUnit's XML or GitHub's commands.
Exit code 0: it may, perhaps with warnings; 1: it may not; 2: bad input. Not here: how it is judged (see `plan.gate`).
"""

import json
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lorapick.cli import admin_client
from lorapick.cli.check_fleet import Fleet, fleet_at, fleet_of
from lorapick.cli.check_input import Asked, Unusable, case_of, write_page
from lorapick.cli.check_text import print_verdict
from lorapick.plan.gate.check import check as judged
from lorapick.plan.gate.fitting import Told, times_of
from lorapick.plan.gate.formats import to_github, to_json, to_junit
from lorapick.plan.gate.report import Checked, report
from lorapick.plan.gate.rollout import Traffic
from lorapick.plan.gate.values import Level, Verdict
from lorapick.plan.prediction.values import Costs
from lorapick.plan.work import Report, print_report
from lorapick.plan.work import to_json as report_json
from lorapick.plan.work_page import report_page


class Format(StrEnum):
    """How the verdict is said."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    GITHUB = "github"


OTHERS: dict[Format, Callable[[Verdict, Report | None], str]] = {Format.JUNIT: to_junit, Format.GITHUB: to_github}
DEFAULTS = Costs()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


def check(
    rollout: Annotated[
        Path | None,
        typer.Argument(
            help="List, difference or split in a file, or a directory of PEFT adapters. Default: no change."
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="The fleet's configuration, lorapick.yaml.")] = None,
    admin: Annotated[
        str | None, typer.Option("--admin", "--url", envvar="LORAPICK_ADMIN", help="Or a running picker's admin API.")
    ] = None,
    today: Annotated[Path | None, typer.Option(help="List of today's adapters; default: the fleet's own.")] = None,
    split: Annotated[
        list[str] | None, typer.Option(help="`a: 50, a-experiment: 50`: a's traffic, dealt out anew.")
    ] = None,
    rate: Annotated[
        float, typer.Option(help="Requests per second of all adapters; those without a rate share what is left.")
    ] = 0.0,
    zipf: Annotated[float, typer.Option(help="Popularity of adapters without a rate, by their order.")] = 1.0,
    slots: Annotated[int | None, typer.Option(help="Slots of each pod then.")] = None,
    pods: Annotated[int | None, typer.Option(help="Pods then.")] = None,
    pin: Annotated[list[str] | None, typer.Option(help="An adapter that is pinned then, once.")] = None,
    swap: Annotated[
        float | None,
        typer.Option(
            help=f"Seconds that a load keeps requests waiting. Default: {DEFAULTS.swap:g}, or what today's P95 leaves."
        ),
    ] = None,
    latency: Annotated[
        float | None, typer.Option(help="Median seconds of requests without a swap. Default: half of their P95.")
    ] = None,
    latency_p95: Annotated[
        float | None,
        typer.Option(
            help="P95 as the fleet shows it today, swaps included; without a today of requests that meet none. "
            f"Default: {DEFAULTS.latency_p95:g}."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="What the pods serve: a common model's name, or a config.json. Default: by name.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to say it.")] = Format.TEXT,
    show_work: Annotated[bool, typer.Option("--show-work", help="With formulas and sources, in each format.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with charts to this file.")] = None,
) -> None:
    """Predict what a rollout of adapters would do to the fleet, and fail if that is bad."""
    asked = Asked(
        rollout=rollout,
        today=today,
        splits=tuple(split or ()),
        slots=slots,
        pods=pods,
        pins=tuple(pin or ()),
        model=model,
    )
    told = Told(swap=swap, median=latency, p95=latency_p95)
    try:
        fleet = _fleet(config, admin)
        case = case_of(fleet, asked, Traffic(rate=rate, zipf=zipf))
        times = times_of(told, case.today)
        verdict = judged(case.then, today=case.now, rules=fleet.rules, costs=times.costs, faults=case.faults)
        checked = Checked(
            now=case.now, then=case.then, rules=fleet.rules, times=times, verdict=verdict, told_by=fleet.told_by
        )
        if html is not None:
            write_page(html, report_page(report(checked, curves=True)))
    except Unusable as error:
        print(f"lorapick check: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    _say(checked, form, show_work=show_work)
    raise typer.Exit(1 if verdict.level is Level.FAIL else 0)


def _say(checked: Checked, form: Format, *, show_work: bool) -> None:
    """Print the verdict; its work comes after it in text, as a key of its own in JSON, within what others print."""
    verdict, work = checked.verdict, report(checked, curves=False) if show_work else None
    if form is Format.TEXT:
        console = admin_client.console()
        print_verdict(console, checked)
        if work is not None:
            print_report(console, msgspec.structs.replace(work, title="\nhow", tables=(), notes=()), show_work=True)
    elif form is Format.JSON:
        found = to_json(verdict) if work is None else {**to_json(verdict), "work": report_json(work)}
        print(json.dumps(found, indent=2))
    else:
        print(OTHERS[form](verdict, work))


def _fleet(config: Path | None, admin: str | None) -> Fleet:
    if config is not None:
        return fleet_of(config)
    if admin is None:
        raise ValueError("name the fleet: its configuration with --config, or a running picker with --admin")
    try:
        return fleet_at(admin)
    except admin_client.AdminError as error:
        raise ValueError(str(error)) from None
