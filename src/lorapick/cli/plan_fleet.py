"""`lorapick plan fleet`: a GPU per adapter beside one fleet that shares the base, and where the curve breaks even.

In: options. Out: a report. Not here: the reckoning (`plan.bill.fleet`).
"""

from collections.abc import Mapping

import typer

from lorapick.cli.plan_report import add
from lorapick.plan.bill.fleet import DEFAULTS, fleet_report
from lorapick.plan.work import Report


def register(app: typer.Typer) -> None:
    """Add the command."""
    add(app, "fleet", defaults=DEFAULTS, report=fleet)


def fleet(given: Mapping[str, float | None]) -> Report:
    """Compare separate instances with one shared fleet: GPUs, dollars, break-even."""
    return fleet_report(given)
