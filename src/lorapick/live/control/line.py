"""Commands that wait for one pod, and whose turn is next.

In: commands as they come. Out: them, one after another; whom a full line pushes out.
Order: as they came. A touch may go ahead of others, since it is short and what it keeps might be evicted meanwhile, but
never ahead of a command about its own adapter, and never two in a row ahead of the same one.
Not here: time, and what a command does.
"""

from collections import deque
from collections.abc import Iterator

from lorapick.live.control.commands import Command, adapters_of
from lorapick.model.effects import Touch
from lorapick.model.units import AdapterName

MOST_WAITING = 64


class Waiting:
    """One command, and the adapters of it that have had no event yet."""

    __slots__ = ("command", "left")

    def __init__(self, command: Command) -> None:
        self.command = command
        self.left = deque(adapters_of(command))


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
        """Whose turn it is; None: nobody waits."""
        touch = None if self._went_ahead else self._touch_ahead()
        self._went_ahead = touch is not None
        if touch is not None:
            self._waiting.remove(touch)
            return touch
        return self._waiting.popleft() if self._waiting else None

    def _touch_ahead(self) -> Waiting | None:
        """The first touch that may pass those before it."""
        if not self._waiting or isinstance(self._waiting[0].command, Touch):
            return None
        before: dict[AdapterName, None] = {}
        for one in self._waiting:
            if isinstance(one.command, Touch) and one.command.adapter not in before:
                return one
            before.update(dict.fromkeys(one.left))
        return None
