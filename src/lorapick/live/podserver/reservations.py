"""Adapters that are kept for requests which other pods prefill at the moment.

In: reservations. Out: who leaves a pod's adapter memory: as in vLLM the least recently used, but reserved ones last.
Not here: the memory (see `pod.retained`), who reserves (see `sidecar`).

Requests that run come first: where every adapter that may leave is reserved, one of them does.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds


class Wait:
    """A request's, for the slot of its adapter: until the engine has given it a seat."""

    __slots__ = ("adapter", "over")

    def __init__(self, adapter: AdapterName) -> None:
        self.adapter = adapter
        self.over = False


class Reservations:
    """A retention policy, and what it has been told to keep."""

    name = "reserved-last"

    def __init__(self) -> None:
        self._kept: Counter[AdapterName] = Counter()
        self.broken = 0
        """Times that a reserved adapter had to leave."""
        self._awaited: Counter[AdapterName] = Counter()
        self.left = 0
        """Times that an adapter left its slot while somebody waited for it, whether or not this decided who leaves."""

    @contextmanager
    def reserved(self, adapter: AdapterName) -> Iterator[Wait]:
        """Keep an adapter for the length of a block; blocks of one adapter may overlap."""
        wait = Wait(adapter)
        self._kept[adapter] += 1
        self._awaited[adapter] += 1
        try:
            yield wait
        finally:
            self.seated(wait)
            self._kept[adapter] -= 1
            if not self._kept[adapter]:
                del self._kept[adapter]

    def evicted(self, adapter: AdapterName, *, leaves_for: Tier) -> None:
        """An adapter left its slot (for host memory), or host memory."""
        self.left += leaves_for is Tier.CPU and self._awaited[adapter] > 0

    def seated(self, wait: Wait) -> None:
        """The engine runs it, and keeps its adapter itself; or it will never run."""
        self._awaited[wait.adapter] -= not wait.over
        wait.over = True

    def used(self, adapter: AdapterName, now: Seconds) -> None:
        """Candidates come in the order of their use: nothing to remember."""

    def touched(self, adapter: AdapterName, now: Seconds) -> None:
        """Nothing to remember."""

    def loaded(self, adapter: AdapterName, now: Seconds) -> None:
        """Nothing to remember."""

    def removed(self, adapter: AdapterName, now: Seconds) -> None:
        """Nothing to remember."""

    def worth(self, adapter: AdapterName, *, now: Seconds, leaves_for: Tier = Tier.CPU) -> float:
        """1 for what is reserved, 0 for the rest."""
        del now, leaves_for
        return float(adapter in self._kept)

    def least(self, candidates: Sequence[AdapterName], *, now: Seconds, leaves_for: Tier = Tier.CPU) -> AdapterName:
        """The first that is not reserved."""
        del now, leaves_for
        for candidate in candidates:
            if candidate not in self._kept:
                return candidate
        self.broken += 1
        return candidates[0]

    def victim(
        self, candidates: Sequence[AdapterName], *, now: Seconds, incoming: AdapterName, leaves_for: Tier = Tier.CPU
    ) -> AdapterName | None:
        """As `least`; None: only reserved ones could leave, and `incoming` is not."""
        if incoming not in self._kept and all(candidate in self._kept for candidate in candidates):
            return None
        return self.least(candidates, now=now, leaves_for=leaves_for)
