"""How short of memory pods are, seen at the edges of windows.

In: a world's pods at some moments. Out: how often one was found short, and requests that pods sent back because KV
memory had ended. The pods' own word, whatever the picker believes or has been told to ignore.
Not here: what follows from it (see `core.admission.pressure`), when to look (see `sim.sampling`).
"""

from typing import NamedTuple

from lorapick.model.units import Seconds
from lorapick.sim.world import World


class Shortfall(NamedTuple):
    """Sums over all pods."""

    looks: int = 0
    """At pods."""
    tight: int = 0
    """Of those, the ones that found memory as short as for the tier `hard`."""
    preemptions: int = 0
    """Requests sent back."""


class Shortage:
    """One sum for each moment, from the begin of the run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._sums: list[tuple[Seconds, Shortfall]] = []

    def look(self, now: Seconds) -> None:
        """Look at every pod; all have lived up to now, and times never fall."""
        pods, hard = self._world.pods.values(), self._world.settings.pressure.hard
        before = self._sums[-1][1] if self._sums else Shortfall()
        found = Shortfall(
            looks=before.looks + len(pods),
            tight=before.tight + sum(sim.pressure(now) >= hard for sim in pods),
            preemptions=sum(sim.preemptions(now) for sim in pods),
        )
        self._sums.append((now, found))

    def between(self, start: Seconds, end: Seconds) -> Shortfall:
        """What came after the last look at or before `start`, up to the last one at or before `end`."""
        first, last = self._at(start), self._at(end)
        return Shortfall(*(late - early for late, early in zip(last, first, strict=True)))

    def _at(self, t: Seconds) -> Shortfall:
        found = self._sums[0][1]
        for time, each in self._sums:
            if time > t + 1e-9:
                break
            found = each
        return found
