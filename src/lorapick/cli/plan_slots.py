"""`lorapick plan slots`: how many adapter slots a pod has memory for, and what one more takes from the KV cache.

In: options, the table of measured slot costs. Out: a report. Not here: the reckoning (`plan.bill.slots`).
"""

from collections.abc import Mapping

import typer

from lorapick.cli.plan_report import add
from lorapick.plan.bill.slot_check import MEASURED
from lorapick.plan.bill.slots import DEFAULTS, MODEL, slots_report
from lorapick.plan.datafiles import data_path, open_lines
from lorapick.plan.work import Report


def register(app: typer.Typer) -> None:
    """Add the command."""
    model = ("model", MODEL, "Base model: a built-in name, or a config.json of Hugging Face.")
    add(app, "slots", defaults=DEFAULTS, report=slots, texts=(model,))


def slots(given: Mapping[str, float | None], *, model: str) -> Report:
    """Say how many slots fit, by own and by reserved bytes, and what one more costs in KV."""
    return slots_report(given, model=model, measured=open_lines(data_path(MEASURED)))
