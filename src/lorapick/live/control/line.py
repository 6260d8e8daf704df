"""Commands that wait for one pod, and whose turn is next.

In: commands as they come. Out: them, one after another; whom a full line pushes out.
Order: as they came, but who still looks for sources lets others pass. A touch may go ahead, since it is short and what
it keeps might be evicted meanwhile; one at most before each other command. Nobody passes a command about the same
adapter.
Not here: time, and what a command does.
"""

from collections import deque
from collections.abc import Iterator

from lorapick.live.control.commands import Command, adapters_of
from lorapick.live.control.problems import ProblemError
from lorapick.live.ports import NoSourceError
from lorapick.model.effects import Touch
from lorapick.model.units import AdapterName

MOST_WAITING = 64


class Waiting:
    """One command, and the adapters of it that have had no event yet."""

    __slots__ = ("command", "left", "ready", "sources")

    def __init__(self, command: Command, *, ready: bool = True) -> None:
        self.command = command
        self.left = deque(adapters_of(command))
        self.ready = ready
        """Its sources are known; until then others pass."""
        self.sources: dict[AdapterName, str | NoSourceError | ProblemError] = {}
        """Where the pod is told to load from, or why it cannot be told."""


class Line:
    """The waiting commands of one pod."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._went_ahead = False
        """The last one to leave was a touch that others let pass."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Waiting]:
        """Those that wait, as they came."""
        return iter(self._waiting)

    def add(self, one: Waiting) -> Waiting | None:
        """Wait; whom that pushes out: the one that waits longest, when there is no room."""
        self._waiting.append(one)
        return self._waiting.popleft() if len(self._waiting) > MOST_WAITING else None

    def drop(self, one: Waiting) -> bool:
        """Leave the line; whether it was there."""
        try:
            self._waiting.remove(one)
        except ValueError:
            return False
        return True

    def take(self) -> Waiting | None:
        """Whose turn it is; None: nobody waits, or nobody is ready."""
        first = self._first(touches=False)
        touch = None if self._went_ahead else self._first(touches=True)
        one = touch if touch is not None else first
        self._went_ahead = one is not first
        if one is not None:
            self._waiting.remove(one)
        return one

    def _first(self, *, touches: bool) -> Waiting | None:
        """The first that is ready, behind nobody who has to do with the same adapter; if `touches`, the first touch."""
        passed: dict[AdapterName, None] = {}
        for one in self._waiting:
            wanted = not touches or isinstance(one.command, Touch)
            if wanted and one.ready and not any(adapter in passed for adapter in one.left):
                return one
            passed.update(dict.fromkeys(one.left))
        return None
