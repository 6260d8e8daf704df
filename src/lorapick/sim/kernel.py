"""The virtual clock: a heap of what is still to happen.

In: callbacks with a time and a priority. Out: calls, in the order of (time, priority, sequence), the clock set to
each one's time. Same calls in, same order out, whatever the hash seed. Not here: what happens (see `sim.world`).
"""

import heapq
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from lorapick.model.units import Seconds


class Priority(IntEnum):
    """Order of things at the same instant: what pods did is known before anyone is asked to decide."""

    POD = 0
    SCRAPE = 1
    TICK = 2
    CHANGE = 3
    ARRIVAL = 4


class Kernel:
    """One run's clock and heap."""

    __slots__ = ("_heap", "_sequence", "handled", "now")

    def __init__(self, start: Seconds = 0.0) -> None:
        self.now = start
        self.handled = 0
        """Callbacks made so far."""
        self._heap: list[tuple[Seconds, int, int, Callable[[Any], None], Any]] = []
        self._sequence = 0

    def at(self, time: Seconds, call: Callable[[Any], None], *, argument: Any = None, priority: int) -> None:
        """Call `call(argument)` at `time`; `priority` is one of `Priority`.

        Raises:
            ValueError: `time` lies in the past.
        """
        if time < self.now:
            raise ValueError(f"cannot schedule at {time}: the clock stands at {self.now}")
        self._sequence += 1
        heapq.heappush(self._heap, (time, priority, self._sequence, call, argument))

    def run(self, until: Seconds) -> None:
        """Make every call due up to and at `until`, then set the clock to `until`."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] <= until:
            self.now, _, _, call, argument = pop(heap)
            self.handled += 1
            call(argument)
        self.now = max(self.now, until)

    def step(self) -> bool:
        """Make the next call; False when nothing is scheduled."""
        if not self._heap:
            return False
        self.now, _, _, call, argument = heapq.heappop(self._heap)
        self.handled += 1
        call(argument)
        return True

    @property
    def next_time(self) -> Seconds | None:
        """Time of the next call; None: nothing is scheduled."""
        return self._heap[0][0] if self._heap else None
