"""Every run played with coefficients that were fitted without its group, in parallel processes.

In: runs, slot costs, how long to play. Out: what was fitted for each fold, and an `Outcome` per run.
Not here: fitting (`fit`), playing one run (`simulated`), what outcomes come to (`scoring`, `aims`).
"""

from collections.abc import Sequence

import msgspec

from lorapick.model.units import Seconds, Tokens
from lorapick.plan.calibration.coefficients import Coefficients
from lorapick.plan.calibration.fit import Fold, fit, folds, kv_tokens
from lorapick.plan.calibration.runs import Run, SlotCosts
from lorapick.plan.calibration.scoring import Outcome
from lorapick.plan.calibration.simulated import simulate
from lorapick.plan.spreading import Progress, spread


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be played, and how."""

    seconds: Seconds | None = None
    """Of each run, at most; None: as long as it was measured."""
    seed: int = 1
    only: str = ""
    """Play only runs whose name contains this; folds are fitted all the same."""
    workers: int | None = None
    """Processes; None: one per core."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """What a table gave."""

    coefficients: Coefficients
    """Fitted to all runs."""
    folds: tuple[Fold, ...]
    outcomes: tuple[Outcome, ...]
    """In the order of the table."""


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    run: Run
    coefficients: Coefficients
    kv: Tokens
    seconds: Seconds
    seed: int


def calibrate(runs: Sequence[Run], costs: SlotCosts, *, plan: Plan, progress: Progress | None = None) -> Calibration:
    """Fit, hold out, play.

    Raises:
        FitError: the tables do not say enough.
        WorkerDied: a process was killed.
    """
    found = folds(runs, costs)
    outcomes = spread(_play, _tasks(found, costs, plan=plan), workers=plan.workers, progress=progress)
    by_line = sorted(outcomes, key=lambda outcome: outcome.run.line)
    return Calibration(coefficients=fit(runs, costs), folds=found, outcomes=tuple(by_line))


def _tasks(found: Sequence[Fold], costs: SlotCosts, *, plan: Plan) -> list[_Task]:
    return [
        _Task(
            run=run,
            coefficients=fold.coefficients,
            kv=kv_tokens(run, costs),
            seconds=run.seconds if plan.seconds is None else min(plan.seconds, run.seconds),
            seed=plan.seed,
        )
        for fold in found
        for run in fold.held_out
        if plan.only in run.name
    ]


def _play(task: _Task, progress: Progress) -> Outcome:
    ours = simulate(task.run, task.coefficients, kv_tokens=task.kv, seconds=task.seconds, seed=task.seed)
    progress(1.0)
    return Outcome(run=task.run, played=task.seconds, ours=ours)
