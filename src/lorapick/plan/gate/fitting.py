"""Times of requests and loads with which the prediction of today's fleet is what it shows.

In: today's plan, its P95 with the swaps it has, what else was told. Out: `Costs` for the prediction, and what had to
give. Pure. Not here: P95 itself (see `prediction.latency`).

What is measured on a fleet contains its swaps; taken for the latency of requests that meet none, swaps count twice. So
latency without swaps is searched, by halving, at which today's P95 comes out. If even half of that P95 is too much, too
many requests wait too long for their loads: loads must be shorter than assumed. A length that was given stays.
"""

from collections.abc import Callable

import msgspec

from lorapick.model.units import Seconds
from lorapick.plan.gate.values import Plan
from lorapick.plan.prediction.latency import p95
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Costs, Prediction

LEAST_BASE = 0.5
"""Of today's P95: what requests without swaps take at least. Most of them meet none."""
LEAST_SWAP: Seconds = 0.2
"""A load's length is not assumed to be below that: the article's swaps block a pod for 200 to 500 ms."""
SHORTEST: Seconds = 1e-3
"""Of a load, where P95 was measured and the length is not known."""
_ROUNDS = 3
"""Hits depend on latency, a little."""
_HALVINGS = 40


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Times as they are asked for; None: not said."""

    p95: Seconds | None = None
    """Today's, with today's swaps; without a today, of requests that meet none."""
    median: Seconds | None = None
    """Of requests that meet no swap."""
    swap: Seconds | None = None


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Times, and where they come from."""

    costs: Costs
    """Of requests without swaps, and of loads."""
    told: Told = Told()
    today: Seconds | None = None
    """P95 of today that they were fitted to; None: to nothing."""
    reached: Seconds | None = None
    """What the prediction of today has with them."""

    @property
    def contradiction(self) -> str | None:
        """Why today's P95 is not what was assumed; None: it is, or nobody asked."""
        if self.today is None or (self.reached is not None and self.reached <= 1.01 * self.today):
            return None
        told = "has no bound" if self.reached is None else f"is {self.reached:.2g} s"
        return (
            f"today's P95 {told} and not {self.today:g} s as assumed: that many requests wait for loads of "
            f"{self.costs.swap:g} s or more; give what is measured (--latency-p95)"
        )


def times_of(told: Told, today: Plan | None) -> Times:
    """The times to predict with.

    Raises:
        ValueError: P95 of today and the length of a load are given, and contradict each other; or as `predict`.
    """
    costs = costs_of(told)
    if today is None or not any(each.rate > 0 for each in today.demand):
        return Times(costs=costs, told=told)
    wanted = costs.latency_p95
    for _ in range(_ROUNDS):
        found = predict(today.fleet, today.demand, costs=costs)
        costs = _fitted(found, told, wanted=wanted)
    reached = predict(today.fleet, today.demand, costs=costs).p95
    times = Times(costs=costs, told=told, today=wanted, reached=reached)
    if told.p95 is not None and times.contradiction is not None:
        least = "is without bound" if reached is None else f"is at least {reached:.2g} s"
        remedy = "a lower --latency" if told.swap is None else "no --swap, and it is taken from P95"
        raise ValueError(
            f"--latency-p95 {wanted:g}: so many of today's requests wait for a load of {costs.swap:g} s that P95 "
            f"{least}; give {remedy}, or rates that are today's"
        )
    return times


def costs_of(told: Told) -> Costs:
    """Times as told; a median that is not told is half of P95."""
    usual = Costs()
    tail = usual.latency_p95 if told.p95 is None else told.p95
    return Costs(
        swap=usual.swap if told.swap is None else told.swap,
        latency=usual.latency / usual.latency_p95 * tail if told.median is None else told.median,
        latency_p95=tail,
    )


def _fitted(today: Prediction, told: Told, *, wanted: Seconds) -> Costs:
    """Times at which P95 is `wanted` with as many hits and loads as a prediction has."""
    missed = 0.0 if today.hit_ratio is None else 1.0 - today.hit_ratio
    full = costs_of(told)

    def fits(costs: Costs) -> bool:
        found = p95(missed, today.swap_rate * costs.swap, costs=costs)
        return found is not None and found <= wanted

    def based(share: float) -> Costs:
        tail = share * full.latency_p95
        if told.median is None:
            return msgspec.structs.replace(full, latency=share * full.latency, latency_p95=tail)
        return msgspec.structs.replace(full, latency_p95=max(tail, told.median))

    if fits(based(LEAST_BASE)):
        return based(_most(lambda share: fits(based(share)), low=LEAST_BASE, high=1.0))
    base = based(LEAST_BASE)
    least = full.swap if told.swap is not None else SHORTEST if told.p95 is not None else LEAST_SWAP

    def loaded(swap: Seconds) -> Costs:
        return msgspec.structs.replace(base, swap=swap)

    if not fits(loaded(least)):
        return loaded(least)
    return loaded(_most(lambda swap: fits(loaded(swap)), low=least, high=full.swap))


def _most(fits: Callable[[float], bool], *, low: float, high: float) -> float:
    """The most that fits, where `low` does."""
    if fits(high):
        return high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
