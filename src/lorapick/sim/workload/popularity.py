"""Popularity of adapters: the laws, and each adapter's share.

In: a law and a number of adapters. Out: shares that add up to 1, in the order in which a flow names its adapters.
Not here: who draws from them (`mix`).
"""

import math
from typing import TypeAlias, assert_never

import msgspec
import numpy as np

from lorapick.model.units import Ratio
from lorapick.sim.workload.chance import FloatArray
from lorapick.sim.workload.checks import require, require_share


class EqualShares(msgspec.Struct, frozen=True, tag="uniform"):
    """All the same."""


class Zipf(msgspec.Struct, frozen=True, tag="zipf"):
    """The i-th adapter has a share in proportion to i^-s. Measured on clients of ServeGen: s of 0.9 to 1.8."""

    s: float

    def __post_init__(self) -> None:
        require(0 <= self.s <= 20, "s", self.s, "an exponent from 0 (uniform) to 20")


class TopShare(msgspec.Struct, frozen=True, tag="top"):
    """The first `top` adapters have `share` of the requests; within the top and within the rest all the same."""

    top: int
    share: Ratio

    def __post_init__(self) -> None:
        require(self.top >= 1, "top", self.top, "at least 1 adapter")
        require_share(self.share, "share")


class Weights(msgspec.Struct, frozen=True, tag="weights"):
    """Shares in proportion to these, one per adapter: measured shares, or rates of Poisson streams."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        usable = all(math.isfinite(value) and value >= 0 for value in self.values)
        require(usable and any(self.values), "weights", self.values, "0 or more each, and one above 0")


class PowerLaw(msgspec.Struct, frozen=True, tag="power"):
    """S-LoRA's: adapter floor(n·x) with x of density alpha·x^(alpha-1); 1 is uniform, below 1 the first are popular."""

    alpha: float

    def __post_init__(self) -> None:
        require(0 < self.alpha <= 100, "alpha", self.alpha, "above 0, at most 100")


Popularity: TypeAlias = EqualShares | Zipf | TopShare | Weights | PowerLaw


def require_fit(law: Popularity, count: int) -> None:
    """A law must speak of as many adapters as there are.

    Raises:
        ValueError: it does not.
    """
    if isinstance(law, Weights):
        require(len(law.values) == count, "number of weights", len(law.values), f"one per adapter: {count}")
    if isinstance(law, TopShare):
        require(law.top <= count, "top", law.top, f"at most the number of adapters, {count}")


def shares(law: Popularity, count: int) -> FloatArray:
    """Each adapter's share of the requests, the first adapter's first."""
    match law:
        case EqualShares():
            weights = np.ones(count)
        case Zipf(s):
            weights = np.arange(1, count + 1, dtype=np.float64) ** -s
        case TopShare(top, share):
            # A top of all has everything, whatever its share is said to be.
            weights = np.full(count, share / top if top < count else 1.0)
            weights[top:] = (1 - share) / max(count - top, 1)
        case Weights(values):
            weights = np.array(values, dtype=np.float64) / max(values)
        case PowerLaw(alpha):
            weights = np.diff(np.linspace(0.0, 1.0, count + 1) ** alpha)
        case _:
            assert_never(law)
    normalised: FloatArray = weights / weights.sum()
    return normalised


def zipf_exponent(count: int, *, top: int, share: Ratio) -> float:
    """The s with which the first `top` of `count` adapters have `share` of the requests.

    Raises:
        ValueError: no exponent gives that share.
    """
    lowest = top / count
    possible = 0 < top < count and lowest <= share < 1
    require(possible, "share", share, f"from {lowest:.3g} (uniform) to below 1 for the first {top} of {count}")
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        if shares(Zipf(middle), count)[:top].sum() < share:
            low = middle
        else:
            high = middle
    return high
