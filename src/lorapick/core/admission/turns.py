"""A turn for an adapter that waits while others keep every slot in use.

On a busy fleet the batch of each pod never runs out of requests for its hot adapters, so their slots never become free
by themselves. When somebody has waited for longer than patience allows, one slot is cleared: on the pod where it costs
least, the adapter that is asked for least takes no new requests; when its last one has ended, the slot goes to the one
whose turn it is, and to all who wait for it. The others wait for no longer than those ahead of them.

In: who waits, demand, adapters in use. Out: which adapter is closed on which row, and for whom. Not here: waiting
(see `core.admission.queues`), the filter (see `core.deciding`).
"""

from collections.abc import Iterable

from lorapick.core.admission.demand import Demand
from lorapick.core.residency.cells import PodResidency
from lorapick.model.units import AdapterName, Seconds


class Turns:
    """Slots that are being cleared: at most one per pod, and per adapter."""

    __slots__ = ("_row_of", "_turns")

    def __init__(self) -> None:
        self._turns: dict[int, tuple[AdapterName, AdapterName]] = {}
        """By row: whose turn it is, and who makes room."""
        self._row_of: dict[AdapterName, int] = {}
        """Row of each adapter whose turn it is."""

    def __len__(self) -> int:
        return len(self._turns)

    def row_of(self, name: AdapterName) -> int:
        """Where a slot is being cleared for an adapter; -1: nowhere."""
        return self._row_of.get(name, -1)

    def closed(self, name: AdapterName) -> list[int]:
        """Rows on which an adapter makes room for another."""
        return [row for row, (_, victim) in self._turns.items() if victim == name]

    def turns(self) -> list[tuple[int, AdapterName]]:
        """Rows on which a slot is being cleared, with the adapter that it is for."""
        return [(row, name) for row, (name, _) in self._turns.items()]

    def taken(self, row: int) -> bool:
        """Whether a slot is being cleared there."""
        return row in self._turns

    def begin(
        self, name: AdapterName, homes: Iterable[PodResidency], *, demand: Demand, now: Seconds
    ) -> PodResidency | None:
        """Clear a slot for an adapter on the cheapest of `homes`; None: on none of them somebody can make room."""
        best: tuple[float, PodResidency, AdapterName] | None = None
        for home in homes:
            if home.row in self._turns or name in home.in_use:
                continue
            for victim in home.in_use:
                if victim in self._row_of or home.cells[victim].pinned:
                    continue
                price = demand.rate(victim, now=now)
                if best is None or price < best[0]:
                    best = (price, home, victim)
        if best is None:
            return None
        _, home, victim = best
        self._turns[home.row] = (name, victim)
        self._row_of[name] = home.row
        return home

    def end(self, name: AdapterName) -> int:
        """The turn is over: it has its slot, or nobody waits for it any more. Return its row; -1: it had none."""
        row = self._row_of.pop(name, -1)
        self._turns.pop(row, None)
        return row

    def gone(self, row: int) -> None:
        """The pod is gone."""
        turn = self._turns.pop(row, None)
        if turn is not None:
            del self._row_of[turn[0]]
