"""Which loads are under way, and when those of one pod end, as far as that can be told from outside.

In: loads that begin and end, and how long after its beginning a load was first seen to be over. Out: who loads where,
and when to take a load as over.
Not here: what a load does to beliefs (see `core.residency.table`).

What shows a load to be over comes late: an answer, its end, a scrape. Its delay is an upper bound of the load's length,
and the least of the last bounds is close to it once short answers have been seen. (The third least: a belief that was
wrong gives a bound without a load in it.) Engines load in the step, one adapter
after another, so the next load begins when the one before it is over.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lorapick.core.residency.cells import Cell
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

REMEMBERED = 64
"""Bounds of each tier that count: a pod whose loads become slower is believed after so many."""
_SPARED = 2
"""Least bounds that are not believed."""


class LoadsUnderWay:
    """Loads of all pods that have begun and have not ended, as far as we know."""

    __slots__ = ("_cells", "next_due")

    def __init__(self) -> None:
        self._cells: dict[AdapterName, dict[int, Cell]] = {}
        """By adapter and row; no adapter without one."""
        self.next_due = float("inf")
        """When to look again for loads that nobody reports the end of; infinity: none is under way."""

    def begin(self, row: int, name: AdapterName, *, cell: Cell) -> None:
        """A load begins."""
        self._cells.setdefault(name, {})[row] = cell

    def expect(self, cell: Cell, due: Seconds) -> None:
        """It must have ended when `due`."""
        cell.expected = due
        self.next_due = min(self.next_due, due)

    def end(self, row: int, name: AdapterName) -> None:
        """It has ended; no-op when none is under way."""
        cells = self._cells.get(name)
        if cells is not None and cells.pop(row, None) is not None and not cells:
            del self._cells[name]

    def __iter__(self) -> Iterator[tuple[int, AdapterName, Cell]]:
        """Row, adapter and cell of each."""
        for name, cells in self._cells.items():
            for row, cell in cells.items():
                yield row, name, cell

    def rows(self, name: AdapterName) -> list[int]:
        """Rows that are bringing this adapter in, in row order."""
        return sorted(self._cells.get(name, ()))

    def until(self, row: int, name: AdapterName) -> Seconds | None:
        """When the load must have ended; None when there is none."""
        cell = self._cells.get(name, {}).get(row)
        return cell.expected if cell is not None else None

    def look_again(self) -> None:
        """Set `next_due` anew."""
        self.next_due = self.earliest()

    def earliest(self) -> Seconds:
        """When the first of them must have ended."""
        return min((cell.expected for _, _, cell in self), default=float("inf"))

    def check(self) -> None:
        """Nothing empty is kept, and somebody looks in time."""
        assert all(self._cells.values()), "an adapter without loads is listed as loading"
        due = self.earliest()
        assert self.next_due <= due, f"a load ends at {due}, nobody looks before {self.next_due}"


class LoadsSeen(NamedTuple):
    """What loads from one tier took, all pods together."""

    loads: int
    """Loads whose end was seen, of the last ones."""
    mean: Seconds
    """Of what each took until it was seen to be over: at most that long was it."""
    quickest: Seconds | None
    """Of pods on which enough were seen, the mean of what the quickest loads there took. None: on none."""


def loads_seen(clocks: Iterable["LoadClock"], tier: Tier) -> LoadsSeen | None:
    """What these clocks saw; None: nothing."""
    listed = [*clocks]
    bounds = [bound for clock in listed for bound in clock.bounds(tier)]
    quickest = [least for clock in listed if (least := clock.least(tier)) is not None]
    if not bounds:
        return None
    return LoadsSeen(len(bounds), sum(bounds) / len(bounds), sum(quickest) / len(quickest) if quickest else None)


class LoadClock:
    """What is known of one pod's loads."""

    __slots__ = ("_bounds", "_free_at", "_least")

    def __init__(self) -> None:
        self._bounds: dict[Tier, deque[Seconds]] = {}
        self._least: dict[Tier, Seconds] = {}
        self._free_at: Seconds = float("-inf")
        """When the last load must have ended."""

    def expect(self, tier: Tier, configured: Seconds, *, now: Seconds) -> Seconds:
        """When a load from `tier` that begins now is over: after those before it, and the configured time or less."""
        least = self._least.get(tier)
        if least is None:
            return now + configured  # a worst case already; to add up several would be far off
        self._free_at = max(now, self._free_at) + min(configured, least)
        return self._free_at

    def least(self, tier: Tier) -> Seconds | None:
        """What the quickest loads from a tier took, as far as seen; None: too few were."""
        return self._least.get(tier)

    def bounds(self, tier: Tier) -> Sequence[Seconds]:
        """How long after their begin the last loads from a tier were seen to be over."""
        return self._bounds.get(tier, ())

    def seen(self, cell: Cell, *, now: Seconds) -> None:
        """Something shows that the adapter's load is over. No-op when this was known, or when nothing began."""
        if cell.begun is None:
            return
        bounds = self._bounds.setdefault(cell.came_from, deque(maxlen=REMEMBERED))
        bounds.append(now - cell.begun)
        if len(bounds) > _SPARED:
            self._least[cell.came_from] = sorted(bounds)[_SPARED]
        cell.begun = None
        self._free_at -= max(0.0, cell.expected - now)  # those behind it may begin sooner

    def restart(self) -> None:
        """The process is new: nothing loads there."""
        self._free_at = float("-inf")
