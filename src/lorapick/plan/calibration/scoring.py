"""How far played runs are from measured ones, run by run and in what their shapes say.

In: pairs of a measured and a played run. Out: errors, knees, peaks, pairs of ranks, and the aims they are held against.
Not here: playing (`held_out`), words and tables (`report`).

Errors are ours / measured - 1. A run is compared if it was played as long as it was measured, or if it was steady: then
the length does not matter. In the others the queue grows, and with it all that depends on it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from statistics import fmean, median
from typing import TypeAlias

import msgspec

from lorapick.model.units import Ratio, Seconds
from lorapick.plan.calibration.runs import Group, Run
from lorapick.plan.calibration.simulated import Simulated

KNEE: Seconds = 1.0
"""Mean TTFT below which a slot count is enough."""
STEADY = 10.0
"""A run is steady if what was played is so many times its P99 of TTFT."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A measured run, and the same played."""

    run: Run
    played: Seconds
    ours: Simulated

    @property
    def comparable(self) -> bool:
        """Whether it was played long enough to be compared."""
        whole = self.played >= self.run.seconds - 1.0
        return whole or (not self.run.overloaded and self.run.ttft_p99 * STEADY < self.played)

    @property
    def tpot_error(self) -> float | None:
        """None: nobody had a second token."""
        return error(self.ours.tpot, self.run.tpot)

    @property
    def served_error(self) -> float:
        """Of requests per second."""
        return self.ours.served / self.run.served - 1.0

    @property
    def ttft_error(self) -> float | None:
        """None: nobody was served."""
        return error(self.ours.ttft, self.run.ttft)


def error(ours: float | None, measured: float) -> float | None:
    """Relative; None: there is nothing to compare."""
    return None if ours is None else ours / measured - 1.0


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Errors of several runs. None: there are none."""

    runs: int
    mean: Ratio | None
    """Of the errors without their signs; so is `worst`."""
    worst: Ratio | None
    bias: float | None
    """Mean with the signs."""
    middle: float | None
    """Median with the signs."""


def spread_of(errors: Iterable[float | None]) -> Spread:
    """What several errors come to; None is left out."""
    found = [each for each in errors if each is not None]
    sizes = [abs(each) for each in found]
    return Spread(
        runs=len(found),
        mean=fmean(sizes) if found else None,
        worst=max(sizes, default=None),
        bias=fmean(found) if found else None,
        middle=median(found) if found else None,
    )


# -- shapes: runs that differ in one thing

Traffic: TypeAlias = tuple[Group, int, int]
"""Group, adapters, rank: what runs share that differ in slots only."""


class Verdict(StrEnum):
    """Whether ours lies where the table has it."""

    RIGHT = "right"
    WRONG = "wrong"
    OPEN = "open"
    """The table has no such thing here, so there is nothing to be right about."""


class Knee(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest slot count with a mean TTFT below a second lies above `over` and at or below `within`."""

    name: str
    over: int | None
    """Largest slot count below `within` that was measured, and too small; None: none was."""
    within: int | None
    """None: no slot count that was measured is enough."""
    ours: int | None
    """The smallest one of those measured that is enough when played."""

    @property
    def verdict(self) -> Verdict:
        """Right if ours lies in the bracket."""
        return Verdict.RIGHT if self.ours == self.within else Verdict.WRONG

    @property
    def closed(self) -> bool:
        """Whether the table has both ends."""
        return self.over is not None and self.within is not None


def knees(outcomes: Sequence[Outcome]) -> tuple[Knee, ...]:
    """One for each traffic that can be compared at every slot count."""
    found = []
    for alike in _by_traffic(outcomes).values():
        if all(each.comparable for each in alike):
            within = _first_enough((each.run.slots, each.run.ttft) for each in alike)
            below = [each.run.slots for each in alike if within is None or each.run.slots < within]
            ours = _first_enough((each.run.slots, each.ours.ttft) for each in alike)
            found.append(Knee(name=_name(alike[0].run), over=max(below, default=None), within=within, ours=ours))
    return tuple(found)


def _first_enough(ttfts: Iterable[tuple[int, Seconds | None]]) -> int | None:
    return min((slots for slots, ttft in ttfts if ttft is not None and ttft < KNEE), default=None)


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """The slot count that serves most of a traffic that is too much for all of them."""

    name: str
    slots: tuple[int, ...]
    measured: int
    ours: int

    @property
    def verdict(self) -> Verdict:
        """Right if ours is neither the smallest nor the largest slot count, where the measured one is not either."""
        middle = self.slots[1:-1]
        if self.measured not in middle:
            return Verdict.OPEN
        return Verdict.RIGHT if self.ours in middle else Verdict.WRONG


def peaks(outcomes: Sequence[Outcome]) -> tuple[Peak, ...]:
    """One for each traffic that was too much at three slot counts or more; those where it was not are left out."""
    found = []
    overloaded = [each for each in outcomes if each.run.overloaded and each.comparable]
    for alike in _by_traffic(overloaded).values():
        if len(alike) >= 3:
            measured = max(alike, key=lambda each: each.run.served)
            ours = max(alike, key=lambda each: each.ours.served)
            slots = tuple(each.run.slots for each in alike)
            name = _name(alike[0].run)
            found.append(Peak(name=name, slots=slots, measured=measured.run.slots, ours=ours.run.slots))
    return tuple(found)


def _by_traffic(outcomes: Iterable[Outcome]) -> dict[Traffic, list[Outcome]]:
    """In order of traffic, and then of slots."""
    found: dict[Traffic, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        found[each.run.group, each.run.adapters, each.run.rank].append(each)
    return {traffic: sorted(found[traffic], key=lambda each: each.run.slots) for traffic in sorted(found)}


def _name(run: Run) -> str:
    return f"{run.model} {run.group[1]}, {run.adapters} adapters, rank {run.rank}"


class RankPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs that differ in the engine's largest rank only; TTFT of the higher divided by that of the lower."""

    name: str
    ranks: tuple[int, int]
    measured: float
    ours: float | None
    """None: one of the two served nobody."""


def rank_pairs(outcomes: Sequence[Outcome]) -> tuple[RankPair, ...]:
    """All of which both can be compared."""
    same: dict[tuple[Group, int, int], list[Outcome]] = defaultdict(list)
    compared = [each for each in outcomes if each.comparable]
    for each in sorted(compared, key=lambda each: (each.run.group, each.run.slots, each.run.adapters, each.run.rank)):
        same[each.run.group, each.run.slots, each.run.adapters].append(each)
    return tuple(_pair(low, high) for alike in same.values() for low, high in pairwise(alike))


def _pair(low: Outcome, high: Outcome) -> RankPair:
    ours = None if low.ours.ttft is None or high.ours.ttft is None else high.ours.ttft / low.ours.ttft
    return RankPair(
        name=f"{low.run.model} {low.run.group[1]} {low.run.slots}/{low.run.adapters}",
        ranks=(low.run.rank, high.run.rank),
        measured=high.run.ttft / low.run.ttft,
        ours=ours,
    )
