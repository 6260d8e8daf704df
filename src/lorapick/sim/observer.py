"""Who watches a simulated fleet.

In: everything that happens, in order. Out: whatever the observer makes of it (see `sim.tally`).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from lorapick.model.effects import Effect
from lorapick.model.events import Event
from lorapick.model.requests import Outcome
from lorapick.model.units import PodName, RequestId, Seconds
from lorapick.pod.values import PodEvent
from lorapick.sim.arrivals import Arrival


class Handed(StrEnum):
    """What became of a request that one pod was to prefill for another.

    The first comes once, then one of the last two, unless the request fails or the run ends before.
    """

    BEGUN = "begun"
    """The picker had chosen two pods."""
    MOVED = "moved"
    """The pod that was to decode had died, and a fallback took its place."""
    AT_PREFILL = "at_prefill"
    """It had died, there was no fallback, and the pod that prefilled took its place."""
    FETCHED = "fetched"
    """The KV came to the pod that decodes."""
    ALONE = "alone"
    """The prefill, or the pod with its KV, was lost: the pod that decodes did it all."""


class Observer(Protocol):
    """Told of everything, in order. Must not change the world."""

    def arrived(self, arrival: Arrival) -> None:
        """A request arrived."""
        ...

    def applied(self, event: Event, effects: Sequence[Effect]) -> None:
        """The core took an event and gave these effects; not told of events without any."""
        ...

    def happened(self, pod: PodName, event: PodEvent) -> None:
        """A pod did something."""
        ...

    def prefilling(self, pod: PodName, event: PodEvent) -> None:
        """A pod did something with a request that it prefills for another pod."""
        ...

    def fetching(self, request_id: RequestId, seconds: Seconds) -> None:
        """The KV of a request begins to go to the pod that decodes, which takes so long."""
        ...

    def handed(self, request_id: RequestId, what: Handed) -> None:
        """A request is handed from pod to pod, or is not."""
        ...

    def restarted(self, pod: PodName, now: Seconds) -> None:
        """A pod's process died."""
        ...

    def ended(self, request_id: RequestId, outcome: Outcome, *, now: Seconds) -> None:
        """A request left."""
        ...
