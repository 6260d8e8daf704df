"""How long adapters stay in their slots, how often they come and go, for each pod.

In: changes of tiers, as believed. Out: rates and quantiles of one pod; slots and evictions obey conservation: mean
residency is slots in use / evictions per second. Not here: what is where now (see `core.residency`), metrics (they
count for themselves, from the same changes).

A residency begins when a load begins, since that takes the slot, and ends when the adapter leaves it. Restarts end
residencies that no eviction ended: they count nowhere.
"""

from lorapick.core.signals.windows import Durations, Sliding
from lorapick.model.signals import RATE_WINDOW, RESIDENCY_WINDOW, Change
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

_LOADING = Tier.LOADING


class PodStays:
    """One pod."""

    __slots__ = ("begun", "evictions", "last_use", "loads", "stays", "swaps", "unused")

    def __init__(self) -> None:
        self.begun: dict[AdapterName, Seconds] = {}
        """Residencies that have not ended, as far as their begin was seen."""
        self.last_use: dict[AdapterName, Seconds] = {}
        """End of the last request for an adapter that is in a slot."""
        self.loads = Sliding(RATE_WINDOW)
        self.swaps = Sliding(RATE_WINDOW)
        self.evictions = Sliding(RESIDENCY_WINDOW)
        self.stays = Durations(RESIDENCY_WINDOW)
        self.unused = Durations(RESIDENCY_WINDOW)
        """From an adapter's last request to its eviction."""

    def used(self, name: AdapterName, *, now: Seconds) -> None:
        """A request for the adapter ended here."""
        self.last_use[name] = now

    def take(self, change: Change) -> Seconds | None:
        """Follow one change; return the length of the residency that an eviction ended, if one did."""
        before, after, name = change.before, change.after, change.adapter
        if after >= _LOADING:
            if before < _LOADING:
                self.begun[name] = change.t
                self.loads.add(change.t)
                if change.waited_for:
                    self.swaps.add(change.t)
            return None
        if before < _LOADING:
            return None
        begun, last = self.begun.pop(name, change.since), self.last_use.pop(name, None)
        if change.restart or before is _LOADING:
            return None  # nothing was evicted: a load failed, was given up, or its pod is gone
        self.evictions.add(change.t)
        stay = change.t - begun
        self.stays.add(stay, now=change.t)
        if last is not None:
            self.unused.add(change.t - last, now=change.t)
        return stay

    def evictions_per_second(self, now: Seconds, *, watched: Seconds) -> float:
        """Over the residency window, or as much of it as somebody has watched."""
        return self.evictions.total(now) / min(RESIDENCY_WINDOW, max(RATE_WINDOW, watched))
