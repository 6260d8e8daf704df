"""How one cell of the table moves, and what follows for its pod, its loads and the columns.

In: calls of the table. Out: cells, shadows, residency codes and free slots that agree with one another.
Not here: why anything moves (see `core.residency.table`).
"""

from collections.abc import Iterable

from lorapick.core.residency.beliefs import Beliefs
from lorapick.core.residency.cells import Cell, Lost, PodResidency
from lorapick.model.signals import Change
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.model.units import AdapterName, Seconds

# Looking a member up in its enum costs more than the rest of a write.
_SOON: Seconds = 0.01
"""A load that waits for a slot is looked at again after this at the earliest."""
_LOADING, _IDLE = Tier.LOADING, Tier.GPU_IDLE


class Moves(Beliefs):
    """The table of all pods, one cell at a time."""

    def resize(self, row: int, *, gpu_slots: int, cpu_slots: int) -> None:
        """Discovery or the engine says how many adapters a pod holds."""
        home = self._pods[row]
        home.resize(gpu_slots=gpu_slots, cpu_slots=cpu_slots)
        self._move_down(home, home.shadow.shrink(home.busy), now=self._clock())
        self._columns.free_slots[row] = home.shadow.free

    def look(self, row: int) -> None:
        """From now on what is uncertain on a pod is judged as of now."""
        self._pods[row].now = self._clock()

    def doubted(self, row: int, name: AdapterName, *, tier: Tier, now: Seconds) -> None:
        """What was to bring an adapter into a slot failed: it counts as being in `tier`.

        Whether the engine has done it all the same, nobody knows: the slot stays taken until the engine lists its
        adapters, or would have put this one out again.
        """
        home = self._pods[row]
        cell = home.cell(name)
        cell.saw(Evidence.COMMAND, now)
        tier = tier if tier is Tier.CPU else Tier.DISK
        home.shadow.doubt(name, tier)
        if name not in home.shadow.gpu:
            home.shadow.drop(name, tier)
            if tier is Tier.CPU:
                home.shadow.cpu[name] = None
        self._move(home, name, cell=cell, tier=tier, now=now, source=Source.COMMANDED)
        self._settle(home, now=now)

    def _begin_load(self, home: PodResidency, name: AdapterName, *, cell: Cell, now: Seconds, source: Source) -> None:
        cell.came_from = cell.tier
        cell.begun, cell.proven = None, False
        self._expect(home, name, cell=cell, now=now)
        self._move(home, name, cell=cell, tier=_LOADING, now=now, source=source)
        self._loads.begin(home.row, name, cell=cell)
        home.loading += 1
        self.rows_loading += home.loading == 1

    def _expect(self, home: PodResidency, name: AdapterName, *, cell: Cell, now: Seconds) -> None:
        """A load begins, or waits for a slot: say when to look whether it is over."""
        configured = self.load_time(cell.came_from)
        if name in home.shadow.deferred:
            self._loads.expect(cell, now + max(configured, _SOON))
            return
        cell.begun = now if cell.in_flight <= 1 else None
        self._loads.expect(cell, self._clocks[home.row].expect(cell.came_from, configured, now=now))

    def _arrive(self, home: PodResidency, name: AdapterName, *, cell: Cell, now: Seconds, source: Source) -> None:
        home.shadow.doubtful.pop(name, None)
        self._move(home, name, cell=cell, tier=_IDLE, now=now, source=source)
        self._use(home, name, now=now, must_fit=True)

    def _use(self, home: PodResidency, name: AdapterName, *, now: Seconds, must_fit: bool = False) -> None:
        if not home.shadow.touch(name):
            self._move_down(home, home.shadow.use(name, home.busy, must_fit=must_fit) or (), now=now)

    def _move_down(self, home: PodResidency, moved: Iterable[tuple[AdapterName, Tier]], *, now: Seconds) -> None:
        for adapter, tier in moved:
            cell = home.cell(adapter)
            if cell.tier is _LOADING:
                cell.came_from = tier  # its load is still to come, from further away
            else:
                self._lose(home, adapter, cell=cell, tier=tier, known=False)
                self._move(home, adapter, cell=cell, tier=tier, now=now, source=Source.INFERRED)
        self._columns.free_slots[home.row] = home.shadow.free

    def _grant(self, home: PodResidency, *, now: Seconds) -> None:
        """A slot may have fallen idle: who waits for one loads from now on."""
        if home.shadow.deferred:
            waited = [*home.shadow.deferred]
            self._move_down(home, home.shadow.settle(home.busy), now=now)
            for name in waited:
                if name not in home.shadow.deferred:
                    self._expect(home, name, cell=home.cell(name), now=now)

    def _settle(self, home: PodResidency, *, now: Seconds) -> None:
        self._grant(home, now=now)
        self._columns.free_slots[home.row] = home.shadow.free

    def _lose(self, home: PodResidency, name: AdapterName, *, cell: Cell, tier: Tier, known: bool) -> None:
        """An adapter comes to another tier by what its engine does: note it if a slot was reserved for it.

        One that only should have been there by now is not lost: nothing has shown that it came.
        """
        if cell.reserved and cell.proven and cell.tier is _IDLE and tier < _LOADING:
            self.lost.append(Lost(home.name, name, known))

    def _move(
        self, home: PodResidency, name: AdapterName, *, cell: Cell, tier: Tier, now: Seconds, source: Source
    ) -> None:
        if cell.tier is not tier:
            if cell.tier is _LOADING:
                self._loads.end(home.row, name)
                home.loading -= 1
                self.rows_loading -= home.loading == 0
            self.changes.append(
                Change(
                    now,
                    home.name,
                    name,
                    cell.tier,
                    tier,
                    cell.since,
                    cell.came_from,
                    tier is _LOADING and cell.in_flight > 0,
                    self._restarting,
                )
            )
            cell.tier = tier
            cell.since = now
        cell.source = source
        self._write(home, name)

    def _note_absent(self, home: PodResidency) -> None:
        if home.absent:
            self.rows_absent[home.row] = None
        else:
            self.rows_absent.pop(home.row, None)

    def _write_all(self, home: PodResidency) -> None:
        for name in self._columns.adapters:
            self._write(home, name)

    def _write(self, home: PodResidency, name: AdapterName) -> None:
        cell = home.cells.get(name)
        if cell is not None:
            home.count_use(name, cell)
            self._note_absent(home)
        codes = self._columns.adapters.get(name) or self._columns.adapter_row(name)
        codes[home.row] = self.code(home, name)
