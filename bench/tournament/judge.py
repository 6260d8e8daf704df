"""Who is first in a cell, and by how much.

In: figures of all policies and seeds of a cell. Out: `Verdict`s. Not here: playing, layout.

A tie is a mean within 2 % of the best peer's or an interval (95 %, over seeds) that overlaps its interval. A policy
that left requests unserved in a cell cannot be first there: it is faster because others wait for ever.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from bench.tournament.play import Figures
from lorapick.sim.compare import Estimate, estimate

TIE = 1.02
WORST = 1.05
"""Times the best peer beyond which losing is not for a page to excuse."""


class Place(StrEnum):
    """Of one policy among the others."""

    FIRST = "first"
    TIED = "tied"
    BEHIND = "behind"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One policy in one cell by one figure, less being better."""

    mean: float
    peer: str
    """The best of the others."""
    peers_mean: float
    overlap: bool
    """Whether the two intervals have something in common."""

    @property
    def ratio(self) -> float:
        """Of the mean to the best peer's."""
        return self.mean / self.peers_mean

    @property
    def place(self) -> Place:
        if self.ratio <= 1.0:
            return Place.FIRST
        return Place.TIED if self.ratio <= TIE or self.overlap else Place.BEHIND


def of(figures: Sequence[Figures], name: str) -> Estimate:
    """Mean and interval over seeds; of no mean where some seed has none."""
    return estimate([getattr(each, name) for each in figures])


def served_all(figures: Sequence[Figures]) -> bool:
    """Whether every arrival of every seed was."""
    return all(not each.lost for each in figures)


def verdict(played: Mapping[str, Sequence[Figures]], *, policy: str, name: str) -> Verdict | None:
    """Of one policy; None: it or all its peers left requests unserved, or have no such figure."""
    found = {
        each: estimated
        for each, figures in played.items()
        if served_all(figures) and (estimated := of(figures, name)).mean is not None
    }
    own = found.pop(policy, None)
    if own is None or own.mean is None or not found:
        return None
    peer = min(found, key=lambda each: found[each].mean or 0.0)
    best = found[peer]
    assert best.mean is not None
    return Verdict(mean=own.mean, peer=peer, peers_mean=best.mean, overlap=_overlap(own, best))


def _overlap(one: Estimate, other: Estimate) -> bool:
    if one.half_width is None or other.half_width is None or one.mean is None or other.mean is None:
        return False
    return abs(one.mean - other.mean) <= one.half_width + other.half_width
