"""How busy the pods together may be for a request of some priority to be sent, as llm-d's usage limit policies have it.

In: settings, the pods' saturation, priorities of requests that are tried. Out: a ceiling; from that saturation on such
requests wait although some pod has room. Not here: the saturation (see `core.admission.saturation`), waiting itself.

A ceiling of 1 holds nobody back: when all pods together are full each of them says so by itself, and whose adapter
has a place all the same goes there. That is where llm-d would hold everybody.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import floor

from lorapick.model.bands import CeilingSettings, Spread
from lorapick.model.units import Ratio, Seconds

OPEN: Ratio = 1.0
IDLE: Seconds = 600.0
"""For how long a priority counts after its last request; llm-d forgets its band then."""


class Ceilings:
    """What is remembered of priorities."""

    __slots__ = ("_seen", "_tries")

    def __init__(self) -> None:
        self._seen: dict[int, Seconds] = {}
        """Priorities by when one of their requests was tried last; no larger than there are objectives."""
        self._tries: dict[int, int] = {}
        """Tries at which a reflected ceiling let only some through."""

    def saw(self, priority: int, *, now: Seconds) -> None:
        """A request of this priority is tried."""
        self._seen[priority] = now

    def known(self, declared: Iterable[int], *, now: Seconds) -> list[int]:
        """Priorities that count, highest first: 0, those that are `declared`, and those of late."""
        for priority in [each for each, last in self._seen.items() if now - last > IDLE]:
            del self._seen[priority]
            self._tries.pop(priority, None)
        return sorted({0, *declared, *self._seen}, reverse=True)

    def passes(self, priority: int, *, period: int) -> bool:
        """Whether this try is the one of `period` that a reflected ceiling lets through."""
        tries = self._tries[priority] = self._tries.get(priority, 0) + 1
        return tries % period == 0


def ceilings(settings: CeilingSettings, priorities: Sequence[int], *, level: Ratio) -> list[Ratio]:
    """Of each priority, highest first, at a saturation. No lower one is above a higher one's."""
    return [*accumulate(_spread(settings, priorities, level=level), min)]


def _spread(settings: CeilingSettings, priorities: Sequence[int], *, level: Ratio) -> list[Ratio]:
    least, most, last = settings.least, settings.most, len(priorities) - 1
    match settings.spread:
        case Spread.LISTED:
            listed = {each.priority: each.most for each in settings.listed}
            return [listed.get(priority, 0.0) for priority in priorities]
        case Spread.REFLECTED:
            return [OPEN - place * level / last if place else OPEN for place in range(len(priorities))]
        case Spread.RANK if last:
            return [most - place * (most - least) / last for place in range(len(priorities))]
        case Spread.VALUE if last:
            low, wide = priorities[-1], priorities[0] - priorities[-1]
            return [least + (priority - low) / wide * (most - least) for priority in priorities]
        case _:
            return [most for _ in priorities]


def period(level: Ratio) -> int:
    """Above a reflected ceiling one try of so many goes through; 0: none, since the pods are full."""
    return max(1, floor(level / (1.0 - level) + 0.5)) if level < OPEN else 0
