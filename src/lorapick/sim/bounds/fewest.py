"""The clairvoyant bound: the fewest loads with which requests can be served in a given order.

In: the adapters of requests, one at a time, in the order in which their service begins. Out: a number. Not here: costs
that differ by adapter (see `sim.bounds.least_cost`), which order to ask about (see `sim.bounds.yardstick`).

What is bounded: all slots of the fleet are one pool and any request may be served by any of them (routing free); a
request's adapter must be in a slot when its service begins; a load brings one adapter into one slot, pushing out
whatever is there; all of the future is known. Then a second copy of an adapter never helps, nor does loading early.
Left out, which only makes the number smaller, so that it stays a bound: pods and their limits, time, capacity, and that
an adapter whose requests still run cannot be pushed out. Slots are equal (vLLM reserves the largest rank for each).

The number is that of Belady's rule, evict what is next used furthest in the future, but the future is not needed to
count: between two requests for an adapter it either stays, which takes one slot beside the one that serves, or is
loaded again. So the loads avoided are as many of these intervals as fit into `slots - 1` lanes without overlap, and
taking each interval as it ends, into the fitting lane that was free last, keeps as many as possible (the greedy
k-colouring of Carlisle and Lloyd, Discrete Applied Mathematics 59, 1995). One pass, memory for the distinct adapters
and never for the requests, and the number is right after every request.
"""

from bisect import bisect_right

import msgspec

from lorapick.model.units import AdapterName


class LoadBound(msgspec.Struct, frozen=True, kw_only=True):
    """The fewest loads for one order of requests."""

    slots: int
    """Of the whole fleet."""
    requests: int
    adapters: int
    """Distinct ones."""
    loads: int


class FewestLoads:
    """Counts along with a sequence of requests."""

    __slots__ = ("_before", "_ends", "_last", "_unused", "loads", "requests", "slots")

    def __init__(self, slots: int, *, begins_empty: bool = True) -> None:
        """`slots` of the whole fleet.

        `begins_empty` False: the slots may hold at the start whatever is best, as for a stretch from the middle of a
        run. Raises ValueError when there are no slots.
        """
        if slots < 1:
            raise ValueError(f"{slots} slots: serving an adapter takes at least 1")
        self.slots = slots
        self.requests = 0
        self.loads = 0
        """The fewest for what was added so far."""
        self._last: dict[AdapterName, int] = {}
        """Position of the last request for each adapter."""
        self._before = None if begins_empty else -1
        """Position of the use before the first; None: there was none."""
        self._ends: list[int] = []
        """Position at which each lane in use became free, rising."""
        self._unused = slots - 1

    @property
    def adapters(self) -> int:
        """Distinct adapters so far. When nothing is loaded at the start, no order needs fewer loads than these."""
        return len(self._last)

    def add(self, adapter: AdapterName) -> bool:
        """The next request begins service; returns whether it raises the number of loads."""
        position = self.requests
        self.requests = position + 1
        last = self._last.get(adapter, self._before)
        self._last[adapter] = position
        if last is None:
            self.loads += 1
            return True
        if last == position - 1:
            return False  # nobody came between: it is still in the slot that served
        ends = self._ends
        # A lane is free if what it kept was needed again at the latest by the request after `last`.
        lane = bisect_right(ends, last + 1) - 1
        if lane >= 0:
            del ends[lane]
        elif self._unused:
            self._unused -= 1
        else:
            self.loads += 1
            return True
        ends.append(position)
        return False

    def bound(self) -> LoadBound:
        """Where it stands."""
        return LoadBound(slots=self.slots, requests=self.requests, adapters=self.adapters, loads=self.loads)
