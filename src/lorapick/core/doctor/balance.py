"""Pods that are not like the others: slower, or asked for more.

In: a picture. Out: findings. Not here: pods that take no requests (see `core.doctor.harm`).

Pods are compared with the median of the others that take requests; with fewer than three there is no such thing.
"""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from lorapick.core.doctor.findings import Finding, Remedy, Urgency
from lorapick.core.doctor.picture import Picture, PodPicture
from lorapick.core.doctor.saying import number, seconds
from lorapick.model.units import PodName, Seconds

LEAST_PODS = 3
TIMES = 2.5
"""As slow, or as much asked for, as the others, from which on that is worth telling."""
LEAST_IN_FLIGHT = 4
LEAST_RATE = 0.5
"""Requests per second below which a pod's figures are noise."""


class _Compared(NamedTuple):
    """A pod's figure, and the others' median."""

    pod: PodName
    value: float
    others: float


def slow(picture: Picture) -> Iterator[Finding]:
    """By Little's law: requests there / requests served per second; and by loads."""
    times = {pod.name: time for pod in picture.pods if (time := _time_there(pod)) is not None}
    for found in _beyond(times):
        yield Finding(
            check="slow_pod",
            urgency=Urgency.WARN,
            what=f"{found.pod} is slower than the others: a request is there for {seconds(found.value)}, elsewhere for "
            f"{seconds(found.others)}",
            arithmetic=(_little(picture, found.pod), f"{number(found.value / found.others)} times the others' median"),
            remedies=(
                Remedy(action="look at its GPU (clocks, errors, neighbours), its storage and its log", price="none"),
                Remedy(action="drain it until it is well", price="its slots and seats"),
            ),
            weight=found.value / found.others,
            pods=(found.pod,),
        )
    swaps = {pod.pod: pod.swaps_per_second for pod in picture.pod_signals}
    for found in _beyond(swaps, least=picture.alert_bounds.swap_rate):
        yield Finding(
            check="swapping_pod",
            urgency=Urgency.WARN,
            what=f"{found.pod} swaps adapters {number(found.value)} times a second, the others {number(found.others)}",
            arithmetic=(f"{number(found.value)}/s against a median of {number(found.others)}/s",),
            remedies=(Remedy(action="see who is where: `lorapick residency`; move or pin an adapter", price="slots"),),
            weight=found.value / max(found.others, 0.1),
            pods=(found.pod,),
        )


def hot(picture: Picture) -> Iterator[Finding]:
    """A pod that gets far more requests than the others, and has a queue for it."""
    rates = {pod.name: pod.served_per_second for pod in picture.pods if pod.ready and pod.served_per_second is not None}
    for found in _beyond(rates, least=LEAST_RATE):
        pod = picture.pod(found.pod)
        if pod is None or not pod.queue_depth:
            continue
        yield Finding(
            check="hot_pod",
            urgency=Urgency.WARN,
            what=f"{found.pod} gets {number(found.value)} requests a second and has a queue; the others get "
            f"{number(found.others)}",
            arithmetic=(
                f"{number(found.value)}/s against a median of {number(found.others)}/s",
                f"{number(pod.queue_depth)} requests wait there",
            ),
            remedies=(
                Remedy(action="another replica of its hottest adapter (`placement.replicas: auto`)", price="a slot"),
            ),
            weight=found.value / max(found.others, 0.1),
            pods=(found.pod,),
        )


def _beyond(values: dict[PodName, float], *, least: float = 0.0) -> Iterator[_Compared]:
    """Pods whose figure is above `least` and far above the median of the others."""
    if len(values) < LEAST_PODS:
        return
    for pod, value in values.items():
        others = median([other for name, other in values.items() if name != pod])
        if value > least and value > TIMES * others and (others > 0 or least > 0):
            yield _Compared(pod, value, others)


def _time_there(pod: PodPicture) -> Seconds | None:
    """Mean time of a request at a pod; None: too few requests to say."""
    if not pod.ready or pod.in_flight is None or pod.served_per_second is None or pod.served_per_second < LEAST_RATE:
        return None
    return max(pod.in_flight, LEAST_IN_FLIGHT) / pod.served_per_second


def _little(picture: Picture, name: PodName) -> str:
    pod = picture.pod(name)
    if pod is None or pod.in_flight is None or pod.served_per_second is None:
        return "unknown"
    return f"{pod.in_flight} requests there / {number(pod.served_per_second)} served per second"
