"""Which of many notes alike are to be printed.

In: the kind of a note, the pod that it is about, the time. Out: whether to print it. Of one kind about one pod only one
in ten seconds is printed, and says how many were not. Not here: the notes (see `core.aftermath`).
"""

from collections import OrderedDict
from math import inf

from lorapick.model.units import PodName, Seconds

EVERY: Seconds = 10.0
"""Between two notes of a kind about one pod that are printed, at least."""
MOST = 2_000
"""Kinds and pods that are remembered; the one printed longest ago is forgotten first."""


class Told:
    """When what was last told of whom."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, PodName | None], tuple[Seconds, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last)

    def take(self, kind: str, pod: PodName | None, *, now: Seconds) -> int | None:
        """How many were not told since the last one that was; None: this one is not to be told either."""
        last, untold = self._last.get((kind, pod), (-inf, 0))
        if now - last < EVERY:
            self._last[kind, pod] = (last, untold + 1)
            return None
        self._last[kind, pod] = (now, 0)
        self._last.move_to_end((kind, pod))
        if len(self._last) > MOST:
            self._last.popitem(last=False)
        return untold
