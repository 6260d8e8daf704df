"""Which evictions made a window of time slow.

In: rows of the ledger that touch the window. Out: a `LedgerReport`.
Not here: where rows come from (`live.ledger`), words for people (`cli.ledger`).

A reload costs two kinds of requests: those that wait for it, and those at its pod that stand still while it goes on.
Both are charged to the eviction that made it necessary: the last time that the adapter left that pod, or another one
shortly before. What a request would have taken without it is its latency less that, all else being as it was.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from lorapick.core.ledger.charging import Charge, LoadIndex, charges
from lorapick.core.ledger.conservation import Occupied, Watched, conservation
from lorapick.model.ledger import LeftWhy, LoadRow, RequestRow, ResidencyRow
from lorapick.model.ledger_report import EvictionCost, Latencies, LedgerReport, OtherLoads, Parts, Without
from lorapick.model.requests import Outcome
from lorapick.model.units import AdapterName, PodName, Seconds

WITHOUT = (1, 3, 10)
"""Counterfactuals: without so many of the costliest groups."""
MOST_LISTED = 20

Group = tuple[AdapterName, PodName, AdapterName | None, LeftWhy]


class Rows(NamedTuple):
    """What the ledger has of a window; numbers of loads and stays are unique over all runs of the picker."""

    requests: Sequence[RequestRow]
    """Ended in the window."""
    before: Sequence[RequestRow]
    """Ended in the time before."""
    loads: Sequence[LoadRow]
    """Under way while any of `requests` was there."""
    made_necessary_by: Mapping[int, ResidencyRow]
    """Stays by number: those whose end made `loads` necessary."""
    stays: Sequence[ResidencyRow]
    """In slots at some time in the window."""
    counts: Sequence[Occupied]
    watched: Sequence[Watched]
    watched_since: Seconds | None
    rows_lost: int


class Asked(NamedTuple):
    """The question."""

    since: Seconds
    until: Seconds
    before: Seconds = 3600.0
    """How long the time before is that the window is compared with."""
    adapter: AdapterName | None = None
    pod: PodName | None = None
    outcome: Outcome | None = None
    """Only requests that ended like this; for lists of requests, not for reports."""
    most: int = MOST_LISTED


class _Cost:
    """What one group of evictions cost."""

    def __init__(self) -> None:
        self.stays: dict[int, None] = {}
        self.loads: dict[int, None] = {}
        self.waited: dict[int, Seconds] = {}
        """By request."""
        self.drained: dict[int, Seconds] = {}

    def add(self, charge: Charge, *, request: int) -> None:
        """One load cost one request something."""
        self.loads[charge.load] = None
        where = self.waited if charge.waited else self.drained
        where[request] = where.get(request, 0.0) + charge.seconds

    def of(self, request: int) -> Seconds:
        """Of one request."""
        return self.waited.get(request, 0.0) + self.drained.get(request, 0.0)

    @property
    def seconds(self) -> Seconds:
        """Of all."""
        return sum(self.waited.values()) + sum(self.drained.values())


def make_report(rows: Rows, asked: Asked) -> LedgerReport:
    """Answer the question."""
    served = [row for row in rows.requests if row.outcome is Outcome.SERVED]
    window = _latencies(rows.requests, asked.since, until=asked.until)
    slow = [number for number, row in enumerate(served) if window.p95 is not None and latency(row) >= window.p95]
    groups, others = _charged(served, rows)
    ranked = sorted(groups.items(), key=lambda item: (-item[1].seconds, str(item[0])))
    beyond = dict.fromkeys(slow)
    return LedgerReport(
        window=window,
        before=_latencies(rows.before, asked.since - asked.before, until=asked.since),
        adapter=asked.adapter,
        pod=asked.pod,
        refused=_refused(rows.requests),
        adapters=len({row.adapter: None for row in rows.requests if row.adapter is not None}),
        pickers=tuple(run.since for run in rows.watched if run.until >= asked.since and run.since < asked.until),
        beyond=parts([served[number] for number in slow]),
        rest=parts([row for number, row in enumerate(served) if number not in beyond]),
        evictions=tuple(_entry(group, cost, slow=beyond) for group, cost in ranked[: asked.most]),
        groups=len(ranked),
        evictions_seconds=sum(cost.seconds for _, cost in ranked),
        other_loads=OtherLoads(
            loads=len(others.loads), waited=sum(others.waited.values()), drained=sum(others.drained.values())
        ),
        without=tuple(_without(served, [cost for _, cost in ranked])),
        conservation=conservation(rows.stays, rows.counts, watched=rows.watched, since=asked.since, until=asked.until),
        watched_since=rows.watched_since,
        rows_lost=rows.rows_lost,
    )


def _refused(rows: Iterable[RequestRow]) -> dict[str, int]:
    counted = Counter(str(row.reason or "unknown") for row in rows if row.outcome is Outcome.REJECTED)
    return dict(counted.most_common())


def latency(row: RequestRow) -> Seconds:
    """From arrival at the picker to the end of the answer."""
    return row.ended - row.arrived


def quantile(values: Sequence[Seconds], share: float) -> Seconds | None:
    """The least value that at least this share of them does not exceed. None: there are none."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)] if values else None


