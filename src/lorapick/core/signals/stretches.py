"""Stretches of bins: their sums, and by how much traffic changes by itself.

In: bins of a `TrafficTable`. Out: sums, stretches to compare, dispersion and drift of what came before a change.
Not here: who took what from whom (see `core.signals.matching`, `core.signals.shifts`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lorapick.core.signals.matching import Counts
from lorapick.core.signals.traffic import BIN, TrafficBin
from lorapick.model.units import AdapterName, Ratio, Seconds

LENGTHS = (1, 3, 6)
"""Bins of a stretch after."""
AGES = (1, 2, 4, 8, 16, 32, 64, 128)
"""Bins after a group's first at which stretches end; and now."""
LEAST_SECONDS: Seconds = 60.0
"""Of a stretch; what is shorter says nothing."""
LEVEL_ERROR = 0.05
"""Standard error of the logarithm of all traffic from one bin to the next, at least."""


class Summed(NamedTuple):
    """Some bins together."""

    seconds: Seconds
    counts: Mapping[AdapterName, int]
    total: int
    """Others included."""

    def rate(self, name: AdapterName) -> float:
        """Requests per second."""
        return self.counts.get(name, 0) / self.seconds if self.seconds > 0 else 0.0

    def share(self, names: Sequence[AdapterName]) -> Ratio:
        """Of all requests, those for some adapters."""
        return sum(self.counts.get(name, 0) for name in names) / max(self.total, 1)

    def but(self, names: Mapping[AdapterName, int]) -> "Summed":
        """These bins without some adapters."""
        counts = {name: count for name, count in self.counts.items() if name not in names}
        return Summed(self.seconds, counts, self.total - sum(self.counts.get(name, 0) for name in names))

    def without(self, base: "Summed", seconds: Seconds) -> "Summed":
        """These bins without so many seconds that were as in `base`."""
        if not 0 < seconds <= self.seconds - LEAST_SECONDS:
            return self
        counts = {name: max(0, round(count - seconds * base.rate(name))) for name, count in self.counts.items()}
        return Summed(self.seconds - seconds, counts, max(0, round(self.total - seconds * base.total / base.seconds)))


def summed(bins: Sequence[TrafficBin]) -> Summed:
    """All of them together."""
    counts: dict[AdapterName, int] = {}
    for each in bins:
        for name, count in each.counts.items():
            counts[name] = counts.get(name, 0) + count
    total = sum(counts.values()) + sum(each.others for each in bins)
    return Summed(sum(each.seconds for each in bins), counts, total)


def since(bins: Sequence[TrafficBin], start: Seconds) -> Sequence[TrafficBin]:
    """Bins that begin at or after it; at least the last whole one."""
    found = [each for each in bins if each.start >= start - BIN / 2]
    return found if sum(each.seconds for each in found) >= BIN else bins[-2:]


def stretches(bins: Sequence[TrafficBin], onset: int) -> Iterator[tuple[int, int]]:
    """First and next bin of stretches after the beginning, none twice."""
    last = len(bins)
    seen: dict[tuple[int, int], None] = {}
    for age in (*AGES, last - onset):
        for length in LENGTHS[: 3 if age == last - onset else 2]:
            end = min(onset + age, last)
            seen[max(onset, end - length), end] = None
    for start, end in seen:
        if sum(each.seconds for each in bins[start:end]) >= LEAST_SECONDS:
            yield start, end


def drift(before: Sequence[TrafficBin], olds: Sequence[AdapterName]) -> float:
    """By how much shares moved by themselves from one half of the time before to the other, per second; 0: noise."""
    half = len(before) // 2
    first, second = summed(before[:half]), summed(before[half : 2 * half])
    one = np.array([first.counts.get(name, 0) for name in olds], dtype=np.float64)
    other = np.array([second.counts.get(name, 0) for name in olds], dtype=np.float64)
    both = one + other
    if half == 0 or one.sum() == 0 or other.sum() == 0:
        return 0.0
    changes = 2 * (other / other.sum() - one / one.sum()) * both.sum() / 2 / np.maximum(both, 1.0)
    weights = both**2 / np.sum(both**2)
    excess = float(np.sum(weights * (changes**2 - 4 / np.maximum(both, 1.0))))
    error = float(np.sqrt(np.sum((weights * 4 / np.maximum(both, 1.0)) ** 2) * 2))
    return float(np.sqrt(max(0.0, excess - 2 * error))) / (half * BIN)


def dispersion(before: Sequence[TrafficBin], olds: Sequence[AdapterName]) -> float:
    """Pearson's chi-squared of who had which share in the bins before, per degree of freedom; at least 1."""
    table: Counts = np.array([[each.counts.get(name, 0) for name in olds] for each in before], dtype=np.float64)
    if table.size == 0 or table.sum() == 0:
        return 1.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    if freedom <= 0:
        return 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(expected > 0, (table - expected) ** 2 / expected, 0.0)
    return max(1.0, float(parts.sum() / freedom))


def middle(bins: Sequence[TrafficBin]) -> Seconds:
    """The time in the middle of them."""
    first, last = bins[0], bins[-1]
    return float(first.start + last.start + last.seconds) / 2


def level_error(before: Sequence[TrafficBin]) -> float:
    """From how much all traffic changed from bin to bin before."""
    totals = np.array([sum(each.counts.values()) + each.others for each in before], dtype=np.float64)
    steps = np.diff(np.log(np.maximum(totals, 1.0)))
    return max(LEVEL_ERROR, 2.0 * float(np.std(steps)))
