"""Loads that fail, a share of them that may change during a run.

In: a seed, the largest share. Out: numbers for the pods, which let that share of their loads fail. Not here: what a
pod does when a load fails (see `pod.loader`).
"""

from collections.abc import Callable

from lorapick.model.units import PodName, Ratio
from lorapick.sim.workload.chance import unit


class FailingLoads:
    """Draws of all pods of a world: each load has its own number, told by the seed, the pod and how many came before.

    Pods are made with the largest share, `most`; while the share is lower, numbers are stretched so that they seldom
    fall below it.
    """

    def __init__(self, *, most: Ratio, seed: int) -> None:
        """Nothing fails before `share` is set."""
        self.most = most
        self.share: Ratio = 0.0
        self._seed = seed

    def draws(self, pod: PodName) -> Callable[[], float]:
        """Numbers for one pod, below `most` for the share of loads that is to fail."""
        count = 0

        def draw() -> float:
            nonlocal count
            count += 1
            number = unit(self._seed, f"load/{pod}/{count}")
            return number * self.most / self.share if self.share else 1.0

        return draw
