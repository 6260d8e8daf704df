"""Traffic of whole days in a moment: requests per adapter and minute, drawn from rates, as the tables that picks leave.

In: rates per second, minutes x adapters. Out: `TrafficTable` at any minute. Names are random: who was split from whom
is known from the places alone. Not here: a picker.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lorapick.core.signals.traffic import BIN, MOST_BINS, TrafficBin, TrafficTable

MINUTE = 60.0
DAY_MINUTES = 1440
Rates = NDArray[np.float64]


def zipf(count: int, exponent: float = 1.0) -> Rates:
    """Shares of so many adapters."""
    shares = 1.0 / np.arange(1, count + 1) ** exponent
    return np.asarray(shares / shares.sum(), dtype=np.float64)


class Course:
    """Requests of one fleet, minute by minute."""

    def __init__(self, rates: Rates, *, seed: int) -> None:
        """Draw them."""
        chance = np.random.default_rng(seed)
        self.counts = chance.poisson(np.maximum(rates, 0.0) * MINUTE)
        letters = np.array(list("0123456789abcdef"))
        self.names = ["".join(chance.choice(letters, 6)) + f"{number:x}" for number in range(rates.shape[1])]
        asked = self.counts > 0
        minutes = np.where(asked.any(axis=0), asked.argmax(axis=0), -1)
        self.first = minutes * MINUTE + chance.uniform(0, MINUTE, rates.shape[1])
        """When each was asked for first."""

    def table(self, minute: int) -> TrafficTable:
        """What is known at this minute."""
        counts, per_bin = self.counts[:minute], int(BIN / MINUTE)
        bins = []
        for start in range(0, minute, per_bin):
            part = counts[start : start + per_bin]
            total = part.sum(axis=0)
            asked = {self.names[each]: int(total[each]) for each in np.flatnonzero(total)}
            bins.append(TrafficBin(start * MINUTE, len(part) * MINUTE, asked))
        bins = bins[-MOST_BINS:]
        there = {name: None for each in bins for name in each.counts}
        first = {name: float(self.first[each]) for each, name in enumerate(self.names) if name in there}
        return TrafficTable(minute * MINUTE, tuple(bins), first)


def steady(minutes: int, shares: Rates, *, rate: float = 50.0) -> Rates:
    """The same rates all the time."""
    return np.tile(shares * rate, (minutes, 1))


def split(rates: Rates, olds: Sequence[int], *, at: int, share: float, over: int = 0) -> Rates:
    """From minute `at` on, each of `olds` gives a share of its requests to a new one, growing for `over` minutes."""
    given = rates[:, list(olds)] * (share * _grown(len(rates), at, over=over))[:, None]
    left = rates.copy()
    left[:, list(olds)] -= given
    return np.hstack([left, given])


def added(rates: Rates, new: Sequence[float] | Rates, *, at: int, over: int = 0) -> Rates:
    """From minute `at` on, new adapters come on top, at these rates."""
    return np.hstack([rates, _grown(len(rates), at, over=over)[:, None] * np.asarray(new)[None, :]])


def _grown(minutes: int, at: int, *, over: int) -> Rates:
    since = np.arange(minutes) - at
    return np.clip(since / over, 0.0, 1.0) if over else (since >= 0).astype(np.float64)


def day(minutes: int, phases: Rates, *, swing: float = 0.5) -> Rates:
    """Factors of a day with its ebb; one phase: common to all."""
    t = np.arange(minutes)[:, None]
    return np.asarray(1 + swing * np.sin(2 * np.pi * t / DAY_MINUTES + phases[None, :]), dtype=np.float64)


def bursts(chance: np.random.Generator, size: tuple[int, int], *, sd: float, minutes: float) -> Rates:
    """Factors that wander by themselves (the logarithm is an Ornstein-Uhlenbeck process), for minutes x adapters."""
    keep = np.exp(-1 / minutes)
    found = np.zeros(size)
    found[0] = chance.normal(0, sd, size[1])
    for t in range(1, size[0]):
        found[t] = found[t - 1] * keep + chance.normal(0, sd * np.sqrt(1 - keep**2), size[1])
    return np.exp(found)
