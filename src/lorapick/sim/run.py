"""Play a scenario: (scenario, policy, seed) -> report. A pure function.

In: a scenario. Out: a `RunReport`; conservation is checked in every run. Not here: files, processes, layout.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from lorapick.core.picking.policies import POLICIES
from lorapick.model.units import Seconds
from lorapick.pod.values import Memory
from lorapick.sim.bounds.yardstick import Yardstick
from lorapick.sim.build import arrivals_of, names_of, world_of
from lorapick.sim.conservation import check
from lorapick.sim.histogram import Histogram
from lorapick.sim.measures import FIELDS, GpuTime, Measures, distribution
from lorapick.sim.report import Bounds, PartRow, PodRow, RunReport, Series
from lorapick.sim.sampling import Sampler
from lorapick.sim.scenario import Scenario
from lorapick.sim.sides import sides_of
from lorapick.sim.tally import Tally
from lorapick.sim.windows import Promise, Window
from lorapick.sim.world import World

COLLECT_AFTER = 50_000
"""Objects made and not freed between two looks of the garbage collector; Python's own choice is 700."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is watched; changes nothing that happens in it, but for `tells_starts`."""

    check_every: int | None = None
    """Check all invariants after every so many events of the core; None: as `World` does, which is not before the end
    except in tests. Conservation is checked in any case: of slots at each window's edge, of all at the end."""
    progress: Callable[[float], None] | None = None
    """Told the share of simulated time that has passed."""
    prepare: Callable[[World], None] | None = None
    """Told of the world before anything happens in it: to give it a past, say."""
    bounds: bool = True
    """Whether the fewest possible loads are reckoned too."""
    tells_starts: bool = False
    """Whether the picker is told when answers begin: it learns then that loads are over."""


def run(
    scenario: Scenario, *, policy: str | None = None, seed: int | None = None, options: Options | None = None
) -> RunReport:
    """Play a scenario once.

    Raises:
        ValueError: there is no such policy.
        AssertionError: an invariant or a conservation law was broken: a bug of ours.
        Deadlock: requests wait and nothing will ever end them, or nobody has them: a bug of ours.
    """
    options = options or Options()
    policy = policy if policy is not None else scenario.settings.picking.policy
    if policy not in POLICIES:
        raise ValueError(f"policy {policy!r} is unknown; use one of {', '.join(POLICIES)}")
    seed = seed if seed is not None else scenario.run.seed
    plan = scenario.run
    bounded = options.bounds and scenario.fleet.memory is Memory.SLOTS and not scenario.fleet.roles
    yardstick = _yardstick(scenario) if bounded else None
    tally = Tally(
        start=plan.warm_up,
        window=plan.window,
        yardstick=yardstick,
        parts=scenario.parts,
        promise=_promise(scenario),
    )
    world = world_of(scenario, policy=policy, seed=seed, observer=tally, tells_starts=options.tells_starts)
    if options.check_every is not None:
        world.check_every = options.check_every
    if options.prepare is not None:
        options.prepare(world)
    sampler = Sampler(world, tally, start=plan.warm_up, end=plan.length, window=plan.window)
    sampler.progress = options.progress
    with rare_collections():
        world.run(arrivals_of(scenario, seed), until=plan.length)
    check(world, tally)
    return _report(scenario, world, tally=tally, sampler=sampler, policy=policy, seed=seed)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look for cycles of garbage rarely: a run makes none, and looking takes a tenth of its time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _yardstick(scenario: Scenario) -> Yardstick:
    fleet = scenario.fleet
    return Yardstick(fleet.count * fleet.limits.max_loras, start=scenario.run.warm_up)


def _promise(scenario: Scenario) -> Promise:
    """What users were promised; without, the limit by which capacity is found."""
    slo = scenario.settings.slo
    return Promise(ttft=slo.ttft_p95, latency=slo.latency_p95 or scenario.latency_limit)


def _bounds(yardstick: Yardstick | None) -> Bounds | None:
    if yardstick is None:
        return None
    return Bounds(service_order=yardstick.served().loads, arrival_order=yardstick.arrivals().loads)


def _report(scenario: Scenario, world: World, *, tally: Tally, sampler: Sampler, policy: str, seed: int) -> RunReport:
    plan = scenario.run
    measured = Measuring(tally, sampler, pods=len(world.pods))
    pods = _pods(world, tally, sampler=sampler)
    return RunReport(
        scenario=scenario.name,
        policy=policy,
        seed=seed,
        length=plan.length,
        whole=measured.stretch(plan.warm_up, plan.length),
        periods={each.name: measured.stretch(each.start, each.end) for each in scenario.periods},
        pods=pods,
        sides=sides_of(pods),
        parts=_parts(scenario, tally),
        swaps_from=dict(tally.swaps_from),
        load_seconds=dict(tally.swap_seconds),
        failed_loads=tally.failed_loads,
        holds=tally.holds,
        alerts=tally.alerts(plan.warm_up, plan.length),
        residency=distribution(tally.residencies.finished),
        hit_to_evict=distribution(tally.hit_to_evict),
        bounds=_bounds(tally.yardstick),
        series=_series(tally, sampler),
        timeline=sampler.timeline(plan.length),
        adapters=len(names_of(scenario)),
        pins_missing=_pins_missing(world),
        loads_begun_by_picker=world.fleet.state.tally.loads,
        events=world.kernel.handled,
    )


