"""`lorapick plan swap`: what one adapter swap costs, phase by phase, and beside a longer queue.

In: options. Out: a report. Not here: the reckoning (`plan.bill.swap`).
"""

from collections.abc import Mapping

import typer

from lorapick.cli.plan_report import add
from lorapick.plan.bill.swap import DEFAULTS, swap_report
from lorapick.plan.work import Report


def register(app: typer.Typer) -> None:
    """Add the command."""
    add(app, "swap", defaults=DEFAULTS, report=swap)


def swap(given: Mapping[str, float | None]) -> Report:
    """Say what one adapter swap costs: best, usual, worst; by phase, size and tier."""
    return swap_report(given)
