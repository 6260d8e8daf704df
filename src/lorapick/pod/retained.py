"""Memory levels from which a retention policy says who leaves, instead of LRU.

In: what `Levels` gets, and a policy. Out: the same. Not here: policies, which are handed in.

The policy is asked only about those who may leave at all: nobody with running requests, nobody who is part of the load
in progress or folded into the weights. From host memory those may leave that hold no slot, as in `Levels`.
"""

from collections.abc import Iterable, Iterator

from lorapick.model.retention import Retention
from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds
from lorapick.pod.lru import AdapterCopy, Levels


class RetainedLevels(Levels):
    """`gpu` and `host` stay in LRU order, which is the order of candidates: the first of equals leaves."""

    __slots__ = ("now", "retention")

    def __init__(self, slots: int, host_room: int, *, retention: Retention, now: Seconds) -> None:
        super().__init__(slots, host_room)
        self.retention = retention
        self.now = now
        """Time of what is happening; kept by the owner."""

    def used(self, adapter: AdapterCopy) -> None:
        """A request for it begins to run."""
        self.retention.used(adapter.name, self.now)

    def touch(self, adapter: AdapterCopy) -> None:
        """A request of it joined or left the batch."""
        super().touch(adapter)
        self.retention.touched(adapter.name, self.now)

    def settle(self) -> None:
        """The load ended well."""
        adapter = self.loading
        super().settle()
        assert adapter is not None, "a load has just ended"
        self.retention.loaded(adapter.name, self.now)

    def idle(self) -> Iterator[AdapterCopy]:
        """Who may leave the GPU, whoever is worth least first."""
        return self._least_first(super().idle(), leaves_for=Tier.CPU)

    def drop(self, adapter: AdapterCopy) -> None:
        """It has left both levels."""
        super().drop(adapter)
        self.retention.removed(adapter.name, self.now)

    def _free_host_room(self) -> AdapterCopy:
        alone = (copy for copy in self.host if not (copy.on_gpu or copy.loading))
        demoted = next(self._least_first(alone, leaves_for=Tier.DISK))
        self.drop(demoted)
        return demoted

    def _least_first(self, copies: Iterable[AdapterCopy], *, leaves_for: Tier) -> Iterator[AdapterCopy]:
        left = list(copies)
        while left:
            names = [copy.name for copy in left]
            # A name comes twice while a copy from before an unload is there; that one is older, and comes first.
            least = self.retention.least(names, now=self.now, leaves_for=leaves_for)
            yield left.pop(names.index(least))
