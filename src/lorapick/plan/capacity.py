"""How much traffic a fleet takes under a policy: the highest rate that keeps P95 within a limit.

In: a scenario, a policy, a seed, a limit. Out: that rate, and the rates that were tried. Not here: one try (see
`plan.fleet_size.trial`), how many pods a rate needs (see `plan.fleet_size`).

Rates are searched as factors of the scenario's own: doubled or halved until one keeps the limit and the next does not,
then the gap is halved until it is 2 % wide. Requests that are refused do not make a rate bearable: at most 1 % may be.
"""

from collections.abc import Callable, Sequence

import msgspec

from lorapick.model.units import Seconds
from lorapick.plan.fleet_size.trial import MOST_LOST, Limits, tried
from lorapick.sim.scenario import ExpectedCapacity, Scenario
from lorapick.sim.workload.changes import Scale
from lorapick.sim.workload.processes import Burst

BASELINE = "round-robin"
"""Policy that gains are reckoned from."""
UNROUTED = "least-loaded"
"""Policy of the fleet that has nothing to swap: there it is all the same who holds what."""
WIDTH = 1.02
"""Ratio of the lowest rate that is too high to the highest that is not, at the end."""
BOUNDS = (1 / 64, 64.0)
"""Factors beyond which nobody looks."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One rate."""

    factor: float
    """Of the scenario's own rate."""
    rate: float
    """Arrivals per second."""
    p95: Seconds | None
    lost: float
    """Share of arrivals that were not served, apart from those in flight."""
    kept: bool
    """Whether it kept the limit."""


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one policy and one seed."""

    policy: str
    seed: int
    limit: Seconds
    rate: float | None
    """Highest rate found that keeps the limit; None: even the lowest did not."""
    tried: tuple[Tried, ...]
    """In the order of the search."""


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of the article for capacity, and ours."""

    expected: ExpectedCapacity
    policy: str
    ours: tuple[float | None, ...]
    """One for each seed; None: it cannot be said from what was searched."""


def beside(
    expect: Sequence[ExpectedCapacity], found: Sequence[Capacity], *, without_swaps: Sequence[Capacity]
) -> tuple[Beside, ...]:
    """The article's figures beside ours, for the policies that were searched."""
    rates = {(each.policy, each.seed): each.rate for each in found}
    best = {each.seed: each.rate for each in without_swaps}
    policies, seeds = dict.fromkeys(each.policy for each in found), dict.fromkeys(each.seed for each in found)

    def ours(each: ExpectedCapacity, policy: str, *, seed: int) -> float | None:
        own = rates[policy, seed]
        to = rates.get((BASELINE, seed)) if each.capacity == "gain" else best.get(seed)
        if own is None or not to:
            return None
        return own / to - 1 if each.capacity == "gain" else own / to

    return tuple(
        Beside(expected=each, policy=policy, ours=tuple(ours(each, policy, seed=seed) for seed in seeds))
        for each in expect
        for policy in policies
        if each.policy in (None, policy)
    )


def capacity(
    scenario: Scenario, *, policy: str, seed: int, limit: Seconds, progress: Callable[[float], None] | None = None
) -> Capacity:
    """Search."""
    rates: list[Tried] = []

    def keeps(factor: float) -> bool:
        rates.append(_try(scenario, factor, policy=policy, seed=seed, limit=limit))
        if progress is not None:
            progress(min(0.99, len(rates) / 10))
        return rates[-1].kept

    low, high = _bracket(keeps)
    while low is not None and high is not None and high / low > WIDTH:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if keeps(middle) else (low, middle)
    rate = next((each.rate for each in rates if each.factor == low), None)
    return Capacity(policy=policy, seed=seed, limit=limit, rate=rate, tried=tuple(rates))


def _bracket(keeps: Callable[[float], bool]) -> tuple[float | None, float | None]:
    """A factor that keeps the limit and twice as much that does not; None: there is none within the bounds."""
    least, most = BOUNDS
    factor = 1.0
    if keeps(factor):
        while factor < most:
            if not keeps(2 * factor):
                return factor, 2 * factor
            factor *= 2
        return factor, None
    while factor > least:
        factor /= 2
        if keeps(factor):
            return factor, 2 * factor
    return None, factor


def _try(scenario: Scenario, factor: float, *, policy: str, seed: int, limit: Seconds) -> Tried:
    outcome = tried(scaled(scenario, factor), policy=policy, seed=seed)
    return Tried(
        factor=factor,
        rate=outcome.rate,
        p95=outcome.p95,
        lost=outcome.lost,
        kept=outcome.keeps(Limits(p95=limit, lost=MOST_LOST)),
    )


def scaled(scenario: Scenario, factor: float) -> Scenario:
    """The scenario with all rates multiplied, traces played faster; bursts stay as they are."""
    flows = tuple(
        flow
        if isinstance(flow.process, Burst)
        else msgspec.structs.replace(flow, changes=(*flow.changes, Scale(at=0.0, factor=factor)))
        for flow in scenario.workload.flows
    )
    traces = tuple(
        msgspec.structs.replace(trace, replay=msgspec.structs.replace(trace.replay, speed=trace.replay.speed * factor))
        for trace in scenario.workload.traces
    )
    workload = msgspec.structs.replace(scenario.workload, flows=flows, traces=traces)
    return msgspec.structs.replace(scenario, workload=workload)
