"""A network with integer costs, and its minimum-cost flow by HiGHS.

In: arcs (from, to, cost, capacity) and what each node sends or takes. Out: the flow of each arc, in whole numbers: the
matrix of a network is totally unimodular, so a basic solution is whole, and the simplex method ends in one.
Not here: what nodes and arcs mean (`flow`).

HiGHS with one thread and without chance gives the same answer to the same network.
"""

from collections.abc import Callable

import highspy
import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]

_new_solver: Callable[[], highspy.Highs] = highspy.Highs
"""The class, whose constructor has no annotations."""
_OPTIONS = (("output_flag", False), ("threads", 1), ("solver", "simplex"), ("presolve", "off"))


class NotSolved(RuntimeError):  # noqa: N818 - what it is, not that it is one
    """HiGHS ended without an answer."""


class Network:
    """Arcs, added in blocks. Nodes are numbered by who adds them."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Whole, Whole, Whole, Whole]] = []
        self.arcs = 0

    def add(self, tails: Whole, heads: Whole, *, costs: Whole, capacities: Whole) -> slice:
        """Arcs of equal length columns; where their flow is in the answer."""
        self._blocks.append((tails, heads, costs, capacities))
        self.arcs += len(tails)
        return slice(self.arcs - len(tails), self.arcs)

    def columns(self) -> tuple[Whole, Whole, Whole, Whole]:
        """Tails, heads, costs, capacities of all arcs."""
        tails, heads, costs, capacities = (np.concatenate(column) for column in zip(*self._blocks, strict=True))
        return tails, heads, costs, capacities

    def flow(self, sends: Whole) -> Whole:
        """The cheapest flow of each arc, when node i sends `sends[i]` (all sends together are 0).

        Raises:
            NotSolved: HiGHS ended without an answer, or there is none.
        """
        if not self.arcs:
            return np.zeros(0, dtype=np.int64)
        solver = _new_solver()
        for option, value in _OPTIONS:
            solver.setOptionValue(option, value)
        solver.passModel(self._program(sends))
        solver.run()
        status = solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise NotSolved(f"HiGHS ended with {solver.modelStatusToString(status)}; please report the problem")
        values: NDArray[np.float64] = np.asarray(solver.getSolution().col_value, dtype=np.float64)
        return np.rint(values).astype(np.int64)

    def _program(self, sends: Whole) -> highspy.HighsLp:
        tails, heads, costs, capacities = self.columns()
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = self.arcs, len(sends)
        program.col_cost_ = costs.astype(float)
        program.col_lower_ = np.zeros(self.arcs)
        program.col_upper_ = capacities.astype(float)
        program.row_lower_ = program.row_upper_ = sends.astype(float)
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = np.arange(0, 2 * self.arcs + 1, 2)
        program.a_matrix_.index_ = np.stack([tails, heads], axis=1).ravel()
        program.a_matrix_.value_ = np.tile([1.0, -1.0], self.arcs)
        return program
