"""Who watches a simulated fleet.

In: everything that happens, in order. Out: whatever the observer makes of it (see `sim.tally`).
"""

from collections.abc import Sequence
from typing import Protocol

from lorapick.model.effects import Effect
from lorapick.model.events import Event
from lorapick.model.requests import Outcome
from lorapick.model.units import PodName, RequestId, Seconds
from lorapick.pod.values import PodEvent
from lorapick.sim.arrivals import Arrival


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

    def restarted(self, pod: PodName, now: Seconds) -> None:
        """A pod's process died."""
        ...

    def ended(self, request_id: RequestId, outcome: Outcome, *, now: Seconds) -> None:
        """A request left."""
        ...
