"""Loads that other pickers have caused: marks in the table.

In: where a peer says that an adapter is on its way, and that it is not any more. Out: beliefs with source `peer`.
What a peer says beats what is inferred, and loses to what a pod says of itself: a list that has the adapter ends the
mark, and so does an answer of the pod. Not here: who the peers are (see `core.peers`).
"""

from lorapick.core.residency.cells import EndedLoad
from lorapick.core.residency.moves import Moves
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import AdapterName, Seconds


class PeerMoves(Moves):
    """The table of all pods, as far as peers bring adapters in."""

    def peer_loads(self, row: int, name: AdapterName, *, now: Seconds) -> bool:
        """A peer brings an adapter in; False: it is there already as far as we know, or the pod does not accept it."""
        home = self._pods[row]
        cell = home.cell(name)
        if cell.tier >= Tier.LOADING or not self.registry.accepts(row, name):
            return False
        self._use(home, name, now=now)
        self._begin_load(home, name, cell=cell, now=now, source=Source.PEER)
        cell.begun = None  # it began earlier than we heard of it, so that its length says nothing
        home.excuse()
        return True

    def by_peer(self, row: int, name: AdapterName) -> bool:
        """Whether an adapter is on its way there by what a peer said, and nothing else."""
        cell = self._pods[row].cells.get(name)
        return cell is not None and cell.tier is Tier.LOADING and cell.source is Source.PEER

    def peer_loaded(self, row: int, name: AdapterName, *, now: Seconds) -> EndedLoad | None:
        """The peer speaks of that load no longer: it is over. None: we know better."""
        if not self.by_peer(row, name):
            return None
        home = self._pods[row]
        cell = home.cells[name]
        load = EndedLoad(row, name, cell.came_from)
        self._arrive(home, name, cell=cell, now=now, source=Source.PEER)
        return load

    def peer_vanished(self, row: int, name: AdapterName, *, now: Seconds) -> bool:
        """The peer has not been heard of for too long: its mark counts for nothing, unless requests of ours are there.

        Return whether the mark is gone.
        """
        if not self.by_peer(row, name):
            return False
        home = self._pods[row]
        cell = home.cells[name]
        if cell.in_flight:
            cell.source = Source.INFERRED  # these have the engine load it, if nobody else has
            self._write(home, name)
            return False
        home.shadow.drop(name, cell.came_from)
        if cell.came_from is Tier.CPU:
            home.shadow.cpu[name] = None
        self._move(home, name, cell=cell, tier=cell.came_from, now=now, source=Source.INFERRED)
        self._settle(home, now=now)
        return True
