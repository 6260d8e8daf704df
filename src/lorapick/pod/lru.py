"""Where adapter weights are: GPU slots over host memory over disk, both memory levels in LRU order.

In: which adapter is used, and which is to get a slot. Out: who has to leave for it.
Not here: how long anything takes (`swaps`), who runs (`batch`).

As in vLLM the adapters in GPU slots are a subset of those in host memory. vLLM touches the adapters of a batch at
every step; here an adapter is touched when a request of it joins or leaves the batch, which gives the same order among
those that may be evicted, since one with running requests never is.
"""

from collections.abc import Iterator

from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Bytes
from lorapick.pod.values import AdapterSpec


class AdapterCopy:
    """The weights behind one of the engine's internal ids.

    A name that is unloaded and loaded again gets a second copy; the first stays in both levels until pushed out.
    """

    __slots__ = (
        "folded",
        "loading",
        "loads",
        "name",
        "on_gpu",
        "on_host",
        "pages",
        "queued",
        "salt",
        "seats",
        "spec",
        "unnamed",
        "wanted",
    )

    def __init__(self, spec: AdapterSpec, salt: int) -> None:
        self.spec = spec
        self.name: AdapterName = spec.name
        self.salt = salt
        """Keeps the KV blocks of different adapters apart."""
        self.seats = 0
        """Requests of it in the batch."""
        self.queued = 0
        """Requests of it that wait."""
        self.pages = 0
        """Pages of a unified pool that it holds."""
        self.folded = False
        """Part of the base weights now, and needed to take it out of them again."""
        self.loads = 0
        """Loads begun; a request that saw this number change has waited for one."""
        self.on_gpu = False
        self.on_host = False
        self.loading = False
        self.wanted = False
        """Part of the load operation in progress, so not its victim."""
        self.unnamed = False
        """Its name is to be registered when it has loaded."""

    @property
    def size(self) -> Bytes:
        """Bytes of its weights."""
        return self.spec.size

    @property
    def tier(self) -> Tier:
        """Where it is."""
        if self.loading:
            return Tier.LOADING
        if self.on_gpu:
            return Tier.GPU_SERVING if self.seats else Tier.GPU_IDLE
        return Tier.CPU if self.on_host else Tier.DISK


class Levels:
    """The two memory levels. `gpu` and `host` are in LRU order, least recently used first."""

    __slots__ = ("gpu", "host", "host_room", "loading", "slots")

    def __init__(self, slots: int, host_room: int) -> None:
        self.slots = slots
        self.host_room = host_room
        self.gpu: dict[AdapterCopy, None] = {}
        self.host: dict[AdapterCopy, None] = {}
        self.loading: AdapterCopy | None = None
        """Has a slot reserved and is on its way into it."""

    def touch(self, adapter: AdapterCopy) -> None:
        """Make an adapter in a GPU slot the most recently used one of both levels."""
        gpu, host = self.gpu, self.host
        del gpu[adapter], host[adapter]
        gpu[adapter] = host[adapter] = None

    def reserve(self, adapter: AdapterCopy) -> tuple[AdapterCopy | None, AdapterCopy | None]:
        """Take a slot, and room in host memory, for a load that begins.

        Returns who left its GPU slot and who left host memory for it (possibly the same copy). The caller sees to it
        that a slot is free or can be freed.
        """
        assert self.loading is None, f"{adapter.name} may not load beside {self.loading}"
        assert not adapter.on_gpu, f"{adapter.name} already holds a slot"
        victim = self._free_slot() if len(self.gpu) >= self.slots else None
        demoted = None
        if not adapter.on_host:
            if len(self.host) >= self.host_room:
                demoted = self._free_host_room()
            self.host[adapter] = None
        self.loading = adapter
        adapter.loading = True
        return victim, demoted

    def fetch(self, adapter: AdapterCopy) -> AdapterCopy | None:
        """Bring an adapter into host memory; returns who left it for that.

        It stays on disk when all who are there hold a slot, or are on their way into one.
        """
        demoted = None
        if len(self.host) >= self.host_room:
            if all(copy.on_gpu or copy.loading for copy in self.host):
                return None
            demoted = self._free_host_room()
        self.host[adapter] = None
        adapter.on_host = True
        return demoted

    def settle(self) -> None:
        """The load ended well: its adapter holds the slot."""
        adapter = self._end_loading()
        del self.host[adapter]
        self.gpu[adapter] = self.host[adapter] = None
        adapter.on_gpu = adapter.on_host = True

    def give_up(self) -> None:
        """The load failed: the slot is free again, and so is room taken in host memory."""
        adapter = self._end_loading()
        if not adapter.on_host:
            del self.host[adapter]

    def _end_loading(self) -> AdapterCopy:
        adapter = self.loading
        assert adapter is not None, "no load is in progress"
        self.loading = None
        adapter.loading = False
        return adapter

    def idle(self) -> Iterator[AdapterCopy]:
        """Who may leave the GPU, least recently used first."""
        return (copy for copy in self.gpu if not (copy.seats or copy.wanted or copy.folded))

    def evict(self, adapter: AdapterCopy) -> None:
        """Take an adapter off the GPU; it stays in host memory."""
        del self.gpu[adapter]
        adapter.on_gpu = False

    def drop(self, adapter: AdapterCopy) -> None:
        """Take an adapter out of host memory; it holds no slot."""
        del self.host[adapter]
        adapter.on_host = False

    def _free_slot(self) -> AdapterCopy:
        victim = next(self.idle())
        self.evict(victim)
        return victim

    def _free_host_room(self) -> AdapterCopy:
        demoted = next(copy for copy in self.host if not (copy.on_gpu or copy.loading))
        self.drop(demoted)
        return demoted
