"""A shadow of an engine whose evictions follow something else than LRU, which the operator names (`Pod.eviction`).

In: what `Shadow` gets, a policy, a clock. Out: the same. Not here: the policies (see `core.retention`); which policy a
pod should have. The policy hears of a request when it is sent, of an adapter in use at its start and at its end: the
engine hears of them a little later, at the beginning and in each step, so ties may fall otherwise than there.
"""

from collections.abc import Callable, Iterator, Sequence

from lorapick.core.residency.shadow import Shadow
from lorapick.core.retention.policies import EVICTIONS
from lorapick.model.pods import Pod
from lorapick.model.retention import FactsOf, Retention, RetentionFacts
from lorapick.model.settings import LoadTimes, RetentionSettings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

LRU = "lru"


class RetainedShadow(Shadow):
    """`gpu` and `cpu` stay in LRU order, which is the order of candidates: the first of equals leaves."""

    __slots__ = ("_now", "_retention")

    def __init__(self, retention: Retention, *, clock: Callable[[], Seconds]) -> None:
        super().__init__(gpu_slots=1, cpu_slots=1, clock=clock)
        self._retention = retention
        self._now = clock

    def asked(self, name: AdapterName) -> None:
        """A request for `name` was sent here."""
        self._retention.used(name, self._now())

    def touch(self, name: AdapterName) -> bool:
        """Make `name` the newest on both levels if it is on the GPU; whether it is."""
        there = super().touch(name)
        if there:
            self._retention.touched(name, self._now())
        return there

    def victims(self, candidates: Iterator[AdapterName], count: int, *, leaves_for: Tier) -> list[AdapterName]:
        """Whoever is worth least to the policy."""
        left, chosen = [*candidates], list[AdapterName]()
        while left and len(chosen) < count:
            least = self._retention.least(left, now=self._now(), leaves_for=leaves_for)
            left.remove(least)
            chosen.append(least)
        return chosen

    def next_out(self, busy: Callable[[AdapterName], bool]) -> AdapterName | None:
        """Who would make room for a newcomer; None: everybody is busy."""
        idle = (name for name in self.gpu if not busy(name))
        return next(iter(self.victims(idle, 1, leaves_for=Tier.CPU)), None)

    def enter(self, name: AdapterName) -> None:
        """It comes into a slot."""
        super().enter(name)
        self._retention.loaded(name, self._now())

    def forget(self, name: AdapterName) -> None:
        """It left both levels."""
        super().forget(name)
        self._retention.removed(name, self._now())

    def recall(self, used: Sequence[AdapterName], busy: Callable[[AdapterName], bool]) -> dict[AdapterName, Tier]:
        """These ran since the last look, so each was on the GPU then, whoever had to leave for it."""
        moved: dict[AdapterName, Tier] = {}
        for name in used:
            moved.update(self.use(name, busy, must_fit=True) or ())
            moved[name] = Tier.GPU_IDLE
        return {name: tier for name, tier in moved.items() if tier is self.level(name)}

    def clear(self) -> None:
        """The engine restarted, and its policy with it."""
        for name in [*self.cpu]:
            self._retention.removed(name, self._now())
        super().clear()


def shadow_of(
    pod: Pod, *, settings: RetentionSettings, load_times: Callable[[], LoadTimes], clock: Callable[[], Seconds]
) -> Shadow:
    """The shadow of a pod's caches, with one slot on each level."""
    if pod.eviction == LRU:
        return Shadow(gpu_slots=1, cpu_slots=1, clock=clock)
    return RetainedShadow(EVICTIONS[pod.eviction](settings, _facts(load_times)), clock=clock)


def _facts(load_times: Callable[[], LoadTimes]) -> FactsOf:
    """What is known of every adapter alike: what its loads take. Each takes one slot, whatever its size."""

    def facts(name: AdapterName) -> RetentionFacts:
        del name
        times = load_times()
        return RetentionFacts(from_cpu=times.cpu, from_disk=times.disk)

    return facts
