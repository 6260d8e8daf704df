"""Many runs: every policy with every seed, all points of a family, the capacity of each policy.

In: scenarios, policies, seeds. Out: reports and capacities, in that order. Not here: what a run is (see `sim.run`).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import msgspec

from lorapick.model.units import Seconds
from lorapick.plan.capacity import Capacity, capacity
from lorapick.plan.spreading import Progress, spread
from lorapick.sim.report import RunReport
from lorapick.sim.run import Options, run
from lorapick.sim.scenario import Scenario


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    scenario: Scenario
    policy: str
    seed: int


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """One search for a capacity."""

    job: Job
    limit: Seconds


def jobs_for(scenario: Scenario, *, policies: Sequence[str], seeds: Sequence[int]) -> tuple[Job, ...]:
    """Every policy with every seed."""
    return tuple(Job(scenario=scenario, policy=policy, seed=seed) for policy in policies for seed in seeds)


def play_all(
    jobs: Sequence[Job], *, workers: int | None = None, progress: Progress | None = None
) -> tuple[RunReport, ...]:
    """Run all."""
    return spread(_play, jobs, workers=workers, progress=progress)


def _play(job: Job, progress: Progress) -> RunReport:
    return run(job.scenario, policy=job.policy, seed=job.seed, options=Options(progress=progress))


def capacities(
    jobs: Sequence[Job], limit: Seconds, *, workers: int | None = None, progress: Progress | None = None
) -> tuple[Capacity, ...]:
    """Search all."""
    return spread(_search, [Search(job=job, limit=limit) for job in jobs], workers=workers, progress=progress)


def _search(search: Search, progress: Progress) -> Capacity:
    job = search.job
    return capacity(job.scenario, policy=job.policy, seed=job.seed, limit=search.limit, progress=progress)


def points(grid: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """All combinations of a family's values, the last key changing fastest."""
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))