def _latencies(rows: Sequence[RequestRow], since: Seconds, *, until: Seconds) -> Latencies:
    of = {outcome: sum(row.outcome is outcome for row in rows) for outcome in Outcome}
    times = [latency(row) for row in rows if row.outcome is Outcome.SERVED]
    hits = [row.hit for row in rows if row.hit is not None]
    return Latencies(
        since=since,
        until=until,
        served=of[Outcome.SERVED],
        failed=of[Outcome.FAILED],
        rejected=of[Outcome.REJECTED],
        abandoned=of[Outcome.ABANDONED],
        p50=quantile(times, 0.5),
        p95=quantile(times, 0.95),
        hit_ratio=sum(hits) / len(hits) if hits else None,
    )


def parts(rows: Sequence[RequestRow]) -> Parts | None:
    """What these spent their time on, in the mean."""
    if not rows:
        return None
    split = [row for row in rows if row.prefill is not None and row.decode is not None]
    return Parts(
        requests=len(rows),
        latency=_mean(latency(row) for row in rows),
        queue=_mean(row.queue for row in rows),
        load_wait=_mean(row.load_wait for row in rows),
        drain=_mean(row.drain for row in rows),
        served=_mean(row.served for row in rows),
        prefill=_mean(row.prefill or 0.0 for row in split) if split else None,
        decode=_mean(row.decode or 0.0 for row in split) if split else None,
    )


def _mean(values: Iterable[Seconds]) -> Seconds:
    listed = [*values]
    return sum(listed) / len(listed)


def _charged(served: Sequence[RequestRow], rows: Rows) -> tuple[dict[Group, _Cost], _Cost]:
    """Costs by group of evictions, and those of other loads."""
    loads = {load.id: load for load in rows.loads}
    index = LoadIndex(rows.loads)
    groups: dict[Group, _Cost] = {}
    others = _Cost()
    for number, row in enumerate(served):
        for charge in charges(row, index):
            load = loads.get(charge.load)
            stay = None if load is None or load.after_stay is None else rows.made_necessary_by.get(load.after_stay)
            if stay is None:
                others.add(charge, request=number)
                continue
            cost = groups.setdefault(group_of(stay), _Cost())
            cost.stays[stay.id] = None
            cost.add(charge, request=number)
    return groups, others


def group_of(stay: ResidencyRow) -> Group:
    """Evictions of the same adapter from the same pod by the same other are one line."""
    return stay.adapter, stay.pod, stay.evicted_by, stay.why or LeftWhy.UNKNOWN


def _entry(group: Group, cost: _Cost, *, slow: Mapping[int, None]) -> EvictionCost:
    adapter, pod, by, why = group
    hurt = {**dict.fromkeys(cost.waited), **dict.fromkeys(cost.drained)}
    return EvictionCost(
        adapter=adapter,
        pod=pod,
        by=by,
        why=why,
        evictions=len(cost.stays),
        reloads=len(cost.loads),
        requests=len(hurt),
        waited=sum(cost.waited.values()),
        drained=sum(cost.drained.values()),
        beyond=sum(cost.of(number) for number in hurt if number in slow),
    )


def _without(served: Sequence[RequestRow], ranked: Sequence[_Cost]) -> Iterable[Without]:
    if not served:
        return
    times = [latency(row) for row in served]
    taken = 0
    for most in WITHOUT:
        for cost in ranked[taken:most]:
            for by_request in (cost.waited, cost.drained):
                for number, seconds in by_request.items():
                    times[number] -= seconds
        taken = max(taken, min(most, len(ranked)))
        yield _counterfactual(most, times)
        if most >= len(ranked):
            break
    yield _counterfactual(None, [latency(row) - row.load_wait - row.drain for row in served])


def _counterfactual(evictions: int | None, times: Sequence[Seconds]) -> Without:
    p50, p95 = quantile(times, 0.5), quantile(times, 0.95)
    assert p50 is not None and p95 is not None
    return Without(evictions=evictions, p50=p50, p95=p95)
