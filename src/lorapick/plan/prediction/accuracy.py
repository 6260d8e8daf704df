"""How far the prediction has been off the simulator, so that nobody trusts it blindly.

In: a fleet. Out: points of hit ratio, and why. Not here: the comparison itself (`python -m bench.prediction`).
"""

from collections.abc import Iterator
from typing import NamedTuple

from lorapick.plan.prediction.eviction import EVICTIONS, Eviction
from lorapick.plan.prediction.values import FleetShape


class Error(NamedTuple):
    """What is known of the error."""

    points: float
    """Of hit ratio, in percentage points: what simulated fleets of this kind were off, rounded up."""
    note: str | None
    """Why it is more than usual; None: it is not."""


USUAL = Error(2.0, None)
FEW_SLOTS = 2
"""Slots per pod with which `cost` does better than said."""
FEW_PODS = 2
"""Pods with which the bound of `chwbl` is not what many pods make of it."""


def known_error(fleet: FleetShape) -> Error:
    """The largest of those that hold for a fleet."""
    return max((USUAL, *_reasons(fleet)), key=lambda error: error.points)


def _reasons(fleet: FleetShape) -> Iterator[Error]:
    ways = [pod.eviction for pod in fleet.pods]
    if fleet.policy == "cost" and min(pod.limits.max_loras for pod in fleet.pods) <= FEW_SLOTS:
        yield Error(
            4.0, "with one or two slots per pod, cost hits up to four points more: it chooses which adapter leaves"
        )
    if fleet.policy == "chwbl" and len(fleet.pods) <= FEW_PODS:
        yield Error(5.0, "with one or two pods, chwbl hits up to five points less: a full pod is half of the fleet")
    if fleet.policy == "gie-lora":
        yield Error(3.0, "gie-lora leaves some pods unused, so that adapters may stay half as long as said, or less")
    if any(EVICTIONS.get(way) is Eviction.COUNT for way in ways):
        yield Error(2.5, "pods that evict by counts know only their own, and may keep others than the most popular")
    if "cost" in ways:
        yield Error(3.5, "pods that evict by cost hit up to three points less: they know rates from a few minutes")
    if any(EVICTIONS.get(way) is Eviction.TURN for way in ways):
        yield Error(3.0, "eviction in turn (fifo) was not held against simulated fleets")
