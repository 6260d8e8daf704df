"""What a fleet settles at: hit ratio, swap rate, residency, P95, from rates and slots, in milliseconds of computing.

In: a fleet, demand, times. Out: a `Prediction`. Pure. Not here: what is good enough (see `plan.gate`), and anything
that changes over time: for that there is the simulator.

Holds where requests come as a Poisson stream of fixed rates per adapter, and pods keep up. Against the simulator it is
within two points of hit ratio there (`python -m bench.prediction`), but for what `Prediction.note` names.
"""

from collections.abc import Sequence

import msgspec

from lorapick.model.units import Ratio
from lorapick.plan.prediction.accuracy import known_error
from lorapick.plan.prediction.flows import flows
from lorapick.plan.prediction.latency import mean_latency, p95
from lorapick.plan.prediction.routing import Cache, Traffic, caches
from lorapick.plan.prediction.values import Costs, Demand, FleetShape, Prediction

MOST_BUSY = 0.9
"""Share of a pod's time for loads beyond which its queue is not reckoned any longer."""
_ROUNDS = 4
"""Misses make requests stay longer, and longer stays fill pods, which sends more elsewhere; at most so often."""
_CLOSE = 0.005
"""Relative change of the mean latency that is none."""


def predict(fleet: FleetShape, demand: Sequence[Demand], *, costs: Costs | None = None) -> Prediction:
    """Predict.

    Raises:
        ValueError: there is no pod, an unknown policy or way to evict, a negative rate, or times that cannot be.
    """
    costs = costs or Costs()
    _check(fleet, demand, costs=costs)
    active = [each for each in demand if each.rate > 0]
    traffic = Traffic(latency=mean_latency(0.0, 0.0, costs=costs))
    for _ in range(_ROUNDS):
        found = _settled(fleet, active, costs=costs, traffic=traffic)
        busy, before = min(found.busy, MOST_BUSY), traffic.latency
        traffic = Traffic(latency=mean_latency(1.0 - _or_all(found.hit_ratio), busy, costs=costs), busy=busy)
        if abs(traffic.latency - before) <= _CLOSE * before:
            break
    return msgspec.structs.replace(found, p95=p95(1.0 - _or_all(found.hit_ratio), found.busy, costs=costs))


def _settled(fleet: FleetShape, active: Sequence[Demand], *, costs: Costs, traffic: Traffic) -> Prediction:
    """The prediction when requests and pods are so busy; without P95."""
    asked = sum(each.rate for each in active)
    found = flows(caches(fleet, active, traffic=traffic), swap=costs.swap) if active else ()
    loads = sum(flow.cache.alike * flow.loads for flow in found)
    missed = min(sum(flow.cache.alike * flow.missed for flow in found) / asked, 1.0) if asked else None
    swap_rate = loads / len(fleet.pods)
    busy = swap_rate * costs.swap
    error = known_error(fleet)
    return Prediction(
        active=len(active),
        slots=fleet.slots,
        requests=asked,
        hit_ratio=None if missed is None else 1.0 - missed,
        load_ratio=loads / asked if asked else None,
        swap_rate=swap_rate,
        worst_swap_rate=max((flow.loads / flow.cache.pods for flow in found), default=0.0),
        residency=sum(flow.cache.alike * _in_use(flow.cache) for flow in found) / loads if loads > 0 else None,
        busy=busy,
        p95=None,
        error_points=error.points,
        note=error.note,
    )


def _or_all(hits: Ratio | None) -> Ratio:
    """Where nobody asks, nobody waits."""
    return 1.0 if hits is None else hits


def _in_use(cache: Cache) -> float:
    return cache.pinned + min(max(cache.slots, 0), int((cache.rates > 0).sum()))


def _check(fleet: FleetShape, demand: Sequence[Demand], *, costs: Costs) -> None:
    if not fleet.pods:
        raise ValueError("the fleet has no pods; nothing can be predicted without one")
    for each in demand:
        if not 0 <= each.rate < float("inf"):
            raise ValueError(f"{each.adapter} has a rate of {each.rate:g}/s; a rate is 0 or more")
    if not 0 <= costs.swap < float("inf"):
        raise ValueError(f"a swap takes {costs.swap:g} s; give 0 or more")
    if not 0 < costs.latency <= costs.latency_p95 < float("inf"):
        raise ValueError(
            f"median latency is {costs.latency:g} s and P95 {costs.latency_p95:g} s; the median is above 0 and the "
            "P95 not below it"
        )
