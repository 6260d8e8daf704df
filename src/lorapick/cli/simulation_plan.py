"""From the flags of `lorapick simulate` to what is to be played.

In: flags by name. Out: a `SimulationPlan`, or an error that says what would be right. Not here: playing it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lorapick.core.picking.policies import POLICIES
from lorapick.model.units import Seconds
from lorapick.plan.capacity import UNROUTED
from lorapick.plan.scenario_files import UnknownScenario, load_scenario
from lorapick.plan.simulations import Job, jobs_for, points
from lorapick.sim.scenario import Scenario, shortened
from lorapick.wire.config import ConfigError
from lorapick.wire.units import UnitError, parse_duration

MOST_SEEDS = 1000
COMPARED_SEEDS = 5
"""Seeds of a comparison unless somebody asks for another number."""


class SimulationError(ValueError):
    """Flags that cannot be obeyed; the text says why and what would be right."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One point of a family."""

    values: dict[str, str]
    """What its keys are."""
    jobs: tuple[Job, ...] = ()
    why_not: str = ""
    """Why it cannot be; empty when it can."""


class SimulationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What `lorapick simulate` will do."""

    scenario: Scenario
    jobs: tuple[Job, ...]
    family: tuple[Point, ...] = ()
    """With --grid or --suite: every point."""
    limit: Seconds | None = None
    """With --capacity: the latency limit."""
    without_swaps: tuple[Job, ...] = ()
    """With --capacity: the same fleet with nothing to swap, if the scenario says how."""
    workers: int | None = None
    series_every: Seconds | None = None
    """With --series: time between two looks at the metrics."""


def plan_of(flags: Mapping[str, Any]) -> SimulationPlan:
    """Read the scenario and put it together with the flags.

    Raises:
        SimulationError: a flag's value cannot be.
        ConfigError: the scenario has problems.
    """
    _check(flags)
    overrides = _overrides(flags["put"] or ())
    scenario = _scenario(flags, overrides)
    limit = scenario.latency_limit if flags["capacity"] else None
    if flags["capacity"] and limit is None:
        raise SimulationError(f"--capacity: {scenario.name} has no latency_limit; add one: --set latency_limit=1s")
    grid = _grid(scenario, flags)
    family = [_point(flags, overrides, values=values) for values in points(grid)] if grid else []
    jobs = _jobs(scenario, flags)
    return SimulationPlan(
        scenario=scenario,
        jobs=jobs,
        series_every=_series_every(flags, jobs),
        family=tuple(family),
        limit=limit,
        without_swaps=_without_swaps(scenario, flags, overrides) if flags["capacity"] else (),
        workers=flags["workers"],
    )


def _series_every(flags: Mapping[str, Any], jobs: Sequence[Job]) -> Seconds | None:
    if flags["series"] is None:
        return None
    if len(jobs) > 1 or flags["grid"] or flags["suite"] is not None or flags["capacity"]:
        raise SimulationError("--series is of one run; name one --policy, one seed, and no --grid, --suite, --capacity")
    try:
        every = parse_duration(flags["series_every"])
    except UnitError as error:
        raise SimulationError(f"--series-every is {flags['series_every']!r}: {error}") from None
    if not 1.0 <= every <= 3600.0:
        raise SimulationError(f"--series-every is {flags['series_every']}; it must be between 1s and 1h")
    return every


def _grid(scenario: Scenario, flags: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The grid to be played; empty when none was asked for."""
    if flags["grid"] and not scenario.grid:
        raise SimulationError(f"--grid: {scenario.name} is no family; it has no grid")
    suite = flags["suite"]
    if suite is None:
        return scenario.grid if flags["grid"] else {}
    if suite not in scenario.suites:
        known = f"they are {', '.join(scenario.suites)}" if scenario.suites else "it has none"
        raise SimulationError(f"--suite: {scenario.name} has no suite {suite!r}; {known}")
    return scenario.suites[suite]


def _without_swaps(scenario: Scenario, flags: Mapping[str, Any], overrides: Mapping[str, str]) -> tuple[Job, ...]:
    if not scenario.without_swaps:
        return ()
    best = _scenario(flags, {**overrides, **scenario.without_swaps})
    return _jobs(best, {**flags, "policy": [UNROUTED]})


def _point(flags: Mapping[str, Any], overrides: Mapping[str, str], *, values: dict[str, str]) -> Point:
    try:
        there = _scenario(flags, {**overrides, **values})
    except ConfigError as error:
        # A fleet that cannot be is an answer too: a thousand slots fit no GPU.
        return Point(values=values, why_not=error.problems[0].message)
    return Point(values=values, jobs=_jobs(there, flags))


def _check(flags: Mapping[str, Any]) -> None:
    for policy in flags["policy"] or ():
        if policy not in POLICIES:
            raise SimulationError(f"--policy is {policy!r}; it must be one of {', '.join(POLICIES)}")
    for name, most in (("seeds", MOST_SEEDS), ("workers", 256)):
        if flags[name] is not None and not 1 <= flags[name] <= most:
            raise SimulationError(f"--{name} is {flags[name]}; it must be between 1 and {most}")
    if flags["grid"] and flags["suite"] is not None:
        raise SimulationError("--grid and --suite cannot go together; a suite is a grid of its own")
    family = flags["grid"] or flags["suite"] is not None
    if family and flags["capacity"]:
        raise SimulationError("--grid and --capacity cannot go together; take one after the other")
    if flags["html"] is not None and (family or flags["capacity"]):
        raise SimulationError("--html shows runs; leave out --grid and --capacity")


def _overrides(put: Sequence[str]) -> dict[str, str]:
    found = {}
    for each in put:
        key, equals, value = each.partition("=")
        if not equals or not key or not value:
            raise SimulationError(f"--set is {each!r}; it must be KEY=VALUE, for example fleet.slots=8")
        found[key] = value
    return found


def _scenario(flags: Mapping[str, Any], overrides: Mapping[str, str]) -> Scenario:
    try:
        scenario = load_scenario(flags["scenario"], overrides=overrides)
    except UnknownScenario as error:
        raise SimulationError(str(error)) from None
    until = flags["until"]
    if until is None:
        return scenario
    try:
        return shortened(scenario, parse_duration(until))
    except UnitError as error:
        raise SimulationError(f"--until is {until!r}: {error}") from None
    except ValueError as error:
        raise SimulationError(f"--until is {until}; it {error}") from None


def _jobs(scenario: Scenario, flags: Mapping[str, Any]) -> tuple[Job, ...]:
    chosen: tuple[str, ...] = tuple(dict.fromkeys(flags["policy"] or ()))
    if not chosen:
        chosen = scenario.policies if flags["compare_all"] else (scenario.settings.picking.policy,)
    count = flags["seeds"] or (COMPARED_SEEDS if flags["compare_all"] else 1)
    first = scenario.run.seed
    return jobs_for(scenario, policies=chosen, seeds=range(first, first + count))
