"""Names what changed: adapters that appeared together, and whether they came on top of the traffic or took others'.

In: a `TrafficTable`. Out: shifts, the largest first. Names mean nothing here: an experiment is known by what it takes
from whom. Not here: the statistics of one comparison (see `core.signals.matching`), words (see `core.doctor`).

An adapter is new when its first request came after at least `LEAST_BEFORE` bins of watching. New ones that came within
`TOGETHER` of one another are one group. Traffic before the group is compared with several stretches since; the one with
most evidence says who was split. Evidence is in nats: at `LEAST_EVIDENCE` a split is e^6 = 400 times as likely as new
traffic on top, with every choice that the search had charged for.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.signals.matching import Stretch, Weighed, weigh
from lorapick.core.signals.stretches import Summed, dispersion, drift, level_error, middle, since, stretches, summed
from lorapick.core.signals.traffic import BIN, TrafficBin, TrafficTable
from lorapick.model.shifts import Shift, ShiftKind, ShiftPair
from lorapick.model.units import AdapterName, Ratio, Seconds

LEAST_BEFORE = 3
"""Bins before a group without which nobody can say what was before."""
MOST_BEFORE = 12
"""Bins before a group that count; what is older is another time of day."""
TOGETHER: Seconds = 2 * BIN
LEAST_REQUESTS = 10
LEAST_SHARE: Ratio = 0.0002
"""Of a new adapter, since its first request: whoever is rarer is the tail that every traffic has."""
MOST_NEW = 200
MOST_OLD = 200
"""The most asked for of a group, and of the old, that are compared one by one."""
LEAST_EXPECTED = 5.0
"""Requests of an old adapter in a stretch below which a loss could not be seen."""
LEAST_EVIDENCE = 6.0
LEAST_EXPLAINED: Ratio = 0.6
"""Of the change in who has which share: where more is left unexplained, shares drift, and pairs are chance."""
LEAST_PAIRED: Ratio = 0.5
"""Of a group's requests, those for adapters that have a pair: an experiment is not one of many."""
MOST_ODD: Ratio = 0.1
"""Of the bins since, those in which a pair's sum may be another than before."""
EARLIER_BINS = 2
FIRST_BINS = 8
"""Of the first of them, with so many before the change, none may be: what is lost and gained at different times is no
split."""
ODD = 0.4
"""Part of what was taken by which a pair's sum may be off, beside three standard errors."""
DRIFT: Ratio = 0.01
"""By how much an adapter's share of the traffic changes by itself at least."""
PRECEDING: Seconds = 3 * 3600.0
"""Who was new within so long before a group may still be growing, and is no measure of who lost."""
JUST_BEFORE = 3
"""Bins before a group of which the level of all traffic is taken."""
LEVEL_DRIFT = 0.15 / 3600
"""By how much the standard error of the logarithm of all traffic grows per second: traffic has its day."""
TOP_ERROR = 0.1
"""That standard error when nobody can be told apart, for traffic that came on top."""
NOW: Seconds = 900.0
"""What shares are told of: the last quarter of an hour, less when the group is younger."""
GONE: Ratio = 0.9
"""Share of a pair's traffic from which on the new one has replaced the old one."""
OVER: Ratio = 0.01
"""Below which it is over."""
WORTH_TELLING: Ratio = 0.01
"""Share of all traffic from which on new adapters are told of that took nothing."""


class _Group(NamedTuple):
    """New adapters that came together."""

    since: Seconds
    names: tuple[AdapterName, ...]
    onset: int
    """Number of the bin in which the first of them came."""
    newcomers: Sequence[AdapterName]
    """Everybody who is new, of whatever group."""


def find(table: TrafficTable) -> tuple[Shift, ...]:
    """Every group that is worth telling of, the largest share of the traffic first."""
    shifts: list[Shift] = []
    for group in _groups(table):
        shift = _judge(table, group)
        if shift is not None:
            shifts.append(shift)
            table = _folded(table, shift)
    lasting = [shift for shift in shifts if shift.taken is None or shift.taken >= OVER]
    return tuple(sorted(lasting, key=lambda shift: -shift.share))


