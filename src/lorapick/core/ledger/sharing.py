"""Whose load cost a request which part of its time at a pod.

In: loads of one pod as spans of time, and a request's time there. Out: seconds by load. The same arithmetic makes a
request's row when it ends, and a report from the rows. Not here: where the spans come from.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from lorapick.model.units import Seconds


class Span(NamedTuple):
    """One load on the pod."""

    load: int
    own: bool
    """Whether it is of the request's own adapter."""
    begun: Seconds
    over: Seconds


class Shares(NamedTuple):
    """Seconds of the request's time, by load; no instant counts twice."""

    own: dict[int, Seconds]
    """Waited for its own adapter."""
    others: dict[int, Seconds]
    """While the pod loaded other adapters and not its own; several loads at once share an instant evenly."""

    @property
    def waited(self) -> Seconds:
        """For its own adapter."""
        return sum(self.own.values())

    @property
    def drained(self) -> Seconds:
        """For others."""
        return sum(self.others.values())


def shares(spans: Iterable[Span], since: Seconds, *, until: Seconds) -> Shares:
    """Who cost a request that was at the pod from `since` to `until` how much."""
    own: dict[int, Seconds] = {}
    others: dict[int, Seconds] = {}
    cut = [
        Span(span.load, span.own, max(span.begun, since), min(span.over, until))
        for span in spans
        if span.begun < until and span.over > since
    ]
    edges = sorted(edge for span in cut for edge in (span.begun, span.over))
    for at, after in pairwise(edges):
        if after == at:
            continue  # who took no time is not named
        under_way = [span for span in cut if span.begun <= at and span.over >= after]
        mine = [span for span in under_way if span.own]
        for span in mine or under_way:
            kind, count = (own, len(mine)) if mine else (others, len(under_way))
            kind[span.load] = kind.get(span.load, 0.0) + (after - at) / count
    return Shares(own, others)
