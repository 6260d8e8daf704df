"""Which adapters get a metric label of their own.

In: the adapter of each request. Out: a label: the adapter's name, or `other`.
Not here: metrics (see `live.metrics`).

Half of the labels go to the first adapters that come; the other half are given out at scrapes, busiest first, to
adapters that came often enough as `other`. A label once given stays until restart: a series that comes and goes
makes rates lie. So a fleet with few adapters names all that matter, and in a large one a rare adapter that
happened to come first cannot take the place of a popular one.
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

    def promote(self) -> None:
        """Give the labels that are left to the busiest in `other`."""
        room = self._limit - len(self._named)
        if room <= 0:
            return
        ready = [(-count, name) for name, count in self._counts.items() if count >= ENOUGH]
        for _, name in sorted(ready)[:room]:
            self._named[name] = name
            del self._counts[name]
