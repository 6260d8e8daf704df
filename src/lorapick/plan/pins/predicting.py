"""What each case settles at over the whole of the logs, reckoned instead of played.

In: counted logs, a fleet, cases. Out: predictions. Not here: how they are reckoned (see `plan.prediction`).

At the mean rate of each adapter, as if it were the same all the time: days and nights, and bursts, are in the sample.
"""

from collections.abc import Sequence

from lorapick.model.units import Seconds
from lorapick.plan.logs.values import LogSummary
from lorapick.plan.pins.simulating import Case
from lorapick.plan.pins.values import PinFleet
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Costs, Demand, FleetShape, Prediction

_TAIL = Costs().latency_p95 / Costs().latency
"""P95 over median, as the prediction assumes it."""


def length_of(summary: LogSummary) -> Seconds:
    """Of the logs; a second at least."""
    return max(1.0, summary.end - summary.start)


def costs_of(service: Seconds) -> Costs:
    """The prediction's own, for requests that take so long without a swap."""
    return Costs(latency=service, latency_p95=_TAIL * service)


def predicted(
    cases: Sequence[Case], summary: LogSummary, *, fleet: PinFleet, service: Seconds
) -> tuple[Prediction, ...]:
    """One for each case."""
    length = length_of(summary)
    found = []
    for case in cases:
        demand = [
            Demand(adapter=each.adapter, rate=each.requests / length, pin=case.pins.get(each.adapter))
            for each in summary.adapters
        ]
        shape = FleetShape(pods=fleet.pods, policy=case.policy)
        found.append(predict(shape, demand, costs=costs_of(service)))
    return tuple(found)
