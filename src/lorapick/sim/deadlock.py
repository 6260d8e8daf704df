"""Requests that will never end: nothing is scheduled that could end them, or nobody has them.

In: the requests of a world that are open, and what core and pods know. Out: nothing, or an error that names them.
Not here: when to look (see `sim.world`).
"""

from collections.abc import Mapping

from lorapick.core.state import Flight
from lorapick.model.units import PodName, RequestId, Seconds
from lorapick.sim.arrivals import Arrival
from lorapick.sim.simpod import SimPod

NAMED = 10
"""Most requests that an error names."""


class Deadlock(Exception):  # noqa: N818 - what it is, not that it is one
    """Requests wait and will never end: a bug of ours, with their names."""

    def __init__(
        self, requests: Mapping[RequestId, Arrival], why: str = "wait and nothing is scheduled that could end them"
    ) -> None:
        named = ", ".join(f"{each.id} ({each.adapter or 'base'})" for each in [*requests.values()][:NAMED])
        super().__init__(f"{len(requests)} requests {why}: {named}")


def require_found(
    requests: Mapping[RequestId, Arrival],
    flights: Mapping[RequestId, Flight],
    *,
    pods: Mapping[PodName, SimPod],
    now: Seconds,
) -> None:
    """Each open request waits at the core, or is known to the pod that it was sent to. All pods have lived up to now.

    Raises:
        Deadlock: some are neither.
    """
    lost = {
        request_id: arrival
        for request_id, arrival in requests.items()
        if not _is_found(request_id, flights.get(request_id), pods=pods, now=now)
    }
    if lost:
        raise Deadlock(lost, "are neither held by the picker nor on the pod that they were sent to")


def _is_found(request_id: RequestId, flight: Flight | None, *, pods: Mapping[PodName, SimPod], now: Seconds) -> bool:
    if flight is None:
        return False
    if flight.row < 0:
        return True  # it waits; that it will be woken is an invariant of the core
    sim = pods.get(flight.pod) if flight.pod is not None else None
    return sim is not None and sim.has(request_id, now)
