"""How long adapters stay in GPU slots, as their loads and evictions tell it [R5.3].

In: loads and evictions of each pod, in order of time. Out: a histogram of finished residencies, and the check against
what the pod itself has: the same adapters are there, and residencies, those still open included, add up to its slots
in use times time, so mean residency is slots over load rate. Not here: the pod's own account (see `sim.simpod`), why an
adapter went.
"""

from collections.abc import Iterable

from lorapick.model.units import AdapterName, PodName, Seconds
from lorapick.sim.histogram import Histogram


class Residencies:
    """Open and finished residencies of all pods."""

    def __init__(self) -> None:
        self.finished = Histogram()
        """Finished ones only: biased towards short ones; the unbiased mean is slots in use x time / loads."""
        self._open: dict[PodName, dict[AdapterName, list[Seconds]]] = {}
        """Since when; more than one when copies of one name, from before and after an unload, hold a slot each."""
        self._closed: dict[PodName, Seconds] = {}
        """Sum of the finished ones."""

    def loaded(self, pod: PodName, adapter: AdapterName, *, now: Seconds) -> None:
        """An adapter holds a slot from now on."""
        self._open.setdefault(pod, {}).setdefault(adapter, []).append(now)

    def evicted(self, pod: PodName, adapter: AdapterName, *, now: Seconds) -> None:
        """An adapter, of several copies the oldest, holds its slot no longer.

        Raises:
            AssertionError: it held none.
        """
        there = self._open.get(pod, {})
        assert adapter in there, f"{pod}: {adapter} left a slot at {now} s that it did not hold"
        since = there[adapter].pop(0)
        if not there[adapter]:
            del there[adapter]
        self._closed[pod] = self._closed.get(pod, 0.0) + now - since
        self.finished.add(now - since)

    def restarted(self, pod: PodName, now: Seconds) -> None:
        """Everything on the pod is gone."""
        for adapter in self.open_on(pod):
            self.evicted(pod, adapter, now=now)

    def open_on(self, pod: PodName) -> list[AdapterName]:
        """Adapters that hold a slot there, each as often as it does."""
        return [adapter for adapter, since in self._open.get(pod, {}).items() for _ in since]

    def total(self, pod: PodName, now: Seconds) -> Seconds:
        """Sum of the residencies on a pod, those still open up to now."""
        still = sum(now - since for each in self._open.get(pod, {}).values() for since in each)
        return self._closed.get(pod, 0.0) + still

    def check(self, pod: PodName, *, held: Iterable[AdapterName], slot_seconds: Seconds, now: Seconds) -> None:
        """What was told of a pod is what it has: `held` in its slots now, `slot_seconds` since its begin.

        Raises:
            AssertionError: it is not.
        """
        told, there = sorted(self.open_on(pod)), sorted(held)
        assert told == there, f"{pod}: residencies are open of {told} at {now} s, its slots hold {there}"
        total = self.total(pod, now)
        assert abs(total - slot_seconds) <= 1e-6 * max(1.0, slot_seconds), (
            f"{pod}: residencies add up to {total} s, slots in use to {slot_seconds} s"
        )
