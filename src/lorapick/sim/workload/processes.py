"""Processes of arrivals: what they are. Rates are requests per second; cv is that of the gaps at a constant rate.

In: numbers. Out: values. Not here: times (see `times`).
"""

import math
from itertools import pairwise
from typing import TypeAlias

import msgspec

from lorapick.model.units import Ratio, Seconds
from lorapick.sim.workload.checks import require, require_cv, require_rate, require_span, require_time


class Poisson(msgspec.Struct, frozen=True, tag="poisson"):
    """Independent arrivals at a constant rate."""

    rate: float

    def __post_init__(self) -> None:
        require_rate(self.rate)


class Gamma(msgspec.Struct, frozen=True, tag="gamma"):
    """Gamma-distributed gaps; cv 1 is Poisson, 0 even gaps."""

    rate: float
    cv: float

    def __post_init__(self) -> None:
        require_rate(self.rate)
        require_cv(self.cv)


class State(msgspec.Struct, frozen=True):
    """One state of a Markov-modulated process: its rate, and how long it lasts in the mean."""

    rate: float
    dwell: Seconds

    def __post_init__(self) -> None:
        require_rate(self.rate)
        require_span(self.dwell, "dwell")


class MarkovModulated(msgspec.Struct, frozen=True, tag="mmpp"):
    """Poisson arrivals whose rate jumps between states (MMPP); begins in the first, then any other is as likely.

    The mean rate is Σ rate·dwell / Σ dwell.
    """

    states: tuple[State, ...]

    def __post_init__(self) -> None:
        require(len(self.states) >= 2, "number of states", len(self.states), "at least 2; for one state use poisson")
        require(any(state.rate for state in self.states), "every state's rate", 0, "one must be above 0")


class Diurnal(msgspec.Struct, frozen=True, tag="diurnal"):
    """A sinusoid of mean `rate`, whose highest rate is `ratio` times its lowest."""

    rate: float
    ratio: float
    peak: Seconds = 14 * 3600.0
    """When the rate is highest, in seconds after midnight."""
    period: Seconds = 86_400.0
    cv: float = 1.0

    def __post_init__(self) -> None:
        require_rate(self.rate)
        require(1 <= self.ratio <= 1e6, "ratio", self.ratio, "highest through lowest rate, 1 to 1,000,000")
        require_time(self.peak, "peak")
        require_span(self.period, "period")
        require_cv(self.cv)


class Profile(msgspec.Struct, frozen=True, tag="profile"):
    """A rate for each hour of the day (or for steps of another length, from midnight), again and again."""

    rates: tuple[float, ...]
    step: Seconds = 3600.0
    cv: float = 1.0

    def __post_init__(self) -> None:
        for rate in self.rates:
            require_rate(rate, "a rate of the profile")
        require(any(self.rates), "rates", self.rates, "at least one must be above 0")
        require_span(self.step, "step")
        require_cv(self.cv)


class FlashCrowd(msgspec.Struct, frozen=True, tag="flash"):
    """`rate`, and from `at` on `rate`·(1 + (factor - 1)·e^-((t - at)/decay))."""

    rate: float
    at: Seconds
    factor: float
    decay: Seconds
    cv: float = 1.0

    def __post_init__(self) -> None:
        require_rate(self.rate)
        require_time(self.at, "at")
        require(1 <= self.factor <= 1e6, "factor", self.factor, "times the rate, 1 to 1,000,000")
        require_span(self.decay, "decay")
        require_cv(self.cv)


class Hawkes(msgspec.Struct, frozen=True, tag="hawkes"):
    """Arrivals that bring others: each has Poisson(branching) followers, after exponential delays of mean `decay`.

    `rate` is the long-run mean, followers included. Flash crowds are about 0.5 to 0.8.
    """

    rate: float
    branching: Ratio
    decay: Seconds

    def __post_init__(self) -> None:
        require_rate(self.rate)
        require(0 <= self.branching <= 0.99, "branching", self.branching, "0 to 0.99 (at 1 the crowd never ends)")
        require_span(self.decay, "decay")


class Window(msgspec.Struct, frozen=True):
    """A stretch of time with a measured rate and a measured cv."""

    start: Seconds
    end: Seconds
    rate: float
    cv: float = 1.0

    def __post_init__(self) -> None:
        require_time(self.start, "start")
        require(self.start < self.end < math.inf, "end", self.end, f"after the start, {self.start}")
        require_rate(self.rate)
        require_cv(self.cv)


class Windows(msgspec.Struct, frozen=True, tag="windows"):
    """Measured demand (ServeGen): in each window rate·length requests, with Gamma gaps stretched to fill the window.

    So the counts are the measured ones whatever the cv; nothing comes between windows or after the last.
    """

    windows: tuple[Window, ...]

    def __post_init__(self) -> None:
        for before, after in pairwise(self.windows):
            require(before.end <= after.start, "start", after.start, f"not before the end of the last, {before.end}")


class Burst(msgspec.Struct, frozen=True, tag="burst"):
    """Exactly `count` requests, at random times between `at` and `at` + `over`."""

    count: int
    at: Seconds
    over: Seconds = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.count <= 10**7, "count", self.count, "0 to 10,000,000 requests")
        require_time(self.at, "at")
        require_time(self.over, "over")


Process: TypeAlias = Poisson | Gamma | MarkovModulated | Diurnal | Profile | FlashCrowd | Hawkes | Windows | Burst
