"""The exact bound when loads cost different amounts: the least time that loads take for a given order of requests.

In: the adapters of requests in the order in which their service begins, slots, what loads cost, a solver. Out: a cost
in microseconds. Not here: the solver (`plan.flow_bound` has one).

The model is that of `sim.bounds.fewest`, whose docstring says what it leaves out. A first load comes from disk; a later
one from host memory, as if one host memory held for the whole fleet whatever was loaded once. Real pods do worse, so it
is a bound for them. With equal costs it is the least number of loads again, and no solver is asked.
"""

from array import array
from collections.abc import Callable, Iterable

import msgspec

from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Bytes
from lorapick.pod.swaps import transfer_seconds
from lorapick.pod.values import SwapCosts
from lorapick.sim.bounds.fewest import FewestLoads
from lorapick.sim.bounds.keeping import Solve, best_saving, keeping

MOST_CHANGES = 50_000
"""Changes of adapter from one request to the next up to which a solver is asked: about a minute's work."""
MOST_COST = 10**10
"""Microseconds; a load takes no longer. Larger numbers would lose digits in a solver that reckons with floats."""


class TooLarge(ValueError):  # noqa: N818 - what the problem is
    """More than a solver should be asked: the number, the limit, what to do."""


class LoadCost(msgspec.Struct, frozen=True):
    """What loads of one adapter cost, in microseconds."""

    first: int
    """From disk."""
    again: int
    """From host memory."""

    def __post_init__(self) -> None:
        if not 0 <= self.again <= self.first <= MOST_COST:
            raise ValueError(
                f"loads that cost {self.first} and then {self.again} µs: a first load costs at most {MOST_COST:,}, "
                "a later one not more than the first, and none less than 0"
            )


def load_cost(size: Bytes, swap: SwapCosts) -> LoadCost:
    """What loads of an adapter of `size` bytes cost a pod: transfer, initialisation and warm-up, rounded down.

    Drain and deallocation are left out: they depend on what else is there.
    """
    fixed = swap.initialisation + swap.warm_up
    first, again = (
        int((transfer_seconds(swap, tier_from=tier, size=size) + fixed) * 1e6) for tier in (Tier.DISK, Tier.CPU)
    )
    return LoadCost(first, again)


class LeastCost(msgspec.Struct, frozen=True, kw_only=True):
    """The least that loads can cost for one order of requests."""

    slots: int
    requests: int
    adapters: int
    microseconds: int
    solved: bool
    """Whether a solver was needed; its answer was proven. Otherwise it follows from the fewest loads."""


class Changes:
    """A sequence of requests without immediate repeats, in four bytes each."""

    def __init__(self, adapters: Iterable[AdapterName] = ()) -> None:
        self.requests = 0
        self.names: list[AdapterName] = []
        """Distinct adapters in the order of their first requests."""
        self.sequence = array("I")
        """Indices into `names`."""
        self._index: dict[AdapterName, int] = {}
        for adapter in adapters:
            self.add(adapter)

    def add(self, adapter: AdapterName) -> None:
        """The next request begins service."""
        self.requests += 1
        index = self._index.get(adapter)
        if index is None:
            index = self._index[adapter] = len(self.names)
            self.names.append(adapter)
        sequence = self.sequence
        if not sequence or sequence[-1] != index:
            sequence.append(index)


def least_cost(
    changes: Changes,
    slots: int,
    *,
    cost: Callable[[AdapterName], LoadCost],
    solve: Solve,
    most: int = MOST_CHANGES,
) -> LeastCost:
    """The least that loads can cost for this order; exact.

    A solver is asked only when there are fewer slots than adapters, more than one, and later loads differ in cost.

    Raises:
        ValueError: no slots.
        TooLarge: the solver would be asked about more than `most` changes of adapter.
        NotProven: the solver's answer is not the best.
    """
    costs = [cost(name) for name in changes.names]
    again = [each.again for each in costs]
    # Whichever are kept, the first loads are made.
    total = sum(each.first for each in costs)
    solved = False
    if slots <= 1 or slots >= len(costs) or min(again) == max(again):
        total += _without_solver(changes, slots, again=again)
    else:
        solved = True
        _refuse_above(most, changes)
        total += sum(again[adapter] for adapter in changes.sequence) - sum(again)
        problem = keeping(changes.sequence, slots - 1, saves=again)
        total -= best_saving(problem, solve(problem))
    return LeastCost(slots=slots, requests=changes.requests, adapters=len(costs), microseconds=total, solved=solved)


def _without_solver(changes: Changes, slots: int, *, again: list[int]) -> int:
    """Cost of the loads after the first of each adapter, when any schedule with the fewest loads is the cheapest."""
    fewest = FewestLoads(slots)
    # Adapters by name there, by index here; it only compares them.
    loaded = [index for index in changes.sequence if fewest.add(changes.names[index])]
    return sum(again[index] for index in loaded) - sum(again)


def _refuse_above(most: int, changes: Changes) -> None:
    count = len(changes.sequence)
    if count > most:
        raise TooLarge(
            f"{count:,} times a request needs another adapter than the one before it; with loads that differ in cost "
            f"the exact bound takes up to {most:,}: ask about a shorter stretch"
        )
