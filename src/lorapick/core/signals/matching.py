"""Which old adapters lost what new ones gained, in one stretch of time compared with one before it.

In: counts before and after. Out: pairs with the evidence for them. Not here: which stretches are compared, and what it
is called (see `core.signals.shifts`).

Two stories are weighed against each other. On top: the old ones go on as before, all at one level, and the new ones
come on top. Split: each new one took the same share `f` of one old one's traffic, and the sum of both goes on as
before. Counts are Poisson's, times the dispersion seen before. The split's pairs are an alignment of both lists in
falling order, found by dynamic programming; what the search is free to choose is charged for.
A pair that was found counts as one from then on, and the search begins anew: several experiments, and several variants
in one, are found one after another.
"""

from collections.abc import Sequence
from math import comb, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.model.units import Ratio

Counts = NDArray[np.float64]

MOST_ROUNDS = 6
"""Experiments that are told apart at a time."""
UNPAIRED_COST = 12.0
"""Of a new adapter that has no old one, in squares of standard errors: what fits worse is no pair."""
_FIRST_NEW = 3
"""The largest new ones, each of which proposes what share of an old one it may be."""
_FIRST_OLD = 30
_DECIDING = 30
"""The largest new ones, by which one of several shares is chosen."""
_SHARES: tuple[Ratio, Ratio] = (0.002, 1.1)


class Stretch(NamedTuple):
    """Counts of two stretches of time."""

    before: Counts
    """Per old adapter, most first."""
    after: Counts
    """Of the same."""
    rest: tuple[float, float]
    """Of the old ones that are too rare to be told apart, before and after."""
    new: Counts
    """Per new adapter, after, most first."""
    ratio: float
    """Length of the stretch after / of the one before."""
    dispersion: float
    """Variance of counts / Poisson's, at least 1."""
    drift: Ratio
    """By how much an adapter's share of the traffic changes by itself, whatever Poisson says."""
    just_before: float
    """All requests that would have come in the stretch after at the rate right before the new ones came."""
    level_error: float
    """Standard error of the logarithm of all traffic from then to the stretch after, when nothing happens."""


class Found(NamedTuple):
    """Pairs that share one `f`."""

    pairs: tuple[tuple[int, int], ...]
    """(old, new), by their places in the stretch."""
    share: Ratio
    """Of the old one's traffic that the new one took, over the stretch after."""
    evidence: float
    """Logarithm of how much likelier the split is, less what the search is charged."""


class Weighed(NamedTuple):
    """What came of one comparison."""

    found: tuple[Found, ...]
    explained: Ratio
    """Of the change in who has what share of the old traffic, beyond noise. 1 as well when there was none."""
    best: float
    """The highest evidence that was seen, without the charge and also where it did not suffice."""

    @property
    def evidence(self) -> float:
        """Of all that was found together."""
        return sum(each.evidence for each in self.found)


def weigh(stretch: Stretch, *, least: float) -> Weighed:
    """Find pairs, as long as there is evidence of at least `least` for more."""
    after = stretch.after.copy()
    first = _misfit(stretch, after)
    left = list(range(len(stretch.new)))
    found: list[Found] = []
    best = float("-inf")
    while left and len(found) < MOST_ROUNDS:
        proposal = _propose(stretch, after, new=stretch.new[left])
        if proposal is None:
            break
        best = max(best, proposal.evidence + _charge(len(after), proposal.pairs))
        if proposal.evidence < least:
            break
        pairs = tuple((old, left[new]) for old, new in proposal.pairs)
        found.append(Found(pairs, proposal.share, proposal.evidence))
        for old, new in pairs:
            after[old] += stretch.new[new]
        taken = frozenset(new for _, new in pairs)
        left = [each for each in left if each not in taken]
    excess = max(first - len(after), 0.0)
    remains = max(_misfit(stretch, after) - len(after), 0.0)
    return Weighed(tuple(found), 1.0 - min(1.0, remains / excess) if excess > 0 else 1.0, best)


def _misfit(stretch: Stretch, after: Counts) -> float:
    """How far the old ones are from going on as before, in squares of standard errors."""
    level = _level(stretch, after, new=0.0)
    return float(np.sum((after - level * stretch.ratio * stretch.before) ** 2 / _variance(stretch)))


def _level(stretch: Stretch, after: Counts, *, new: float) -> float:
    """Traffic after / before, per time, with so much of the new."""
    before = stretch.ratio * (float(stretch.before.sum()) + stretch.rest[0])
    return (float(after.sum()) + stretch.rest[1] + new) / before


def _variance(stretch: Stretch) -> Counts:
    """Of `after` less what is expected from before; both are counted. At the higher level, for both stories alike."""
    scale = _level(stretch, stretch.after, new=float(stretch.new.sum())) * stretch.ratio
    expected = scale * np.maximum(stretch.before, 1.0)
    return np.asarray(stretch.dispersion * expected * (1.0 + scale) + (stretch.drift * expected) ** 2, dtype=np.float64)


def _charge(olds: int, pairs: Sequence[tuple[int, int]]) -> float:
    """For the freedom to choose who was split: so many out of all, or some runs of neighbours, whichever is cheaper.

    Experiments are mostly made with the adapters that are asked for most, which is one run.
    """
    runs = sum(old != before + 1 for (old, _), (before, _) in zip(pairs, [(-2, -2), *pairs], strict=False))
    singly = log(comb(olds, len(pairs)))
    return log(2) + min(singly, log(olds) + log(comb(olds + 1, min(2 * runs, olds + 1))))


class _Costs(NamedTuple):
    """Of one level, for several shares at once: rows are shares, columns old adapters."""

    shares: Counts
    expected: Counts
    """Per old adapter, were nothing taken."""
    gains: Counts
    """By how much an old one fits better when it is split than when it is not; below 0: better."""
    new_variance: Counts
    """Of a count of a new adapter that belongs to it."""


