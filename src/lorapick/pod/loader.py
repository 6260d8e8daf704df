"""Load operations of a pod: one adapter after another is brought into a GPU slot.

In: the adapters of an operation, the time at which the load in progress ends. Out: that load, and events.
Not here: when an operation begins and what the batch does meanwhile (`machine`), lengths of phases (`swaps`).
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds
from lorapick.pod.ledger import Ledger
from lorapick.pod.lru import AdapterCopy, Levels
from lorapick.pod.swaps import Load
from lorapick.pod.unified import Pages
from lorapick.pod.values import AdapterEvicted, AdapterUnloaded, PodConfig, PodEvent, SwapEnded, SwapFailed, SwapStarted

LOAD_FAILED = "the adapter's weights could not be loaded"

IsWaitedFor: TypeAlias = Callable[[AdapterCopy], bool]


class Loader:
    """The memory levels and what is on its way into them."""

    __slots__ = (
        "_config",
        "_draw",
        "_events",
        "_ledger",
        "arrived",
        "leaving",
        "levels",
        "load",
        "orders",
        "pages",
        "queue",
        "wanted",
    )

    def __init__(
        self,
        config: PodConfig,
        slots: int,
        draw: Callable[[], float] | None,
        *,
        ledger: Ledger,
        events: list[PodEvent],
    ) -> None:
        """`slots` adapters at most on the GPU; `events` is the list that the loader appends to."""
        self._config = config
        self._draw = draw
        self._ledger = ledger
        self._events = events
        self.levels = Levels(slots, config.limits.max_cpu_loras)
        self.pages: Pages | None = None
        """None: memory is in slots."""
        self.orders: list[AdapterCopy] = []
        """Explicit loads that have not begun."""
        self.load: Load | None = None
        """The load in progress."""
        self.queue: list[AdapterCopy] = []
        """Further loads of the operation in progress."""
        self.wanted: list[AdapterCopy] = []
        """What the operation in progress must not push out."""
        self.leaving: list[AdapterCopy] = []
        """Unloaded by name; their weights go when nobody uses them any more."""
        self.arrived: list[AdapterCopy] = []
        """Copies whose names are to be registered now; for the front end, which empties it."""

    def pending(self) -> list[AdapterCopy]:
        """Everything that is ordered, loading or about to."""
        return [*([self.load.adapter] if self.load is not None else []), *self.queue, *self.orders]

    def open_orders(self) -> bool:
        """Drop the orders for what a request has brought in meanwhile; whether any are left."""
        if self.orders:
            self.orders = [adapter for adapter in self.orders if not adapter.on_gpu]
        return bool(self.orders)

    def take_orders(self, most: int) -> list[AdapterCopy]:
        """Remove and return up to `most` orders."""
        taken = self.orders[: max(0, most)]
        del self.orders[: len(taken)]
        return taken

    def begin(
        self, adapters: Sequence[AdapterCopy], t: Seconds, *, waited: IsWaitedFor, drained: Seconds = 0.0
    ) -> Load:
        """Begin an operation; `drained` is the length of the drain before it.

        Adapters that hold a slot are not loaded, but kept. Returns the first load.
        """
        self.wanted = list(adapters)
        for adapter in adapters:
            adapter.wanted = True
        self.queue = [adapter for adapter in adapters if not adapter.on_gpu]
        return self.begin_load(t, waited=waited, drained=drained)

    def begin_load(self, t: Seconds, *, waited: IsWaitedFor, drained: Seconds = 0.0) -> Load:
        """Begin the operation's next load."""
        adapter = self.queue.pop(0)
        tier_from = adapter.tier
        victim, demoted = self.levels.reserve(adapter)
        load = Load(adapter, tier_from, start=t, waited=waited(adapter))
        load.drain = drained
        load.plan(self._config.swap, victim=victim if self.pages is None else None, fails=self._fails())
        adapter.loads += 1
        self.load = load
        self._events.append(SwapStarted(t=t, adapter=adapter.name, tier_from=tier_from, waited=load.waited))
        if victim is not None:
            if self.pages is not None:
                self.pages.release(victim)
            self._ledger.evictions += 1
            self._events.append(AdapterEvicted(t=t, adapter=victim.name, tier=Tier.CPU))
        if demoted is not None:
            self._events.append(AdapterEvicted(t=t, adapter=demoted.name, tier=Tier.DISK))
        return load

    def _fails(self) -> bool:
        share = self._config.load_failure_share
        return share > 0 and self._draw is not None and self._draw() < share

    def end_load(self, t: Seconds) -> Load:
        """End the load in progress, well or badly, and return it."""
        load, self.load = self.load, None
        assert load is not None, "no load is in progress"
        self._ledger.charge_load(load, t)
        if load.fails:
            self.levels.give_up()
            if self.pages is not None:
                self.pages.release(load.adapter)
            self._ledger.load_failures += 1
            self._events.append(SwapFailed(t=t, adapter=load.adapter.name, why=LOAD_FAILED))
        else:
            self.levels.settle()
            self._settled(load, t)
        return load

    def _settled(self, load: Load, t: Seconds) -> None:
        if load.adapter.unnamed:
            self.arrived.append(load.adapter)
        self._ledger.loads += 1
        self._ledger.swaps += load.waited
        self._events.append(
            SwapEnded(
                t=t,
                adapter=load.adapter.name,
                tier_from=load.tier_from,
                waited=load.waited,
                drain=load.drain,
                deallocation=load.deallocation,
                transfer=load.transfer,
                initialisation=load.initialisation,
                warm_up=load.warm_up,
            )
        )

    def fetch(self, adapter: AdapterCopy, t: Seconds) -> None:
        """Bring an adapter into host memory, unless it is there."""
        if not adapter.on_host and not adapter.loading:
            demoted = self.levels.fetch(adapter)
            if demoted is not None:
                self._events.append(AdapterEvicted(t=t, adapter=demoted.name, tier=Tier.DISK))

    def unused(self) -> list[AdapterCopy]:
        """Those that were unloaded and that nobody uses any more."""
        coming = self.pending()
        return [
            copy
            for copy in self.leaving
            if not (copy.seats or copy.queued or copy.wanted or copy.folded or copy in coming)
        ]

    def let_go(self, t: Seconds) -> None:
        """Drop the weights of those."""
        for copy in self.unused():
            self.leaving.remove(copy)
            if copy.on_gpu:
                self.levels.evict(copy)
                if self.pages is not None:
                    self.pages.release(copy)
                self._ledger.evictions += 1
                self._events.append(AdapterEvicted(t=t, adapter=copy.name, tier=Tier.CPU))
            if copy.on_host:
                self.levels.drop(copy)
                self._events.append(AdapterEvicted(t=t, adapter=copy.name, tier=Tier.DISK))
            self._events.append(AdapterUnloaded(t=t, adapter=copy.name))

    def end(self) -> None:
        """End the operation."""
        for adapter in self.wanted:
            adapter.wanted = False
        self.wanted = []
