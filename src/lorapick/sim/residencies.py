"""How long adapters stay in GPU slots, and that it adds up [R5.3].

In: loads and evictions of each pod, in order of time. Out: a histogram of finished residencies, the time-integral of
slots in use, and the check that both tell one story: residencies, those still open included, add up to slots in use
times time, so mean residency is slots over load rate. Not here: why an adapter went.
"""

from lorapick.model.units import AdapterName, PodName, Seconds
from lorapick.sim.histogram import Histogram


class Residencies:
    """Open and finished residencies of all pods."""

    def __init__(self) -> None:
        self.finished = Histogram()
        """Finished ones only: biased towards short ones; see `mean`."""
        self.loads = 0
        self._open: dict[tuple[PodName, AdapterName], Seconds] = {}
        self._used: dict[PodName, int] = {}
        self._since: dict[PodName, Seconds] = {}
        self._area: dict[PodName, Seconds] = {}

    def loaded(self, pod: PodName, adapter: AdapterName, *, now: Seconds) -> None:
        """An adapter holds a slot from now on."""
        if (pod, adapter) in self._open:
            self.evicted(pod, adapter, now=now)  # a second copy of the same name took over
        self._advance(pod, now)
        self._used[pod] = self._used.get(pod, 0) + 1
        self._open[pod, adapter] = now
        self.loads += 1

    def evicted(self, pod: PodName, adapter: AdapterName, *, now: Seconds) -> None:
        """An adapter holds its slot no longer; unknown ones left a level below the GPU."""
        since = self._open.pop((pod, adapter), None)
        if since is None:
            return
        self._advance(pod, now)
        self._used[pod] -= 1
        self.finished.add(now - since)

    def restarted(self, pod: PodName, now: Seconds) -> None:
        """Everything on the pod is gone."""
        for held_on, adapter in [key for key in self._open if key[0] == pod]:
            self.evicted(held_on, adapter, now=now)

    def _advance(self, pod: PodName, now: Seconds) -> None:
        since = self._since.get(pod, now)
        self._area[pod] = self._area.get(pod, 0.0) + self._used.get(pod, 0) * (now - since)
        self._since[pod] = now

    def slot_seconds(self, now: Seconds) -> Seconds:
        """Integral over time of slots in use, all pods."""
        for pod in [*self._since]:
            self._advance(pod, now)
        return sum(self._area.values())

    def total(self, now: Seconds) -> Seconds:
        """Sum of all residencies, those still open up to now."""
        return self.finished.total + sum(now - since for since in self._open.values())

    def mean(self, now: Seconds) -> Seconds | None:
        """Slot-seconds per load: the unbiased mean in a steady state; None: no loads."""
        return self.slot_seconds(now) / self.loads if self.loads else None

    def check(self, now: Seconds) -> None:
        """Both sums agree."""
        area, total = self.slot_seconds(now), self.total(now)
        assert abs(area - total) <= 1e-6 * max(1.0, area), f"residencies add up to {total} s, slots in use to {area} s"
