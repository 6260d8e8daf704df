"""Playing cells: every policy with every seed, reduced to the figures that are judged.

In: cells, policies, seeds. Out: `Figures` per run. Not here: means and verdicts (see `bench.tournament.judge`).
"""

from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from bench.tournament.cells import Cell, scenario
from lorapick.model.units import Seconds
from lorapick.plan.spreading import Progress, spread
from lorapick.sim.report import PartRow, RunReport
from lorapick.sim.run import run

MOST_PARTS = 64
"""Adapters beyond which the less popular ones are not looked at one by one."""
FEWEST = 20
"""Requests of an adapter below which its P99 says nothing."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    cell: Cell
    rate: float | None
    limit: Seconds | None
    """Of latency, for goodput; None: the scenario's own."""
    policy: str
    seed: int


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What one run is judged by. None: nothing to divide by."""

    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    ttft_p50_ms: float | None
    ttft_p95_ms: float | None
    ttft_p99_ms: float | None
    goodput: float | None
    """Served per second within the limit that the fleet's rate was searched with, or the scenario's own."""
    loads: int
    over_bound: float | None
    """Loads / the fewest that any routing and replacement needs for the order in which requests began service."""
    unfairness: float | None
    """Worst adapter's P99 of latency / the median adapter's."""
    lost: float
    """Share of arrivals that were refused, or failed. Those in flight at the end are neither."""


def play(tasks: Sequence[Task], *, workers: int | None = None, progress: Progress | None = None) -> tuple[Figures, ...]:
    """Figures in the order of the tasks."""
    return spread(_play, tasks, workers=workers, progress=progress)


def _play(task: Task, progress: Progress) -> Figures:
    del progress
    played = scenario(task.cell, rate=task.rate)
    parts = {name: (name,) for name in played.names()[:MOST_PARTS]}
    limit = played.latency_limit if task.limit is None else task.limit
    looked_at = msgspec.structs.replace(played, parts=parts, latency_limit=limit)
    return figures(run(looked_at, policy=task.policy, seed=task.seed))


def figures(report: RunReport) -> Figures:
    """Of one report."""
    whole = report.whole
    bound = None if report.bounds is None else report.bounds.service_order
    return Figures(
        p50_ms=_ms(whole.latency.p50),
        p95_ms=_ms(whole.latency.p95),
        p99_ms=_ms(whole.latency.p99),
        ttft_p50_ms=_ms(whole.ttft.p50),
        ttft_p95_ms=_ms(whole.ttft.p95),
        ttft_p99_ms=_ms(whole.ttft.p99),
        goodput=None if whole.good is None else whole.good / whole.length,
        loads=whole.loads,
        over_bound=whole.loads / bound if bound else None,
        unfairness=unfairness(report.parts),
        lost=(whole.failed + whole.rejected + whole.abandoned) / whole.arrivals if whole.arrivals else 0.0,
    )


def unfairness(parts: Sequence[PartRow]) -> float | None:
    """Worst adapter's P99 / the median adapter's, of those with enough requests; None: fewer than two have."""
    tails = sorted(_tails(parts))
    return tails[-1] / median(tails) if len(tails) > 1 else None


def _tails(parts: Sequence[PartRow]) -> Iterator[float]:
    for part in parts:
        if part.latency.count >= FEWEST and part.latency.p99 is not None:
            yield part.latency.p99


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds
