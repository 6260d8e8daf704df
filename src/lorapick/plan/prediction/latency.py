"""P95 of a fleet that swaps, from the P95 of one that does not: an estimate, for a gate and not for a promise.

In: share of requests that wait for a load, share of its time that a pod spends on loads, times. Out: P95.
Not here: where the shares come from (see `predict`).

Assumptions, all of them on the page of `lorapick check` too:

- latency without swaps is log-normal, with the median and P95 that are given; more load does not change it;
- who waits for a load waits `swap / (1 - busy)`: loads queue for their pod as in M/M/1;
- where pods drain, others who come while a load is on (a share `busy`) wait half of that on average, evenly spread;
- waiting and serving are independent.
"""

from math import erf, exp, log, sqrt

from lorapick.model.units import Ratio, Seconds
from lorapick.plan.prediction.values import Costs

_Z95 = 1.6448536269514722
_PARTS = 20
"""Of the wait of those who meet another one's load."""


def p95(missed: Ratio, busy: Ratio, *, costs: Costs) -> Seconds | None:
    """95th percentile of latency; None: loads take all the time there is."""
    if busy >= 1.0:
        return None
    wait = costs.swap / (1.0 - busy)
    sigma = _sigma(costs)
    blocked = (1.0 - missed) * busy if costs.drains else 0.0

    def below(time: Seconds) -> Ratio:
        share = (1.0 - missed - blocked) * _normal(time, median=costs.latency, sigma=sigma)
        share += missed * _normal(time - wait, median=costs.latency, sigma=sigma)
        for part in range(_PARTS):
            late = time - wait * (part + 0.5) / _PARTS
            share += blocked / _PARTS * _normal(late, median=costs.latency, sigma=sigma)
        return share

    low, high = 0.0, costs.latency_p95
    while below(high) < 0.95:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if below(middle) < 0.95 else (low, middle)
    return high


def mean_latency(missed: Ratio, busy: Ratio, *, costs: Costs) -> Seconds:
    """Mean, under the same assumptions; `busy` is below 1."""
    wait = costs.swap / (1.0 - busy)
    blocked = (1.0 - missed) * busy if costs.drains else 0.0
    return costs.latency * exp(0.5 * _sigma(costs) ** 2) + wait * (missed + 0.5 * blocked)


def _sigma(costs: Costs) -> float:
    return log(costs.latency_p95 / costs.latency) / _Z95


def _normal(time: Seconds, *, median: Seconds, sigma: float) -> Ratio:
    """Share of a log-normal below `time`."""
    if time <= 0:
        return 0.0
    if sigma == 0:
        return 1.0 if time >= median else 0.0
    return 0.5 * (1.0 + erf(log(time / median) / (sigma * sqrt(2.0))))
