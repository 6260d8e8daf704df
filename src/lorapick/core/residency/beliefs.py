"""Reading the table of beliefs.

In: nothing. Out: what is believed, for decisions, people and invariants. Not here: whatever changes a belief (see
`core.residency.table`).
"""

from collections.abc import Callable, Iterable, Iterator

from lorapick.core.columns import PINNED, SOURCE_SHIFT, SOURCES, TIER_BITS, PodColumns
from lorapick.core.residency.cells import Lost, PodResidency
from lorapick.core.residency.loading import LoadClock, LoadsSeen, LoadsUnderWay, loads_seen
from lorapick.core.residency.registry import Registry
from lorapick.model.picks import Belief
from lorapick.model.settings import LoadTimes, RetentionSettings
from lorapick.model.signals import Change
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

_SOURCE_BITS = {source: index << SOURCE_SHIFT for index, source in enumerate(SOURCES)}
# Looking a member up in its enum costs more than the rest of a write, and every scrape writes all cells of a pod.
_DISK, _IDLE, _SERVING = int(Tier.DISK), Tier.GPU_IDLE, Tier.GPU_SERVING


class Beliefs:
    """The table of all pods, to be read."""

    def __init__(self, columns: PodColumns, load_times: LoadTimes, *, clock: Callable[[], Seconds]) -> None:
        self.load_times = load_times
        self.retention = RetentionSettings()
        """Figures of the policies that engines evict by, where that is not LRU."""
        self._clock = clock
        self.registry = Registry()
        self._columns = columns
        self._pods: dict[int, PodResidency] = {}
        self._loads = LoadsUnderWay()
        self.rows_loading = 0
        """Pods on which some load is under way."""
        self.rows_absent: dict[int, None] = {}
        """Pods on which a reserved adapter is in no slot, nor on its way into one."""
        self._clocks: dict[int, LoadClock] = {}
        self.changes: list[Change] = []
        """What came to another tier since somebody emptied this (`Fleet.apply` does, before each event)."""
        self.lost: list[Lost] = []
        """Reserved slots that were lost since somebody emptied this (`Fleet.apply` does)."""
        self._restarting = False

    def names(self) -> list[AdapterName]:
        """All names that the operator or a pod gave, sorted."""
        return self.registry.names()

    @property
    def next_due(self) -> Seconds:
        """When to look again for loads that nobody reports the end of; infinity: none is under way."""
        return self._loads.next_due

    def in_flight(self, name: AdapterName) -> int:
        """Own requests for an adapter that pods have, all pods together."""
        return sum(cell.in_flight for home in self._pods.values() if (cell := home.cells.get(name)) is not None)

    def loads_seen(self, tier: Tier) -> LoadsSeen | None:
        """What the last loads from a tier took, as far as seen; None: none was seen to end."""
        return loads_seen(self._clocks.values(), tier)

    def loading_rows(self, name: AdapterName) -> list[int]:
        """Rows that are bringing this adapter in, in row order."""
        return self._loads.rows(name)

    def loading_until(self, row: int, name: AdapterName) -> Seconds | None:
        """When the load must have ended; None when there is none."""
        return self._loads.until(row, name)

    def load_time(self, tier: Tier) -> Seconds:
        """Expected seconds of a load from `tier`."""
        return self.load_times.cpu if tier is Tier.CPU else self.load_times.disk

    def beliefs(self) -> Iterator[Belief]:
        """Every cell, by pod row and then adapter name."""
        for home in self._pods.values():
            for name in sorted(home.cells):
                tier = Tier(self._columns.adapter_row(name)[home.row] & TIER_BITS)
                yield home.cells[name].belief(home.name, name, tier=tier)

    def loads(self) -> LoadsUnderWay:
        """Loads under way."""
        return self._loads

    def homes(self) -> Iterable[PodResidency]:
        """All pods."""
        return self._pods.values()

    def home(self, row: int) -> PodResidency:
        """Cells and shadow of one pod, for views and invariants."""
        return self._pods[row]

    def code(self, home: PodResidency, name: AdapterName) -> int:
        """What the columns say of an adapter on a pod."""
        cell = home.cells.get(name)
        code = _DISK
        if cell is not None:
            tier = cell.tier
            if tier is _IDLE and (cell.in_flight or cell.active):
                tier = _SERVING
            code = tier | _SOURCE_BITS[cell.source]
            if cell.pinned:
                code |= PINNED
        if not self.registry.accepts(home.row, name):
            code &= ~TIER_BITS
        return code
