"""Who must not leave a pod's slots, and who would leave next.

In: what is pinned on a pod, and its residency. Out: whether the next load would throw out a pinned adapter.

An engine like vLLM evicts the least recently used idle adapter and takes no advice. Two things keep a pin there: never
more other adapters in use than slots beside the pins, and a request of one token when the pin is the next to go: it
costs the pod one step. Between the two no load may begin. Not here: who is pinned where (see `core.placement.pins`).
"""

from lorapick.core.residency.cells import PodResidency
from lorapick.model.units import AdapterName


class Keeps:
    """What one pod keeps."""

    __slots__ = ("pinned", "reserved")

    def __init__(self) -> None:
        self.pinned: dict[AdapterName, None] = {}
        self.reserved = False
        """Whether it takes requests for its pinned adapters only."""

    def endangered(self, home: PodResidency) -> AdapterName | None:
        """The pinned adapter that the next load would throw out; None: it would throw out another, or nobody."""
        if home.shadow.free > 0:
            return None
        victim = home.shadow.next_out(home.busy)
        return victim if victim is not None and victim in self.pinned else None
