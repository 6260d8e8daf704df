"""Known names that look like a wrong one, at bounded cost.

In: a name that nobody serves, and all that somebody does. Out: at most three of them, best first.
Not here: which names are known (see `core.naming`), the words of a refusal.

A flood of wrong names must not take the picker's time: a name that is asked again is answered from memory, and new
ones are looked at `BURST` at once and `RATE` per second after that. The rest get no names.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from heapq import nsmallest
from typing import NamedTuple

from lorapick.model.units import Seconds

AMONG = 64
"""Names compared letter by letter; comparing one takes some 0.1 ms."""
BURST = 5
RATE = 10.0
"""Wrong names looked at per second."""
KEPT: Seconds = 10.0
"""Time for which an answer is given again, although the fleet's names may have changed."""
MOST_KEPT = 256
LONGEST = 512
"""Letters of a wrong name that may yet be a slip of the pen."""


class _Found(NamedTuple):
    names: list[str]
    until: Seconds


class NearNames:
    """Looks for near names, and remembers what it found."""

    __slots__ = ("_at", "_found", "_left")

    def __init__(self) -> None:
        self._found: OrderedDict[str, _Found] = OrderedDict()
        """Answers, oldest first."""
        self._left: float = BURST
        self._at: Seconds = float("-inf")
        """When `_left` was right."""

    def of(self, name: str, known: Callable[[], Iterable[str]], *, now: Seconds) -> list[str]:
        """Names that look like `name`, which itself is none of them; `known` is called only when it is looked for."""
        found = self._found.get(name)
        if found is not None and now < found.until:
            return found.names
        if len(name) > LONGEST or not self._may_look(now):
            return []
        others = dict.fromkeys(known())
        others.pop(name, None)
        names = get_close_matches(name, _shortlist(name, others), n=3, cutoff=0.5)
        self._found[name] = _Found(names, now + KEPT)
        self._found.move_to_end(name)
        if len(self._found) > MOST_KEPT:
            self._found.popitem(last=False)
        return names

    def _may_look(self, now: Seconds) -> bool:
        self._left = min(BURST, self._left + (now - self._at) * RATE)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _shortlist(name: str, names: Iterable[str]) -> list[str]:
    """Those that begin and end like `name`: one slip of the pen leaves both ends alone."""
    return nsmallest(AMONG, names, key=lambda other: (-_alike(name, other) - _alike(name[::-1], other[::-1]), other))


def _alike(one: str, other: str) -> int:
    """Number of equal leading letters."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))