def _folded(table: TrafficTable, shift: Shift) -> TrafficTable:
    """The same with each pair as one adapter, so that what came later is compared with something steady."""
    replaced = shift.kind is ShiftKind.REPLACED
    into = {pair.old: pair.new for pair in shift.pairs} if replaced else {pair.new: pair.old for pair in shift.pairs}
    if not into:
        return table
    bins = []
    for each in table.bins:
        counts = dict(each.counts)
        for name, other in into.items():
            if name in counts:
                counts[other] = counts.get(other, 0) + counts.pop(name)
        bins.append(each._replace(counts=counts))
    first = dict(table.first_seen)
    for name, other in into.items():
        first[other] = min(first[other], first.pop(name, first[other]))
    return table._replace(bins=tuple(bins), first_seen=first)


def _groups(table: TrafficTable) -> Iterator[_Group]:
    """Groups in the order in which they came."""
    bins = table.bins
    if len(bins) <= LEAST_BEFORE:
        return
    earliest = bins[LEAST_BEFORE].start
    names = sorted(
        (name for name, first in table.first_seen.items() if first >= earliest),
        key=lambda name: (table.first_seen[name], name),
    )
    together: list[AdapterName] = []
    totals = _totals(bins)
    names = [each for each in names if _matters(table, each, totals=totals)]
    for name in names:
        if together and table.first_seen[name] - table.first_seen[together[-1]] > TOGETHER:
            yield _group(table, together, newcomers=names)
            together = []
        together.append(name)
    if together:
        yield _group(table, together, newcomers=names)