def _pins_missing(world: World) -> Seconds | None:
    placement, now = world.fleet.state.placement, world.kernel.now
    if not (placement.longest_missing or placement.missing_since or placement.pinned.rows):
        return None
    still = [now - since for since in placement.missing_since.values()]
    return max([placement.longest_missing, *still])


class Measuring:
    """Measures of stretches of one run."""

    def __init__(self, tally: Tally, sampler: Sampler, *, pods: int) -> None:
        self._tally = tally
        self._sampler = sampler
        self._pods = pods

    def stretch(self, start: Seconds, end: Seconds) -> Measures:
        """All windows that begin in [start, end)."""
        windows = [each for each in self._tally.windows if start - 1e-9 <= each.start < end - 1e-9]
        gpu, slot_seconds = self._sampler.between(start, end)
        short = self._sampler.shortage.between(start, end)
        return Measures(
            start=start,
            end=end,
            pods=self._pods,
            arrivals=sum(each.arrivals for each in windows),
            served=sum(each.served for each in windows),
            failed=sum(each.failed for each in windows),
            rejected=sum(each.rejected for each in windows),
            abandoned=sum(each.abandoned for each in windows),
            in_flight=self._tally.in_flight(start, end),
            hits=sum(each.hits for each in windows),
            misses=sum(each.misses for each in windows),
            waited=sum(each.waited for each in windows),
            cold=sum(each.cold for each in windows),
            commanded=dict(sorted(sum((each.commanded for each in windows), Counter[str]()).items())),
            touches=sum(each.touches for each in windows),
            held=sum(each.held for each in windows),
            followed=sum(each.followed for each in windows),
            turns=self._sampler.turns(start, end),
            alerts=sum(self._tally.alerts(start, end).values()),
            swaps=sum(each.swaps.total() for each in windows),
            loads=sum(each.loads for each in windows),
            peak_swap_rate=max((most(each) for each in windows), default=0.0) / self._tally.window,
            output_tokens=sum(each.output_tokens for each in windows),
            slot_seconds=slot_seconds,
            good=sum(each.good for each in windows) if any(self._tally.promise) else None,
            handed={str(key): count for key, count in sum((each.handed for each in windows), Counter()).items()},
            prefill_hits=sum(each.prefill_hits for each in windows),
            prefill_misses=sum(each.prefill_misses for each in windows),
            transfer=distribution(Histogram().merge(each.transfer for each in windows)),
            tpot=distribution(Histogram().merge(each.tpot for each in windows)),
            latency=distribution(Histogram().merge(each.latency for each in windows)),
            ttft=distribution(Histogram().merge(each.ttft for each in windows)),
            first_ttft=distribution(Histogram().merge(each.first_ttft for each in windows)),
            held_for=distribution(Histogram().merge(each.held_for for each in windows)),
            unloads=sum(each.unloads for each in windows),
            preemptions=short.preemptions,
            looks=short.looks,
            tight=short.tight,
            gpu=gpu,
        )


def most(window: Window) -> int:
    """Swaps of the pod that had most."""
    return max(window.swaps.values(), default=0)


def _pods(world: World, tally: Tally, *, sampler: Sampler) -> tuple[PodRow, ...]:
    first, last = sampler.samples[0], sampler.samples[-1]
    return tuple(
        PodRow(
            pod=name,
            role=world.pods[name].pod.role,
            dispatches=tally.dispatches[name],
            swaps=sum(window.swaps[name] for window in tally.windows),
            loads=tally.loads[name],
            hits=tally.hits[name],
            misses=tally.misses[name],
            gpu=after.less(before),
        )
        for name, before, after in zip(sampler.pods, first.pods, last.pods, strict=True)
    )


def _parts(scenario: Scenario, tally: Tally) -> tuple[PartRow, ...]:
    return tuple(
        PartRow(
            part=name,
            adapters=len(scenario.parts[name]),
            arrivals=part.arrivals,
            served=part.served,
            cold=part.cold,
            ttft=distribution(part.ttft),
            latency=distribution(part.latency),
        )
        for name, part in tally.parts.items()
    )


def _series(tally: Tally, sampler: Sampler) -> Series:
    windows, length = tally.windows, tally.window
    spent = [
        _fleet(after.pods, before.pods) for before, after in zip(sampler.samples, sampler.samples[1:], strict=False)
    ]
    return Series(
        window=length,
        t=tuple(each.start for each in windows),
        arrivals=tuple(each.arrivals for each in windows),
        p50_ms=tuple(_ms(each.latency.quantile(0.50)) for each in windows),
        p95_ms=tuple(_ms(each.latency.quantile(0.95)) for each in windows),
        p99_ms=tuple(_ms(each.latency.quantile(0.99)) for each in windows),
        hit_ratio=tuple(_share(each.hits, each.hits + each.misses) for each in windows),
        swap_rate=tuple(tuple(each.swaps[pod] / length for each in windows) for pod in sampler.pods),
        gpu={
            name: tuple(parts[index] / total if (total := sum(parts)) else 0.0 for parts in spent)
            for index, name in enumerate(FIELDS)
        },
    )


def _fleet(after: tuple[GpuTime, ...], before: tuple[GpuTime, ...]) -> tuple[float, ...]:
    total = GpuTime()
    for late, early in zip(after, before, strict=True):
        total = total.plus(late.less(early))
    return total.parts()


def _ms(seconds: Seconds | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
