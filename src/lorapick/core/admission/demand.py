"""How often each adapter is asked for: arrivals that fade.

In: arrivals, loads begun. Out: requests per second; how long an adapter keeps a slot before others need it.
Bounded: of many adapters, those that have faded away are forgotten. Not here: what follows (`core.admission.prices`).
"""

from math import exp

from lorapick.model.units import AdapterName, Seconds

MEMORY: Seconds = 30.0
"""Time after which an arrival counts for 1/e of what it did."""
MOST = 20_000
"""Adapters remembered at once."""
LONGEST: Seconds = 600.0
"""Nobody looks further ahead than this."""


class Fading:
    """Events per second."""

    __slots__ = ("_at", "_count")

    def __init__(self, now: Seconds) -> None:
        self._count = 0.0
        self._at = now

    def happened(self, now: Seconds) -> None:
        """Once more."""
        self._count = self._count * exp((self._at - now) / MEMORY) + 1.0
        self._at = now

    def rate(self, now: Seconds) -> float:
        """Per second, as of now."""
        return self._count * exp((self._at - now) / MEMORY) / MEMORY


class Demand:
    """Arrivals by adapter, and loads of the whole fleet."""

    __slots__ = ("_arrivals", "_loads")

    def __init__(self) -> None:
        self._arrivals: dict[AdapterName, Fading] = {}
        self._loads = Fading(0.0)

    def arrived(self, name: AdapterName, *, now: Seconds) -> None:
        """One more request for an adapter."""
        found = self._arrivals.get(name)
        if found is None:
            if len(self._arrivals) >= MOST:
                self._forget(now)
            found = self._arrivals[name] = Fading(now)
        found.happened(now)

    def load_began(self, now: Seconds) -> None:
        """Some pod loads something."""
        self._loads.happened(now)

    def rate(self, name: AdapterName, *, now: Seconds) -> float:
        """Requests per second for an adapter."""
        found = self._arrivals.get(name)
        return found.rate(now) if found is not None else 0.0

    def rates(self, *, now: Seconds) -> list[tuple[AdapterName, float]]:
        """Requests per second by adapter."""
        return [(name, fading.rate(now)) for name, fading in self._arrivals.items()]

    def residence(self, slots: int, *, now: Seconds) -> Seconds:
        """How long an adapter keeps its slot on average, with so many slots; at most `LONGEST`."""
        rate = self._loads.rate(now)
        return min(LONGEST, slots / rate) if rate > 0 else LONGEST

    def _forget(self, now: Seconds) -> None:
        """The less wanted half."""
        ranked = sorted(self._arrivals, key=lambda name: self._arrivals[name].rate(now))
        for name in ranked[: len(ranked) // 2]:
            del self._arrivals[name]