def _group(table: TrafficTable, names: Sequence[AdapterName], *, newcomers: Sequence[AdapterName]) -> _Group:
    since = table.first_seen[names[0]]
    return _Group(since, tuple(names), int((since - table.bins[0].start) // BIN), newcomers)


def _totals(bins: Sequence[TrafficBin]) -> list[int]:
    """Requests from each bin to the last one."""
    running, totals = 0, []
    for each in reversed(bins):
        running += sum(each.counts.values()) + each.others
        totals.append(running)
    return totals[::-1]


def _matters(table: TrafficTable, name: AdapterName, *, totals: Sequence[int]) -> bool:
    """Whether it is asked for more often than the tail that every traffic has."""
    first = int((table.first_seen[name] - table.bins[0].start) // BIN)
    count = sum(each.counts.get(name, 0) for each in table.bins[first:])
    return count >= max(LEAST_REQUESTS, LEAST_SHARE * totals[first])


# -- one group


class _Best(NamedTuple):
    """The stretch that says most, and what it says."""

    weighed: Weighed
    olds: tuple[AdapterName, ...]
    news: tuple[AdapterName, ...]
    dispersion: float
    """Of counts, as seen before."""
    end: int
    """The bin after the stretch."""


def _judge(table: TrafficTable, group: _Group) -> Shift | None:
    """What a group did; None: too little to tell of."""
    bins = table.bins
    base = summed(bins[max(0, group.onset - MOST_BEFORE) : group.onset])
    latest = _present(table, group, base=base, start=table.now - NOW)
    looks = [*_looks(table, group)]
    charge = log(max(1, len(looks)))
    enough = [
        look
        for look in looks
        if look.weighed.evidence - charge >= LEAST_EVIDENCE
        and look.weighed.explained >= LEAST_EXPLAINED
        and _holds(look, base=base, bins=bins[group.onset - EARLIER_BINS : look.end])
    ]
    news = tuple(sorted(group.names, key=lambda name: (-latest.counts.get(name, 0), name)))
    if enough:
        best = max(enough, key=lambda look: look.weighed.evidence)
        pairs = _pairs(best, base=base, latest=latest)
        return Shift(
            kind=_kind(pairs, last=_last(table, group, base=base)),
            since=group.since,
            new=news,
            pairs=tuple(pairs),
            share=latest.share(news),
            lost=_lost(pairs, news=news, base=base, latest=latest),
            taken=_taken(pairs),
            evidence=best.weighed.evidence - charge,
        )
    if latest.share(news) < WORTH_TELLING:
        return None
    kind = _without_split(base, latest, news=news, best=max((look.weighed.best for look in looks), default=0.0))
    return Shift(kind=kind, since=group.since, new=news, share=latest.share(news))


def _present(table: TrafficTable, group: _Group, *, base: Summed, start: Seconds) -> Summed:
    """The time from `start` on, without what was before the group."""
    bins = since(table.bins, max(start, group.since))
    return summed(bins).without(base, max(0.0, group.since - bins[0].start))


def _last(table: TrafficTable, group: _Group, *, base: Summed) -> Summed:
    """The last minutes: a rollout goes from one adapter to the next, and whom it has left is seen there."""
    return _present(table, group, base=base, start=table.now - BIN)


def _looks(table: TrafficTable, group: _Group) -> Iterator[_Best]:
    """What each stretch says."""
    bins = table.bins
    growing = {
        name: 0
        for name in group.newcomers
        if name in table.first_seen and group.since - PRECEDING < table.first_seen[name] < group.since
    }
    before = bins[max(0, group.onset - MOST_BEFORE) : group.onset]
    for start, end in stretches(bins, group.onset):
        yield _look(group, before=before, after=bins[start:end], growing=growing)._replace(end=end)


def _holds(look: _Best, *, base: Summed, bins: Sequence[TrafficBin]) -> bool:
    """Whether most of the new traffic has a pair, and the sums of the pairs were as before all the time since."""
    pairs = [(look.olds[old], look.news[new]) for found in look.weighed.found for old, new in found.pairs]
    all_since = summed(bins)
    together: dict[AdapterName, dict[AdapterName, None]] = {}
    for old, new in pairs:
        together.setdefault(old, {})[new] = None
    paired = sum(all_since.counts[new] for _, new in pairs)
    if paired < LEAST_PAIRED * sum(all_since.counts[new] for new in look.news):
        return False
    odd = _odd(look, together, base=base, bins=bins)
    weights = np.array([base.counts[old] for old in together], dtype=np.float64)
    steady = (odd.mean(axis=0) <= MOST_ODD) & ~odd[:FIRST_BINS].any(axis=0)
    return float(weights[steady].sum()) >= 0.8 * float(weights.sum())


def _odd(
    look: _Best,
    together: Mapping[AdapterName, Mapping[AdapterName, None]],
    *,
    base: Summed,
    bins: Sequence[TrafficBin],
) -> NDArray[np.bool_]:
    """Bins x pairs: whether an old adapter and what took from it are together another share of traffic than before."""
    before = np.array([base.counts[old] for old in together], dtype=np.float64)
    left = np.array([[each.counts.get(old, 0) for old in together] for each in bins], dtype=np.float64)
    took = np.array(
        [[sum(each.counts.get(new, 0) for new in news) for news in together.values()] for each in bins],
        dtype=np.float64,
    )
    everyone = np.array([sum(each.counts.get(old, 0) for old in look.olds) for each in bins], dtype=np.float64)
    level = (everyone + took.sum(axis=1)) / sum(base.counts[old] for old in look.olds)
    expected = level[:, None] * before[None, :]
    error = np.sqrt(look.dispersion * np.maximum(expected, 1.0) * (1.0 + level[:, None]))
    shares = took.sum(axis=0) / np.maximum((took + left).sum(axis=0), 1.0)
    return np.asarray(np.abs(left + took - expected) > 3 * error + ODD * shares[None, :] * expected, dtype=np.bool_)


def _kind(pairs: Sequence[ShiftPair], *, last: Summed) -> ShiftKind:
    """Whether most old ones are gone."""
    gone = sum(
        last.counts.get(pair.new, 0) >= GONE * max(last.counts.get(pair.new, 0) + last.counts.get(pair.old, 0), 1)
        for pair in pairs
    )
    return ShiftKind.REPLACED if 2 * gone >= len(pairs) else ShiftKind.SPLIT


def _taken(pairs: Sequence[ShiftPair]) -> Ratio | None:
    took = sum(pair.new_now for pair in pairs)
    both = took + sum(pair.old_now for pair in _distinct(pairs))
    return took / both if both else None


def _lost(pairs: Sequence[ShiftPair], *, news: Sequence[AdapterName], base: Summed, latest: Summed) -> Ratio:
    """What the old ones lack, at the level that all traffic has now without new ones that have no pair."""
    paired = {pair.new: pair.new_now for pair in pairs}
    unpaired = sum(latest.counts.get(name, 0) for name in news if name not in paired)
    level = (latest.total - unpaired) / max(latest.seconds, 1e-9) / (base.total / base.seconds)
    lacking = sum(pair.before * level - pair.old_now for pair in _distinct(pairs))
    return max(0.0, lacking * latest.seconds / max(latest.total, 1))


def _distinct(pairs: Sequence[ShiftPair]) -> list[ShiftPair]:
    """One for each old adapter; it may have several new ones."""
    return list({pair.old: pair for pair in pairs}.values())


def _pairs(best: _Best, *, base: Summed, latest: Summed) -> list[ShiftPair]:
    pairs = []
    for found in best.weighed.found:
        for old, new in found.pairs:
            old_name, new_name = best.olds[old], best.news[new]
            pairs.append(
                ShiftPair(
                    old=old_name,
                    new=new_name,
                    before=base.rate(old_name),
                    old_now=latest.rate(old_name),
                    new_now=latest.rate(new_name),
                )
            )
    return sorted(pairs, key=lambda pair: (-pair.before, pair.new))


def _without_split(base: Summed, latest: Summed, *, news: Sequence[AdapterName], best: float) -> ShiftKind:
    """On top, when a split would have been seen and was not, or when all traffic rose by what is new."""
    gained = [latest.counts.get(name, 0) for name in news]
    olds = sorted(base.counts.values(), reverse=True)
    ratio = latest.seconds / base.seconds
    before = max(ratio * base.total, 1.0)
    more = sum(gained) / before
    # Were these the losses of the largest old ones, how far would those be below the others?
    surprises = [
        (gain - more * ratio * old) ** 2 / (ratio * old * (1 + ratio) + (DRIFT * ratio * old) ** 2)
        for gain, old in zip(gained, olds, strict=False)
    ]
    together = log(max(latest.total, 1) / before)
    alone = log(max(latest.total - sum(gained), 1) / before)
    visible = max(0.0, sum(surprises) - len(surprises)) / 2 >= 2 * LEAST_EVIDENCE and best < LEAST_EVIDENCE
    higher = (together**2 - alone**2) / (2 * TOP_ERROR**2) >= LEAST_EVIDENCE
    return ShiftKind.ADDED if visible or higher else ShiftKind.UNCLEAR


def _look(
    group: _Group,
    *,
    before: Sequence[TrafficBin],
    after: Sequence[TrafficBin],
    growing: Mapping[AdapterName, int],
) -> _Best:
    """Compare one stretch with the time before."""
    base, then = summed(before).but(growing), summed(after).but(growing)
    shortly, shortly_since = summed(before[-JUST_BEFORE:]).but(growing), before[-JUST_BEFORE:][0].start
    ratio = then.seconds / base.seconds
    olds = sorted(base.counts, key=lambda name: (-base.counts[name], name))
    olds = [name for name in olds[:MOST_OLD] if base.counts[name] * ratio >= LEAST_EXPECTED]
    news = sorted(group.names, key=lambda name: (-then.counts.get(name, 0), name))
    news = [name for name in news[:MOST_NEW] if then.counts.get(name, 0) > 0]
    known = {**dict.fromkeys(olds), **dict.fromkeys(group.names)}
    stretch = Stretch(
        before=np.array([base.counts[name] for name in olds], dtype=np.float64),
        after=np.array([then.counts.get(name, 0) for name in olds], dtype=np.float64),
        rest=(
            float(base.total - sum(base.counts[name] for name in olds)),
            float(sum(count for name, count in then.counts.items() if name not in known and name in base.counts)),
        ),
        new=np.array([then.counts[name] for name in news], dtype=np.float64),
        ratio=ratio,
        dispersion=dispersion(before, olds),
        drift=float(np.hypot(DRIFT, drift(before, olds) * (middle(after) - middle(before)))),
        just_before=then.seconds * shortly.total / shortly.seconds,
        level_error=level_error(before) + LEVEL_DRIFT * (after[-1].start + after[-1].seconds - shortly_since),
    )
    weighed = weigh(stretch, least=LEAST_EVIDENCE) if olds and news else Weighed((), 1.0, 0.0)
    return _Best(weighed, tuple(olds), tuple(news), dispersion=stretch.dispersion, end=0)
