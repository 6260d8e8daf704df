"""Adapters that nobody declared may use only a share of the slots [R2.6].

An A/B test that nobody told infrastructure about doubles the adapters overnight. Until somebody declares them, or they
are proven by steady use, they share a few slots, and an alert names them.

In: which names are declared, arrivals. Out: whether a name is on probation, and whether such names may take another
slot. An operator who declares nothing has no probation. Not here: the alert (see
`core.alarms`).
"""

from lorapick.core.columns import TIER_BITS, PodColumns
from lorapick.core.residency.registry import Registry
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Ratio, Seconds

PROVEN_AFTER: Seconds = 600.0
PROVEN_REQUESTS = 100
"""Both together: a name that has been asked for so often over so long is no experiment any more."""
WANTED_FOR: Seconds = 60.0
"""For so long after its last request a name's slots count as used."""
MOST = 10_000
"""Names watched at once; the one that nobody has asked for longest is forgotten, and begins anew."""

MOST_TOLD = 1_000
"""Names that are counted when somebody asks who is on probation."""

_LOADING = int(Tier.LOADING)


def _watched(since: Seconds, count: int, *, now: Seconds) -> bool:
    return now - since < PROVEN_AFTER or count < PROVEN_REQUESTS


class Probation:
    """Names under watch."""

    __slots__ = ("_columns", "_registry", "_seen", "share")

    def __init__(self, columns: PodColumns, registry: Registry, *, share: Ratio) -> None:
        self._columns, self._registry = columns, registry
        self.share = share
        """Of all slots, for all names on probation together; at least one slot."""
        self._seen: dict[AdapterName, tuple[Seconds, int, Seconds]] = {}
        """When a name was first asked for, how often since, and when last; who was asked for last is last."""

    def arrived(self, name: AdapterName, *, now: Seconds) -> bool:
        """One request for it; return whether the name is on probation."""
        if not self._registry.any_declared or self._registry.declared(name):
            self._seen.pop(name, None)
            return False
        since, count, _ = self._seen.pop(name, (now, 0, now))
        if len(self._seen) >= MOST:
            del self._seen[next(iter(self._seen))]
        self._seen[name] = (since, count + 1, now)
        return _watched(since, count + 1, now=now)

    def holds(self, name: AdapterName, *, now: Seconds) -> bool:
        """Whether a name is on probation."""
        found = self._seen.get(name)
        if found is None or self._registry.declared(name):
            return False
        since, count, _ = found
        return _watched(since, count, now=now)

    def names(self, now: Seconds) -> list[AdapterName]:
        """All names on probation, in the order in which they came; at one time, by name."""
        names = [name for name in self._seen if self.holds(name, now=now)]
        return sorted(names, key=lambda name: (self._seen[name][0], name))

    def asked_since(self, time: Seconds, *, now: Seconds) -> list[AdapterName]:
        """At most `MOST_TOLD` names on probation that were asked for since `time`; those asked for most come first."""
        names: list[AdapterName] = []
        for name in reversed(self._seen):
            if self._seen[name][2] < time or len(names) >= MOST_TOLD:
                break
            if self.holds(name, now=now):
                names.append(name)
        return sorted(names, key=lambda name: (-self._seen[name][1], name))

    def full(self, slots: int, *, now: Seconds) -> bool:
        """Whether those on probation use all the slots that they may.

        One that nobody has asked for in the last minute uses none: another may have its slot.
        """
        most, used = max(1, int(self.share * slots)), 0
        for name in reversed(self._seen):
            if now - self._seen[name][2] > WANTED_FOR:
                break
            codes = self._columns.adapters.get(name)
            if codes is not None and self.holds(name, now=now):
                used += sum((code & TIER_BITS) >= _LOADING for code in codes[: self._columns.rows])
                if used >= most:
                    return True
        return False
