"""Slots that wait for requests which are prefilled elsewhere.

In: calls of the table's owner. Out: cells whose requests the pod's engine does not know of yet; loads that begin when
it does. Not here: when a slot is reserved, and until when (see `core.splitting`).
"""

from lorapick.core.residency.cells import Cell, PodResidency
from lorapick.core.residency.peers import PeerMoves
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import AdapterName, Seconds


class Reserving(PeerMoves):
    """The table of all pods, as far as slots are reserved."""

    def reserve(self, row: int, name: AdapterName) -> Tier:
        """A request for `name` will come to the pod once it is prefilled elsewhere; return the tier believed now.

        It counts as in flight, so that its slot is not given to others. The engine has not used the adapter yet.
        """
        home = self._pods[row]
        cell = home.cell(name)
        before = cell.tier
        if before is Tier.GPU_IDLE and (cell.in_flight or cell.active):
            before = Tier.GPU_SERVING
        cell.in_flight += 1
        cell.reserved += 1
        home.reserved[name] = None
        self._write(home, name)
        return before

    def claimed(self, row: int, name: AdapterName, *, now: Seconds) -> bool:
        """A request whose slot was reserved is at the pod now; return whether a load of its adapter begins."""
        home = self._pods[row]
        self._release(home, name, cell=home.cells[name])
        return self.comes(row, name, now=now)

    def comes(self, row: int, name: AdapterName, *, now: Seconds) -> bool:
        """The pod has a request that it will use the adapter for; return whether a load begins."""
        home = self._pods[row]
        cell = home.cells[name]
        home.shadow.asked(name)
        if not home.shadow.touch(name):
            self._use(home, name, now=now)
        begins = cell.tier < Tier.LOADING
        if begins:
            self._begin_load(home, name, cell=cell, now=now, source=Source.INFERRED)
        else:
            self._write(home, name)
        return begins

    def _release(self, home: PodResidency, name: AdapterName, *, cell: Cell) -> None:
        cell.reserved -= 1
        if not cell.reserved:
            home.reserved.pop(name, None)
            home.absent.pop(name, None)
            self._note_absent(home)
