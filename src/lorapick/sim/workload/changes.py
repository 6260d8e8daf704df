"""Planned changes of a flow: nothing before `at`, growing evenly over `over` seconds, then all of it.

In: numbers. Out: values, and how much of a change holds at a time. Not here: rates (`rates`), adapters (`mix`).
"""

from collections.abc import Iterable
from itertools import islice
from typing import TypeAlias

import msgspec
import numpy as np

from lorapick.model.units import AdapterName, Ratio, Seconds
from lorapick.sim.workload.chance import FloatArray
from lorapick.sim.workload.checks import require, require_share, require_time
from lorapick.sim.workload.popularity import Popularity


class Scale(msgspec.Struct, frozen=True, tag="scale"):
    """The rate becomes `factor` times what it was (1.05: five per cent more). Several multiply."""

    at: Seconds
    factor: float
    over: Seconds = 0.0

    def __post_init__(self) -> None:
        require_time(self.at, "at")
        require(0 <= self.factor <= 1e6, "factor", self.factor, "times the rate, 0 to 1,000,000")
        require_time(self.over, "over")


class Split(msgspec.Struct, frozen=True, tag="split"):
    """`share` of the requests for each of the first `top` adapters goes to a variant of it instead."""

    at: Seconds
    top: int
    share: Ratio
    into: str = "{name}-experiment"
    over: Seconds = 0.0
    declared: bool = True
    """Whether the picker's configuration names the variants; pods have them in any case."""

    def __post_init__(self) -> None:
        require_time(self.at, "at")
        require(self.top >= 1, "top", self.top, "at least 1 adapter")
        require_share(self.share, "share")
        require("{name}" in self.into, "into", repr(self.into), "it must contain {name}")
        require_time(self.over, "over")

    def variants(self, adapters: Iterable[AdapterName | None]) -> list[AdapterName]:
        """Variants of the first `top` of `adapters`, in their order."""
        return [self.into.replace("{name}", name or "") for name in islice(adapters, self.top)]


class Reweigh(msgspec.Struct, frozen=True, tag="reweigh"):
    """Requests come to be spread by another popularity (over the same adapters)."""

    at: Seconds
    popularity: Popularity
    over: Seconds = 0.0

    def __post_init__(self) -> None:
        require_time(self.at, "at")
        require_time(self.over, "over")


Change: TypeAlias = Scale | Split | Reweigh
MixChange: TypeAlias = Split | Reweigh


def progress(change: Change, times: FloatArray) -> FloatArray:
    """How much of a change holds at each time, from 0 to 1."""
    if change.over == 0:
        return (times >= change.at).astype(np.float64)
    grown: FloatArray = np.clip(times - change.at, 0.0, change.over) / change.over
    return grown
