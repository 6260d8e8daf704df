"""`lorapick plan merged`: merging adapters into the weights beside adding them at every step.

In: options. Out: a report. Not here: the reckoning (`plan.bill.merged`).
"""

from collections.abc import Mapping

import typer

from lorapick.cli.plan_report import add
from lorapick.plan.bill.merged import DEFAULTS, merged_report
from lorapick.plan.work import Report


def register(app: typer.Typer) -> None:
    """Add the command."""
    add(app, "merged", defaults=DEFAULTS, report=merged)


def merged(given: Mapping[str, float | None]) -> Report:
    """Compare merged weights with added adapters: GPU time of both, and where they cross."""
    return merged_report(given)
