"""`lorapick check`: whether a rollout of adapters may go out, before it does.

In: a configuration or a running picker; a rollout. Out: a verdict as text, JSON, JUnit's XML or GitHub's commands.
Exit code 0: it may, perhaps with warnings; 1: it may not; 2: bad input. Not here: how it is judged (see `plan.gate`).
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import typer

from lorapick.cli import admin_client
from lorapick.cli import check_options as options
from lorapick.cli.check_fleet import Fleet, fleet_at, fleet_of
from lorapick.cli.check_input import Asked, Unusable, case_of, write_page
from lorapick.cli.check_options import Format
from lorapick.cli.check_text import print_verdict
from lorapick.plan.gate.check import check as judged
from lorapick.plan.gate.fitting import Told, times_of
from lorapick.plan.gate.formats import error_github, error_json, error_junit, to_github, to_json, to_junit
from lorapick.plan.gate.report import Checked, report
from lorapick.plan.gate.rollout import Traffic
from lorapick.plan.gate.values import Level, Verdict
from lorapick.plan.work import Report, print_report
from lorapick.plan.work import to_json as report_json
from lorapick.plan.work_page import report_page

OTHERS: dict[Format, Callable[[Verdict, Report | None], str]] = {Format.JUNIT: to_junit, Format.GITHUB: to_github}
ERRORS: dict[Format, Callable[[str], str]] = {
    Format.JSON: error_json,
    Format.JUNIT: error_junit,
    Format.GITHUB: error_github,
}
"""Exit code 2 in each form, on stdout; people read it on stderr."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


def check(
    rollout: options.RolloutFile = None,
    config: options.Config = None,
    admin: options.Admin = None,
    today: options.Today = None,
    undeclared_ok: options.UndeclaredOk = False,
    split: options.Splits = None,
    rate: options.Rate = 0.0,
    zipf: options.Zipf = 1.0,
    slots: options.Slots = None,
    pods: options.Pods = None,
    pin: options.Pins = None,
    swap: options.Swap = None,
    latency: options.Latency = None,
    latency_p95: options.LatencyP95 = None,
    model: options.Model = None,
    form: options.Form = Format.TEXT,
    as_json: options.AsJson = False,
    show_work: options.ShowWork = False,
    html: options.Html = None,
) -> None:
    """Predict what a rollout of adapters would do to the fleet, and fail if that is bad."""
    form = _form(form, as_json=as_json)
    asked = Asked(
        rollout=rollout,
        today=today,
        splits=tuple(split or ()),
        slots=slots,
        pods=pods,
        pins=tuple(pin or ()),
        model=model,
        undeclared_ok=undeclared_ok,
    )
    told = Told(swap=swap, median=latency, p95=latency_p95)
    try:
        fleet = _fleet(config, admin)
        case = case_of(fleet, asked, Traffic(rate=rate, zipf=zipf))
        times = times_of(told, case.today)
        verdict = judged(
            case.then,
            today=case.now,
            rules=fleet.rules,
            costs=times.costs,
            assumed=latency_p95 is None,
            faults=case.faults,
        )
        checked = Checked(
            now=case.now, then=case.then, rules=fleet.rules, times=times, verdict=verdict, told_by=fleet.told_by
        )
        if html is not None:
            write_page(html, report_page(report(checked, curves=True)))
    except Unusable as error:
        print(f"lorapick check: {error}", file=sys.stderr)
        if form in ERRORS:
            print(ERRORS[form](str(error)))
        raise typer.Exit(2) from None
    _say(checked, form, show_work=show_work)
    raise typer.Exit(1 if verdict.level is Level.FAIL else 0)


def _form(form: Format, *, as_json: bool) -> Format:
    if as_json and form not in (Format.TEXT, Format.JSON):
        raise typer.BadParameter(f"--json and --format {form.value}: one form at a time")
    return Format.JSON if as_json else form


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
