"""Which adapters get a metric label of their own.

In: the adapter of each request. Out: a label: the adapter's name, or `other`.
Not here: metrics (see `live.metrics`).

Half of the labels go to the first adapters that come; the other half are given out at scrapes, busiest first, to
adapters that came as `other`: to all of them while the fleet knows no more adapters than there are labels, and else
to those that came often. A label once given stays until restart: a series that comes and goes makes rates lie.
So a small fleet names all, and in a large one a rare adapter that came first cannot take a popular one's place.
"""

from lorapick.model.units import AdapterName

OTHER = "other"
BASE = "base"
"""Label of requests for the base model. vLLM refuses adapters with the base model's name."""
ENOUGH = 20
"""Requests after which an adapter in `other` may get a label."""


class AdapterLabels:
    """Gives out at most `limit` labels beside `base` and `other`."""

    __slots__ = ("_counts", "_limit", "_named")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._named: dict[AdapterName, str] = {}
        self._counts: dict[AdapterName, int] = {}
        """Requests of adapters in `other`. Bounded: only names that some pod serves are ever dispatched."""

    def of(self, adapter: AdapterName | None) -> str:
        """Label for one request; counts it."""
        if adapter is None:
            return BASE
        label = self._named.get(adapter)
        if label is not None:
            return label
        if len(self._named) < (self._limit + 1) // 2:
            self._named[adapter] = adapter
            return adapter
        self._counts[adapter] = self._counts.get(adapter, 0) + 1
        return OTHER

    @property
    def room(self) -> int:
        """Labels that are not given out yet."""
        return self._limit - len(self._named)

    def known(self, adapter: AdapterName | None) -> str:
        """Label as it is given out now; counts nothing."""
        return BASE if adapter is None else self._named.get(adapter, OTHER)

    def promote(self, known: int) -> None:
        """Give the labels that are left to the busiest in `other`; to all, when `known` adapters have room."""
        if self.room <= 0:
            return
        enough = 1 if known <= self._limit else ENOUGH
        ready = [(-count, name) for name, count in self._counts.items() if count >= enough]
        for _, name in sorted(ready)[: self.room]:
            self._named[name] = name
            del self._counts[name]
