"""What a filter and a scorer of a profile are.

Each is made once from its parameters and asked for every decision; it holds no state. Rows are candidates in row
order, never none. Not here: any of them (see `filters`, `scorers`).
"""

from typing import Protocol

from lorapick.core.picking.query import FleetView, Query


class Filter(Protocol):
    """Narrows the candidates."""

    needs: tuple[str, ...]
    """Facts that it reads (`facts`), of those that cost something to collect."""
    reads: tuple[str, ...]
    """Columns that it reads, as in `Policy.reads`."""

    def keep(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """Those of `rows` that may serve, in their order; none when nobody may."""
        ...


class Scorer(Protocol):
    """Prefers some candidates."""

    needs: tuple[str, ...]
    reads: tuple[str, ...]
    aware: bool
    """Whether it looks at residency, so that admission is left to the picker (`Policy.coalesces`)."""

    def values(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """A value for each of `rows`, higher is better; beyond [0, 1] it counts as the nearer bound."""
        ...
