"""What `lorapick top` knows: frames of the picker's feed, laid one over another.

In: `Frame`s, the first one whole. Out: the fleet as of the last. Not here: where frames come from (see `cli.top_feed`),
how it looks (see `cli.top_screen`).
"""

from lorapick.live.admin_views import AdapterLine, CellLine, Frame, PodLine, PointLine
from lorapick.live.publish import AlertRow, DecisionRow
from lorapick.model.signals import MOST_POINTS
from lorapick.model.units import AdapterName, PodName

MOST_DECISIONS = 50


class Board:
    """The fleet as of the last frame."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.frame: Frame | None = None
        """The last one, for what every frame has; None: there was none yet."""
        self.names: list[AdapterName] = []
        """What the numbers in lines stand for."""
        self.pods: dict[PodName, PodLine] = {}
        self.cells: dict[PodName, tuple[CellLine, ...]] = {}
        """What is in slots, or on its way there."""
        self.host: dict[PodName, tuple[CellLine, ...]] = {}
        """What is in host memory, as of a while ago."""
        self.adapters: dict[int, AdapterLine] = {}
        self.points: list[PointLine] = []
        """Oldest first."""
        self.decisions: list[DecisionRow] = []
        """Newest first, one for each request."""
        self.alerts: tuple[AlertRow, ...] = ()

    def lay(self, frame: Frame) -> bool:
        """Take over what a frame says; False: one before it is missing, and only a whole one helps."""
        if frame.whole:
            self._forget()
        elif self.frame is None or frame.seq != self.frame.seq + 1:
            return False
        self.frame = frame
        self.names += frame.names
        self._lay_pods(frame)
        self.adapters |= {line.adapter: line for line in frame.adapters}
        for adapter in frame.adapters_gone:
            self.adapters.pop(adapter, None)
        self.points = [*self.points, *frame.points][-MOST_POINTS:]
        decided = {row.request_id for row in frame.decisions}
        before = [row for row in self.decisions if row.request_id not in decided]
        self.decisions = [*frame.decisions, *before][:MOST_DECISIONS]
        self.alerts = self.alerts if frame.alerts is None else frame.alerts
        return True

    def _lay_pods(self, frame: Frame) -> None:
        self.pods |= {line.name: line for line in frame.pods}
        self.cells |= frame.cells
        self.host |= frame.host
        for pod in frame.pods_gone:
            for known in (self.pods, self.cells, self.host):
                known.pop(pod, None)

    def in_memory(self, pod: PodName) -> tuple[CellLine, ...]:
        """All that a pod has in some memory, each adapter once: host memory is looked at less often than slots."""
        held = self.cells.get(pod, ())
        adapters = {line.adapter for line in held}
        return (*held, *(line for line in self.host.get(pod, ()) if line.adapter not in adapters))

    def name(self, adapter: int) -> AdapterName:
        """The adapter of a line; a number that no frame has explained is shown as such."""
        return self.names[adapter] if adapter < len(self.names) else f"#{adapter}"
