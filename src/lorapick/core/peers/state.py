"""What is known through other pickers, as one part of the fleet's state.

In: settings. Out: marks and claims, and when to look at them again.
Not here: what follows (see `core.peers.listening`).
"""

from math import inf

from lorapick.core.peers.claims import Claims
from lorapick.core.peers.marks import Marks
from lorapick.model.peers import ModeWord
from lorapick.model.settings import PeersSettings
from lorapick.model.units import Seconds


class Peers:
    """Off, and free of charge, unless the settings have `peers`."""

    __slots__ = ("claims", "marks", "mode", "on", "problem")

    def __init__(self, settings: PeersSettings | None) -> None:
        self.on = settings is not None
        self.claims = Claims(settings)
        self.marks = Marks(settings.stale_after if settings is not None else 0.0)
        self.mode: ModeWord | None = None
        """The last mode that an operator set at any of the pickers, as far as is known; told on."""
        self.problem = "nobody has tried to reach it yet"
        """Why the shared store is out of reach; empty: it is not."""

    def configure(self, settings: PeersSettings | None) -> None:
        """Take over settings."""
        self.on = settings is not None
        self.claims.configure(settings)
        if settings is not None:
            self.marks.stale_after = settings.stale_after

    @property
    def next_due(self) -> Seconds:
        """When to look again for claims without an answer and silent peers; infinity: no need."""
        return min(self.claims.next_due, self.marks.next_due) if self.on else inf
