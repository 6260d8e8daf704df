"""What each load cost each request, from their rows.

In: rows of loads and requests. Out: charges, which add up to the request's own `load_wait` and `drain`.
Not here: which eviction made a load necessary (see `core.ledger.report`).
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from lorapick.core.ledger.sharing import Span, shares
from lorapick.model.ledger import LoadRow, RequestRow
from lorapick.model.units import AdapterName, PodName, Seconds


class Charge(NamedTuple):
    """Seconds of one request's time that one load took."""

    load: int
    seconds: Seconds
    waited: bool
    """Whether the request waited for it; otherwise it stood still for others."""


class _PodLoads:
    """Loads of one pod in the order in which they ended."""

    def __init__(self) -> None:
        self.rows: list[LoadRow] = []
        self.overs: list[Seconds] = []
        self.longest: Seconds = 0.0

    def add(self, row: LoadRow, begun: Seconds) -> None:
        over = inf if row.over is None else row.over
        self.rows.append(row)
        self.overs.append(over)
        self.longest = max(self.longest, over - begun)


class LoadIndex:
    """Finds the loads that a request met at its pod."""

    def __init__(self, loads: Iterable[LoadRow]) -> None:
        self._pods: dict[PodName, _PodLoads] = {}
        for row in sorted(loads, key=lambda load: inf if load.over is None else load.over):
            if row.begun is not None:
                self._pods.setdefault(row.pod, _PodLoads()).add(row, row.begun)

    def spans(self, pod: PodName, adapter: AdapterName | None, *, since: Seconds, until: Seconds) -> list[Span]:
        """Those under way at some time in between."""
        home = self._pods.get(pod)
        if home is None:
            return []
        found = []
        for number in range(bisect_right(home.overs, since), len(home.rows)):
            row, over = home.rows[number], home.overs[number]
            if over - home.longest >= until:
                break  # this one, and all that ended later, began later than `until`
            if row.begun is not None and row.begun < until:
                found.append(Span(row.id, row.adapter == adapter, row.begun, over))
        return found


def charges(row: RequestRow, index: LoadIndex) -> Iterator[Charge]:
    """What loads cost this request: at the picker, then at its pod."""
    if row.load_wait_held > 0 and row.load is not None:
        yield Charge(row.load, row.load_wait_held, waited=True)
    if row.pod is None or row.dispatched is None or row.load_wait - row.load_wait_held + row.drain <= 0:
        return
    spans = index.spans(row.pod, row.adapter, since=row.dispatched, until=row.ended)
    cost = shares(spans, row.dispatched, until=row.ended)
    for load, seconds in cost.own.items():
        yield Charge(load, seconds, waited=True)
    for load, seconds in cost.others.items():
        yield Charge(load, seconds, waited=False)
