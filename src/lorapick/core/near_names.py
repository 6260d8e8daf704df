"""Known names that look like a wrong one, at bounded cost.

In: a name that nobody serves, and all that somebody does. Out: at most three of them, best first.
Not here: which names are known (see `core.naming`), the words of a refusal.

A flood of wrong names must not take the picker's time: a name that is asked again is answered from memory, and new
ones are looked at `BURST` at once and `RATE` per second after that. The rest get no names. Among very many names only
those are looked at that begin or end like the wrong one.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from heapq import nsmallest
from typing import NamedTuple

from lorapick.model.units import Seconds

MANY = 2000
"""Names that are all looked at, some 4 µs each."""
_NARROWED = 128
"""Of more names than that: how many are looked at that begin like the wrong one, and how many that end like it."""
AMONG = 64
"""Names compared letter by letter, half as many of very many; comparing one takes some 0.1 ms."""
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

    def of(self, name: str, known: Callable[[], Sequence[str]], *, now: Seconds) -> list[str]:
        """Names that look like `name`, which itself is none of them; `known` is called only when it is looked for."""
        found = self._found.get(name)
        if found is not None and now < found.until:
            return found.names
        if len(name) > LONGEST or not self._may_look(now):
            return []
        names = known()
        many = len(names) > MANY
        others = dict.fromkeys(_narrowed(name, names) if many else names)
        others.pop(name, None)
        near = get_close_matches(name, _shortlist(name, others, among=AMONG // 2 if many else AMONG), n=3, cutoff=0.5)
        self._found[name] = _Found(near, now + KEPT)
        self._found.move_to_end(name)
        if len(self._found) > MOST_KEPT:
            self._found.popitem(last=False)
        return near

    def _may_look(self, now: Seconds) -> bool:
        self._left = min(BURST, self._left + (now - self._at) * RATE)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def _narrowed(name: str, names: Sequence[str]) -> list[str]:
    """Names that share most letters with `name` at its begin or its end, by searches through one long text."""
    if "\n" in name or not name:
        return []
    text = "\n" + "\n\n".join(names) + "\n"
    if text.count("\n") != 2 * len(names):  # a name with a line break would be cut into lines that are no names
        text = "\n" + "\n\n".join(each for each in names if "\n" not in each) + "\n"
    text = text.replace(f"\n{name}\n", "")
    begins = _lines(text, _rarest(text, lambda length: "\n" + name[:length], longest=len(name)))
    ends = _lines(text, _rarest(text, lambda length: name[len(name) - length :] + "\n", longest=len(name)))
    return [*begins, *ends]


def _rarest(text: str, part: Callable[[int], str], *, longest: int) -> str:
    """The longest part of the name that stands in the text; longer ones stand in ever fewer places."""
    low, high = 0, longest
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if part(middle) in text else (low, middle - 1)
    return part(low)


def _lines(text: str, part: str) -> list[str]:
    """The first lines that hold `part`, which begins or ends with a line break."""
    found: list[str] = []
    at = text.find(part)
    while at >= 0 and len(found) < _NARROWED:
        inner = at + 1 if part[0] == "\n" else at
        start, end = text.rfind("\n", 0, inner) + 1, text.find("\n", inner)
        if end < 0:
            break
        found.append(text[start:end])
        at = text.find(part, end)
    return found


def _shortlist(name: str, names: Iterable[str], *, among: int) -> list[str]:
    """Those that begin and end like `name`: one slip of the pen leaves both ends alone."""
    return nsmallest(among, names, key=lambda other: (-_alike(name, other) - _alike(name[::-1], other[::-1]), other))


def _alike(one: str, other: str) -> int:
    """Number of equal leading letters."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))
