"""One pool of pages for adapters and KV blocks, as S-LoRA has it (arXiv 2311.03285).

In: who needs pages. Out: whether there are enough, once idle adapters have left. Not here: KV blocks (`kv`, whose
number of blocks is what the adapters leave), who runs.

An adapter takes ceil(size / bytes per page) pages from the moment it is sent for until it leaves the GPU. Running
requests and the adapters they need come first; idle adapters leave, least recently used first, only when what is
needed exceeds all that is free or merely cached; cached prefix blocks have what is left. Nobody is preempted for an
adapter: a request whose adapter does not fit waits. There are no slots: `max_cpu_loras` alone bounds the adapters on
the GPU. Freeing pages costs nothing (no deallocation, no fragmentation).
"""

from lorapick.model.tiers import Tier
from lorapick.model.units import Bytes, Seconds
from lorapick.pod.batch import Batch
from lorapick.pod.kv import KvPool
from lorapick.pod.ledger import Ledger
from lorapick.pod.lru import AdapterCopy, Levels
from lorapick.pod.values import AdapterEvicted, PodConfig, PodEvent


def pages_for(size: Bytes, config: PodConfig) -> int:
    """Pages that an adapter takes."""
    return -(-size // (config.kv_bytes_per_token * config.block_size))


class Pages:
    """The adapters' part of the pool."""

    __slots__ = ("_batch", "_config", "_events", "_kv", "_ledger", "_levels")

    def __init__(
        self, config: PodConfig, levels: Levels, *, kv: KvPool, batch: Batch, ledger: Ledger, events: list[PodEvent]
    ) -> None:
        """`events` is the list that evictions are appended to."""
        self._config = config
        self._levels = levels
        self._kv = kv
        self._batch = batch
        self._ledger = ledger
        self._events = events

    def make_room(self, adapter: AdapterCopy | None, lack: int, t: Seconds) -> bool:
        """Make room for an adapter, if it has no pages, and for `lack` blocks (negative: so many are free) besides.

        False: that can not be done, and nothing has changed. True: take the blocks, then `claim` the pages.
        """
        lack += self._missing(adapter)
        if lack > 0:
            idle = [copy for copy in self._levels.idle() if copy is not adapter]
            if lack > sum(copy.pages for copy in idle):
                return False
            for copy in idle:
                if lack <= 0:
                    break
                lack -= copy.pages
                self._evict(copy, t)
        return True

    def claim(self, adapter: AdapterCopy | None) -> None:
        """Give an adapter its pages, if it has none; there must be room for them."""
        pages = self._missing(adapter)
        if adapter is not None and pages:
            adapter.pages = pages
            self._kv.resize(self._kv.blocks - pages, self._batch.steps)

    def _missing(self, adapter: AdapterCopy | None) -> int:
        return 0 if adapter is None or adapter.pages else pages_for(adapter.spec.size, self._config)

    def evict_idle(self, t: Seconds) -> bool:
        """Evict the least recently used idle adapter; False: there is none."""
        idle = next(self._levels.idle(), None)
        if idle is not None:
            self._evict(idle, t)
        return idle is not None

    def release(self, adapter: AdapterCopy) -> None:
        """An adapter has left the GPU, or did not arrive."""
        kv, steps = self._kv, self._batch.steps
        kv.trim(steps)  # what was needed until now is not cached any more
        kv.resize(kv.blocks + adapter.pages, steps)
        adapter.pages = 0

    def _evict(self, adapter: AdapterCopy, t: Seconds) -> None:
        self._levels.evict(adapter)
        self.release(adapter)
        self._ledger.evictions += 1
        self._events.append(AdapterEvicted(t=t, adapter=adapter.name, tier=Tier.CPU))
