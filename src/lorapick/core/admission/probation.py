"""Adapters that nobody declared may use only a share of the slots [R2.6].

An A/B test that nobody told infrastructure about doubles the adapters overnight. Until somebody declares them, or they
are proven by steady use, they share a few slots, and an alert names them.

In: which names are declared, arrivals. Out: whether a name is on probation, and whether such names may take another
slot. An operator who declares nothing has no probation. Not here: alerts (see `core.deciding`).
"""

from lorapick.core.columns import TIER_BITS, PodColumns
from lorapick.core.residency.registry import Registry
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Ratio, Seconds

PROVEN_AFTER: Seconds = 600.0
PROVEN_REQUESTS = 100
"""Both together: a name that has been asked for so often over so long is no experiment any more."""
MOST = 10_000
"""Names watched at once; the oldest is forgotten, and begins anew."""

_LOADING = int(Tier.LOADING)


class Probation:
    """Names under watch."""

    __slots__ = ("_columns", "_registry", "_seen", "share")

    def __init__(self, columns: PodColumns, registry: Registry, *, share: Ratio) -> None:
        self._columns, self._registry = columns, registry
        self.share = share
        """Of all slots, for all names on probation together; at least one slot."""
        self._seen: dict[AdapterName, tuple[Seconds, int]] = {}
        """When a name was first asked for, and how often since."""

    def arrived(self, name: AdapterName, *, now: Seconds) -> None:
        """One request for it."""
        if not self._registry.any_declared or self._registry.declared(name):
            self._seen.pop(name, None)
            return
        if name not in self._seen and len(self._seen) >= MOST:
            del self._seen[next(iter(self._seen))]
        since, count = self._seen.get(name, (now, 0))
        self._seen[name] = (since, count + 1)

    def holds(self, name: AdapterName, *, now: Seconds) -> bool:
        """Whether a name is on probation."""
        found = self._seen.get(name)
        if found is None or self._registry.declared(name):
            return False
        since, count = found
        return now - since < PROVEN_AFTER or count < PROVEN_REQUESTS

    def names(self, now: Seconds) -> list[AdapterName]:
        """All names on probation, in the order in which they came."""
        return [name for name in self._seen if self.holds(name, now=now)]

    def full(self, slots: int, *, now: Seconds) -> bool:
        """Whether those on probation use all the slots that they may."""
        used, rows = 0, self._columns.rows
        for name in self.names(now):
            codes = self._columns.adapters.get(name)
            if codes is not None:
                used += sum((code & TIER_BITS) >= _LOADING for code in codes[:rows])
        return used >= max(1, int(self.share * slots))
