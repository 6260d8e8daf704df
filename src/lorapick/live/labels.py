"""Which adapters get a metric label of their own.

In: the adapter of each request, looks at scrapes. Out: a label: the adapter's name, or `other`; at a look also the
names that lost theirs. Not here: metrics (see `live.metrics`).

Half of the labels go to the first adapters that come; the other half are given out at scrapes, busiest first, to
adapters that came as `other`: to all of them while the fleet knows no more adapters than there are labels, and else
to those that came often. So a small fleet names all, and a rare adapter that came first cannot take a popular one's
place for good: when no label is left, an adapter that has had less than half of a newcomer's traffic at each look of
ten minutes gives it its label. Its series end and it is counted in `other` from then on, so no counter ever falls.
"""

from collections.abc import Iterable

from lorapick.model.units import AdapterName, Seconds

OTHER = "other"
BASE = "base"
"""Label of requests for the base model. vLLM refuses adapters with the base model's name."""
ENOUGH = 20
"""Requests after which an adapter in `other` may get a label that nobody has."""
HALF_LIFE: Seconds = 600.0
"""After which a request counts half as traffic."""
LEAST_TRAFFIC = 5.0
"""Of a newcomer, below which it takes nobody's label."""
WEAKER = 0.5
"""Of the newcomer's traffic: who has less may lose the label to it."""
WEAK_FOR: Seconds = 600.0
"""For how long that must be so: a series that comes and goes makes rates lie."""


class _Traffic:
    """What came for one adapter."""

    __slots__ = ("recent", "requests", "weight")

    def __init__(self) -> None:
        self.requests = 0
        """Since it has been in `other`, or has had its label."""
        self.recent = 0
        """Of these, those since the last look."""
        self.weight = 0.0
        """All requests up to the last look, those of long ago for less."""


class AdapterLabels:
    """Gives out at most `limit` labels beside `base` and `other`."""

    __slots__ = ("_limit", "_looked", "_named", "_traffic", "_weak")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._named: dict[AdapterName, str] = {}
        self._traffic: dict[AdapterName, _Traffic] = {}
        """Bounded: only names that some pod serves are ever dispatched."""
        self._weak: dict[AdapterName, Seconds] = {}
        """Since when an adapter with a label has had less traffic than a newcomer."""
        self._looked: Seconds | None = None

    def of(self, adapter: AdapterName | None) -> str:
        """Label for one request; counts it."""
        if adapter is None:
            return BASE
        traffic = self._traffic.get(adapter)
        if traffic is None:
            traffic = self._traffic[adapter] = _Traffic()
        traffic.requests += 1
        traffic.recent += 1
        label = self._named.get(adapter)
        if label is not None:
            return label
        if len(self._named) < (self._limit + 1) // 2:
            self._named[adapter] = adapter
            return adapter
        return OTHER

    @property
    def room(self) -> int:
        """Labels that are not given out."""
        return self._limit - len(self._named)

    def known(self, adapter: AdapterName | None) -> str:
        """Label as it is given out now; counts nothing."""
        return BASE if adapter is None else self._named.get(adapter, OTHER)

    def still(self, label: str) -> str:
        """A label of a while ago as it is now: `other` when its adapter has lost it."""
        return label if label == BASE else self._named.get(label, OTHER)

    def look(self, known: int, *, now: Seconds) -> list[AdapterName]:
        """Give out labels anew, where the fleet knows so many adapters.

        Returns:
            Names that have no label any more: their series are to end.
        """
        self._fade(now)
        if self.room > 0:
            self._fill(known)
        return self._exchange(now) if self.room <= 0 else []

    def _fade(self, now: Seconds) -> None:
        share = 1.0 if self._looked is None else 0.5 ** ((now - self._looked) / HALF_LIFE)
        self._looked = now
        for traffic in self._traffic.values():
            traffic.weight = traffic.weight * share + traffic.recent
            traffic.recent = 0

    def _fill(self, known: int) -> None:
        """Labels that are left go to the busiest in `other`; to all, when `known` adapters have room."""
        enough = 1 if known <= self._limit else ENOUGH
        ready = [(-traffic.requests, name) for name, traffic in self._unnamed() if traffic.requests >= enough]
        for _, name in sorted(ready)[: self.room]:
            self._give(name)

    def _exchange(self, now: Seconds) -> list[AdapterName]:
        """The weakest that have a label against the busiest that have none, one by one."""
        comers = sorted((-traffic.weight, name) for name, traffic in self._unnamed() if traffic.weight >= LEAST_TRAFFIC)
        holders = sorted((self._traffic[name].weight, name) for name in self._named)
        before, self._weak, lost = self._weak, {}, []
        for (least, holder), (traffic, comer) in zip(holders, comers, strict=False):
            if least >= WEAKER * -traffic:
                break
            since = before.get(holder, now)
            if now - since < WEAK_FOR:
                self._weak[holder] = since
                continue
            del self._named[holder]
            self._traffic[holder].requests = 0
            self._give(comer)
            lost.append(holder)
        return lost

    def _unnamed(self) -> Iterable[tuple[AdapterName, _Traffic]]:
        return ((name, traffic) for name, traffic in self._traffic.items() if name not in self._named)

    def _give(self, name: AdapterName) -> None:
        self._named[name] = name
        self._traffic[name].requests = 0
