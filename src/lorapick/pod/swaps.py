"""What one load costs: the phases of [R1.3] after the drain.

In: the adapter, where it comes from, who leaves for it. Out: seconds by phase, and when each ends.
Not here: who is loaded when (`machine`), what lies where (`lru`).

Phases follow one another: deallocation (only when a slot must be freed; longer when the sizes differ), transfer
(bytes over bandwidth; from disk first into host memory, then on to the GPU), initialisation, warm-up. A load that
fails does so at the end of its transfer.
"""

from lorapick.model.tiers import Tier
from lorapick.model.units import Bytes, Seconds
from lorapick.pod.lru import AdapterCopy
from lorapick.pod.values import SwapCosts


def deallocation_seconds(costs: SwapCosts, *, leaving: Bytes | None, arriving: Bytes) -> Seconds:
    """Seconds to free a slot; `leaving` None: a slot was free."""
    if leaving is None:
        return 0.0
    return costs.deallocation if leaving == arriving else costs.deallocation + costs.fragmentation


def transfer_seconds(costs: SwapCosts, *, tier_from: Tier, size: Bytes) -> Seconds:
    """Seconds to bring `size` bytes into a slot; what is on disk passes through host memory."""
    from_host = size / costs.cpu_bandwidth
    return from_host if tier_from == Tier.CPU else size / costs.disk_bandwidth + from_host


class Load:
    """One load in progress."""

    __slots__ = (
        "adapter",
        "deallocation",
        "drain",
        "end",
        "fails",
        "initialisation",
        "start",
        "tier_from",
        "transfer",
        "waited",
        "warm_up",
    )

    def __init__(self, adapter: AdapterCopy, tier_from: Tier, *, start: Seconds, waited: bool) -> None:
        self.adapter = adapter
        self.tier_from = tier_from
        self.start = start
        self.waited = waited
        self.fails = False
        self.drain = 0.0
        """Length of the drain window before it; part of an operation's first load only."""
        self.deallocation = 0.0
        self.transfer = 0.0
        self.initialisation = 0.0
        self.warm_up = 0.0
        self.end = start

    def plan(self, costs: SwapCosts, *, victim: AdapterCopy | None, fails: bool) -> None:
        """Set the phases' lengths and the end."""
        size = self.adapter.size
        self.fails = fails
        leaving = victim.size if victim is not None else None
        self.deallocation = deallocation_seconds(costs, leaving=leaving, arriving=size)
        self.transfer = transfer_seconds(costs, tier_from=self.tier_from, size=size)
        if not fails:
            self.initialisation = costs.initialisation
            self.warm_up = costs.warm_up
        self.end = self.start + self.deallocation + self.transfer + self.initialisation + self.warm_up

    def spent(self, now: Seconds) -> tuple[Seconds, Seconds, Seconds, Seconds]:
        """Seconds by phase (deallocation, transfer, initialisation, warm-up) up to `now`."""
        left = max(0.0, now - self.start)
        spent = []
        for phase in (self.deallocation, self.transfer, self.initialisation, self.warm_up):
            part = min(phase, left)
            spent.append(part)
            left -= part
        return spent[0], spent[1], spent[2], spent[3]
