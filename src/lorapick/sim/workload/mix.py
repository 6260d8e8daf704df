"""Which adapter a request is for.

In: adapters with a popularity, planned changes, times, numbers in [0, 1). Out: places in `Mix.names`, which has the
adapters first and then the variants of every split. Not here: where the numbers come from: a stream for flows, the
request's key for traces, so that a conversation keeps its adapter.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lorapick.model.units import AdapterName
from lorapick.sim.workload.chance import FloatArray, IntArray
from lorapick.sim.workload.changes import Change, MixChange, Reweigh, Scale, Split, progress
from lorapick.sim.workload.popularity import Popularity, shares


@dataclass(frozen=True, slots=True)
class Step:
    """A change, ready to be applied."""

    change: MixChange
    cumulative: FloatArray
    """Of the new popularity; empty for a split."""
    offset: int
    """Place of the first variant; 0 for a new popularity."""


class Mix:
    """Adapters, their shares, and how these change."""

    __slots__ = ("_cumulative", "names", "steps")

    def __init__(
        self, adapters: Sequence[AdapterName | None], popularity: Popularity, changes: Sequence[Change] = ()
    ) -> None:
        self.names: list[AdapterName | None] = list(adapters)
        """Whatever `pick` can mean."""
        self.steps: list[Step] = []
        """Changes of the mix in the order of their begin; each needs a number of its own per request."""
        self._cumulative = _cumulative(popularity, len(adapters))
        for change in sorted(changes, key=lambda each: each.at):
            match change:
                case Reweigh():
                    self.steps.append(Step(change, _cumulative(change.popularity, len(adapters)), 0))
                case Split():
                    self.steps.append(Step(change, np.empty(0), len(self.names)))
                    self.names += change.variants(adapters)
                case Scale():
                    pass  # a rate is no matter of the mix

    def pick(self, times: FloatArray, uniform: FloatArray, choices: Sequence[FloatArray]) -> IntArray:
        """Places in `names` of the adapters of requests at `times`.

        Args:
            times: seconds.
            uniform: in [0, 1), one per request.
            choices: for each of `steps`, in [0, 1), one per request: below the part that holds, the change applies.
        """
        # A new popularity draws with the same number, so that a small change moves few requests. Splits come last:
        # a variant belongs to whatever was drawn.
        picked = np.searchsorted(self._cumulative, uniform, side="right")
        for step, choice in zip(self.steps, choices, strict=True):
            if isinstance(step.change, Reweigh):
                other = np.searchsorted(step.cumulative, uniform, side="right")
                picked = np.where(choice < progress(step.change, times), other, picked)
        for step, choice in zip(self.steps, choices, strict=True):
            if isinstance(step.change, Split):
                moves = (picked < step.change.top) & (choice < step.change.share * progress(step.change, times))
                picked = np.where(moves, step.offset + picked, picked)
        return picked.astype(np.int64)


def _cumulative(popularity: Popularity, count: int) -> FloatArray:
    cumulative: FloatArray = np.cumsum(shares(popularity, count))
    cumulative /= cumulative[-1]
    return cumulative
