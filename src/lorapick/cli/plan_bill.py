"""`lorapick plan bill`: GPU time and money that swaps take, before and after, and what pins remove of it.

In: options. Out: a report. Not here: the reckoning (`plan.bill.waste`).
"""

from collections.abc import Mapping

import typer

from lorapick.cli.plan_report import add
from lorapick.plan.bill.waste import DEFAULTS, waste_report
from lorapick.plan.work import Report


def register(app: typer.Typer) -> None:
    """Add the command."""
    add(app, "bill", defaults=DEFAULTS, report=bill)


def bill(given: Mapping[str, float | None]) -> Report:
    """Say what swaps cost in GPU hours and dollars, and what routing and pins save."""
    return waste_report(given)
