"""Many runs at once: every policy with every seed, in parallel processes.

In: a scenario, policies, seeds. Out: their reports, in that order. Not here: what a run is (see `sim.run`), layout.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import msgspec

from lorapick.sim.report import RunReport
from lorapick.sim.run import Options, run
from lorapick.sim.scenario import Scenario

Progress = Callable[[float], None]
"""Told the share of all work that is done."""
_POLL = 0.2
"""Seconds between two looks at the workers' progress."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    policy: str
    seed: int


def jobs_for(policies: Sequence[str], seeds: Sequence[int]) -> tuple[Job, ...]:
    """Every policy with every seed."""
    return tuple(Job(policy=policy, seed=seed) for policy in policies for seed in seeds)


def play_all(
    scenario: Scenario, jobs: Sequence[Job], *, workers: int | None = None, progress: Progress | None = None
) -> tuple[RunReport, ...]:
    """Run all jobs; one alone runs in this process, more in up to `workers` (default: one per core)."""
    most = workers if workers is not None else cores()
    count = max(1, min(most, len(jobs)))
    if count == 1:
        return tuple(_one(scenario, job, number, len(jobs), progress) for number, job in enumerate(jobs))
    return _in_processes(scenario, jobs, count, progress)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _one(scenario: Scenario, job: Job, number: int, jobs: int, progress: Progress | None) -> RunReport:
    def told(share: float) -> None:
        if progress is not None:
            progress((number + share) / jobs)

    return run(scenario, policy=job.policy, seed=job.seed, options=Options(progress=told))


# -- in other processes

_shares: Any = None
"""In a worker: the shares of all jobs, in memory that all share."""


def _begin(shares: Any) -> None:
    global _shares
    _shares = shares


def _work(scenario: Scenario, job: Job, number: int) -> RunReport:
    def told(share: float) -> None:
        _shares[number] = share

    return run(scenario, policy=job.policy, seed=job.seed, options=Options(progress=told))


def _in_processes(
    scenario: Scenario, jobs: Sequence[Job], workers: int, progress: Progress | None
) -> tuple[RunReport, ...]:
    # Never forked: the command line may have threads (a progress bar), and a fork copies their locks as they are.
    context = multiprocessing.get_context("spawn")
    shares = context.Array("d", len(jobs), lock=False)
    with _pool(workers, context, shares) as pool:
        futures = [pool.submit(_work, scenario, job, number) for number, job in enumerate(jobs)]
        _follow(futures, shares, progress)
        return tuple(future.result() for future in futures)


@contextmanager
def _pool(workers: int, context: Any, shares: Any) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(shares,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _follow(futures: Sequence[Future[RunReport]], shares: Any, progress: Progress | None) -> None:
    open_ones = set(futures)
    while open_ones:
        done, open_ones = wait(open_ones, timeout=_POLL)
        if progress is not None:
            progress(sum(shares) / len(shares))
        if any(future.exception() is not None for future in done):
            return
