"""Mean residency x swap rate = slots in use [Little's law], over a window whose edges cut stays that are under way.

In: stays, counts of slots in use, the times in which a picker watched. Out: `Conservation`. Not here: costs.

The product is of the stays alone, and the counts are made apart from them, as adapters come and leave; that the two
agree shows that the ledger has lost nothing.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from lorapick.model.ledger import ResidencyRow
from lorapick.model.ledger_report import Conservation
from lorapick.model.units import Seconds


class Occupied(NamedTuple):
    """One count."""

    run: int
    """Of the picker; each counts from nothing."""
    t: Seconds
    used: int
    slot_seconds: Seconds


class Watched(NamedTuple):
    """One run of a picker."""

    since: Seconds
    until: Seconds


def conservation(
    stays: Sequence[ResidencyRow],
    counts: Sequence[Occupied],
    *,
    watched: Sequence[Watched],
    since: Seconds,
    until: Seconds,
) -> Conservation:
    """Stays cut at the window's edges, their mean and their rate."""
    cut = [(stay.since, _within(stay.since, stay.until, since=since, until=until)) for stay in stays]
    lengths = [length for _, length in cut if length is not None]
    seconds = sum(_within(run.since, run.until, since=since, until=until) or 0.0 for run in watched)
    mean = sum(lengths) / len(lengths) if lengths else None
    rate = len(lengths) / seconds if seconds > 0 else None
    return Conservation(
        seconds=seconds,
        stays=len(lengths),
        at_start=sum(begun < since for begun, length in cut if length is not None),
        mean_residency=mean,
        per_second=rate,
        slots_in_use=mean * rate if mean is not None and rate is not None else None,
        counted=_counted(counts, since=since, until=until),
    )


def _within(begin: Seconds, end: Seconds | None, *, since: Seconds, until: Seconds) -> Seconds | None:
    """Length of what is in the window; None: nothing of it is."""
    if begin >= until or (end is not None and end <= since and begin < since):
        return None
    return (until if end is None else min(end, until)) - max(begin, since)


def _counted(counts: Iterable[Occupied], *, since: Seconds, until: Seconds) -> float | None:
    """Mean of the counts between two of them, cut at the edges as if slots filled evenly in between."""
    seconds = slot_seconds = 0.0
    for earlier, later in pairwise(counts):
        if earlier.run != later.run or later.t <= earlier.t:
            continue
        part = _within(earlier.t, later.t, since=since, until=until) or 0.0
        seconds += part
        slot_seconds += part * (later.slot_seconds - earlier.slot_seconds) / (later.t - earlier.t)
    return slot_seconds / seconds if seconds > 0 else None
