"""The solver behind the exact bound: HiGHS, one thread.

In: a `Keeping`. Out: which intervals to keep, and prices that prove it. Not here: the problem, the check of the proof
(see `sim.bounds.keeping`).

The flow is handed over as a linear program. Its matrix is a network's, so the simplex method ends in whole numbers;
rounding only undoes what floats did on the way, and the proof afterwards reckons in whole numbers.

Needs the extra `plan`; import it only where it is used.
"""

from collections.abc import Callable

import highspy
import numpy as np
import numpy.typing as npt

from lorapick.sim.bounds.keeping import Keeping, Kept, NotProven

_INFINITY = float("inf")
_new_solver: Callable[[], highspy.Highs] = highspy.Highs
"""The class, whose constructor has no annotations."""


def solve_keeping(problem: Keeping) -> Kept:
    """The best intervals to keep; a `sim.bounds.keeping.Solve`.

    Raises:
        NotProven: HiGHS ended without an answer.
    """
    if not problem.saves:
        return Kept(kept=[], prices=[])
    solver = _new_solver()
    for option, value in (("output_flag", False), ("threads", 1), ("solver", "simplex"), ("presolve", "off")):
        solver.setOptionValue(option, value)
    solver.passModel(_program(problem))
    solver.run()
    status = solver.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise NotProven(f"HiGHS ended with {solver.modelStatusToString(status)}; please report the trace")
    solution = solver.getSolution()
    kept = np.asarray(solution.col_value[: len(problem.saves)]) > 0.5
    # Going along the time line costs nothing, so where a unit goes along, neighbours have the same potential.
    prices = np.rint(np.diff(np.asarray(solution.row_dual))).clip(min=0)
    return Kept(kept=kept.tolist(), prices=prices.astype(np.int64).tolist())


def _program(problem: Keeping) -> highspy.HighsLp:
    """Columns: how much of each interval is kept, then what flows along each gap of the time line. Rows: points."""
    tails, heads = _arcs(problem)
    intervals, columns, points = len(problem.saves), len(tails), problem.points
    balance = np.zeros(points)
    balance[0], balance[-1] = problem.lanes, -problem.lanes
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = columns, points
    program.col_cost_ = np.concatenate([-np.asarray(problem.saves, dtype=float), np.zeros(points - 1)])
    program.col_lower_ = np.zeros(columns)
    program.col_upper_ = np.concatenate([np.ones(intervals), np.full(points - 1, _INFINITY)])
    program.row_lower_ = program.row_upper_ = balance
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.arange(0, 2 * columns + 1, 2)
    program.a_matrix_.index_ = np.stack([tails, heads], axis=1).ravel()
    program.a_matrix_.value_ = np.tile([1.0, -1.0], columns)
    return program


def _arcs(problem: Keeping) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    line = np.arange(problem.points - 1)
    tails = np.concatenate([np.asarray(problem.begins, dtype=np.int64), line])
    heads = np.concatenate([np.asarray(problem.ends, dtype=np.int64), line + 1])
    return tails, heads