def _propose(stretch: Stretch, after: Counts, *, new: Counts) -> Found | None:
    """The best pairs with one share, at whichever level of traffic fits best."""
    proposals = []
    for level in _levels(stretch, after, new=new):
        shares = _candidates(level * stretch.ratio * stretch.before, new)
        if not len(shares):
            continue
        # First coarsely, from the largest; then by what all pairs say together.
        first = _align(stretch, after, new=new, level=level, shares=shares)
        if first is None:
            continue
        expected = level * stretch.ratio * sum(float(stretch.before[old]) for old, _ in first.pairs)
        share = sum(float(new[each]) for _, each in first.pairs) / expected
        again = _align(stretch, after, new=new, level=level, shares=np.array([share]))
        proposals += [each for each in (first, again) if each is not None]
    return max(proposals, key=lambda each: each.evidence, default=None)


def _levels(stretch: Stretch, after: Counts, *, new: Counts) -> Sequence[float]:
    """All that is new was taken from the old; or most of the old is as it was."""
    ratios = after / (stretch.ratio * stretch.before)
    order = np.argsort(ratios, kind="stable")
    weights = np.cumsum(stretch.before[order])
    middle = int(np.searchsorted(weights, weights[-1] / 2))
    return (_level(stretch, after, new=float(new.sum())), float(ratios[order[middle]]))


def _candidates(expected: Counts, new: Counts) -> Counts:
    """Shares at which one of the largest new ones is exactly what was taken from some old one."""
    usable = expected[:_FIRST_OLD]
    usable = usable[usable > 0]
    shares = np.unique(np.outer(new[:_FIRST_NEW], 1.0 / usable).ravel())
    least, most = _SHARES
    return np.minimum(shares[(shares >= least) & (shares <= most)], 1.0)


def _align(stretch: Stretch, after: Counts, *, new: Counts, level: float, shares: Counts) -> Found | None:
    """The best of some shares, with its pairs and their evidence; None: there are none."""
    costs = _costs(stretch, after, level=level, shares=shares)
    best = int(np.argmin(_total(costs, new[:_DECIDING])[-1][:, -1])) if len(shares) > 1 else 0
    single = _Costs(
        costs.shares[best : best + 1], costs.expected, costs.gains[best : best + 1], costs.new_variance[best : best + 1]
    )
    pairs = _pairs(single, new)
    if not pairs:
        return None
    share = float(single.shares[0])
    olds, news = [old for old, _ in pairs], [each for _, each in pairs]
    surprise = float(
        np.sum((new[news] - share * costs.expected[olds]) ** 2 / single.new_variance[0, olds]),
    )
    variance = _variance(stretch)
    unsplit = float(np.sum((after - costs.expected) ** 2 / variance))
    split = unsplit + float(np.sum(single.gains[0, olds]))
    evidence = (_misfit(stretch, after) - split - max(0.0, surprise - len(pairs))) / 2
    taken = float(new[news].sum())
    evidence += _of_level(stretch, after, new=taken)
    return Found(tuple(pairs), share, evidence - _charge(len(after), pairs))


def _of_level(stretch: Stretch, after: Counts, *, new: float) -> float:
    """What all traffic together says: whether it is as before with the new, or without."""
    old, before = float(after.sum()) + stretch.rest[1], max(stretch.just_before, 1.0)
    alone, together = log(max(old, 1.0) / before), log(max(old + new, 1.0) / before)
    return (alone**2 - together**2) / (2 * stretch.level_error**2)


def _costs(stretch: Stretch, after: Counts, *, level: float, shares: Counts) -> _Costs:
    expected = level * stretch.ratio * stretch.before
    variance = _variance(stretch)
    left = after[None, :] - (1.0 - shares)[:, None] * expected[None, :]
    gains = (left**2 - (after - expected)[None, :] ** 2) / variance[None, :]
    taken = shares[:, None] * expected[None, :]
    scale = level * stretch.ratio
    spread = stretch.dispersion * taken * (1.0 + shares[:, None] * scale) + (stretch.drift * taken) ** 2 + 0.5
    return _Costs(shares, expected, gains, spread)


def _total(costs: _Costs, new: Counts) -> list[Counts]:
    """Least cost of the first new ones, one after another, with the first old ones; shares x (olds + 1) each.

    Relative to leaving all old ones unsplit, so that leaving one is free and each row is a running minimum.
    """
    rows = [np.zeros((len(costs.shares), len(costs.expected) + 1))]
    for count in new:
        last = rows[-1]
        row = last + UNPAIRED_COST
        paired = last[:, :-1] + _pairing(costs, count)
        row[:, 1:] = np.minimum(row[:, 1:], paired)
        rows.append(np.minimum.accumulate(row, axis=1))
    return rows


def _pairing(costs: _Costs, count: float) -> Counts:
    """Cost of pairing one new adapter with each old one."""
    missed = (count - costs.shares[:, None] * costs.expected[None, :]) ** 2 / costs.new_variance
    return np.asarray(costs.gains + missed, dtype=np.float64)


def _pairs(costs: _Costs, new: Counts) -> list[tuple[int, int]]:
    """The pairs of the cheapest alignment, of a single share."""
    rows = [row[0] for row in _total(costs, new)]
    pairs: list[tuple[int, int]] = []
    old = len(costs.expected)
    for each in range(len(new) - 1, -1, -1):
        row, last = rows[each + 1], rows[each]
        while old > 0 and row[old] == row[old - 1]:
            old -= 1
        if row[old] < last[old] + UNPAIRED_COST:
            old -= 1
            pairs.append((old, each))
    return pairs[::-1]
