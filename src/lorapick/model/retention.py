"""What a retention policy is: who stays in a pod's adapter memory, and who leaves it first [R3.2].

In: uses, loads and removals as they happen. Out: whom it would cost least to lose. Here so that the pod model can take
a policy without knowing the decision core. Not here: the policies (see `core.retention`), and whether anybody has to
leave at all, which is the owner's to know.

One instance looks after the adapter memory of one pod, both levels of it: how much an adapter is asked for is one
thing, what it costs to lose depends on where it goes. The owner leaves out of `candidates` what may not leave: pins,
and adapters in use or on their way. They come in an order that is the same in every run, the first to leave first
if the policy is indifferent. `now` never falls.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds


class RetentionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy may want to know of an adapter. Defaults: slots as vLLM has them, `LoadTimes` as documented."""

    room: float = 1.0
    """What it takes of the memory, in any unit. Bytes where adapters share a pool; 1 for each where each takes a
    slot, whatever its size, as in vLLM: there a small adapter makes no more room than a large one."""
    from_cpu: Seconds = 0.1
    """Expected time to bring it back into a slot from host memory."""
    from_disk: Seconds = 0.7
    """The same from disk or beyond."""
    pinned: bool = False
    """Adds to its worth where somebody reads that; a pin is no candidate in any case."""

    def reload(self, leaves_for: Tier) -> Seconds:
        """Time to bring it back from where it goes; everything below host memory counts as disk."""
        return self.from_cpu if leaves_for >= Tier.CPU else self.from_disk


FactsOf: TypeAlias = Callable[[AdapterName], RetentionFacts]
"""Answers for every name, also for one that nobody declared; a function of what the operator and engine said."""


class Retention(Protocol):
    """What one pod's memory is asked for, and what follows for who leaves."""

    @property
    def name(self) -> str:
        """As in `retention.policy`."""
        ...

    def used(self, adapter: AdapterName, now: Seconds) -> None:
        """A request for it runs, or has arrived; once for each request, resident or not."""
        ...

    def touched(self, adapter: AdapterName, now: Seconds) -> None:
        """It still runs, or has just ended: recent, but no new request. Engines touch an adapter at every step."""
        ...

    def loaded(self, adapter: AdapterName, now: Seconds) -> None:
        """It came into the memory, for a request or without one."""
        ...

    def removed(self, adapter: AdapterName, now: Seconds) -> None:
        """It left both levels: evicted, unloaded, or lost in a restart."""
        ...

    def worth(self, adapter: AdapterName, *, now: Seconds, leaves_for: Tier = Tier.CPU) -> float:
        """What keeping it is worth, in a unit of the policy's own; for comparison and for people to read."""
        ...

    def least(self, candidates: Sequence[AdapterName], *, now: Seconds, leaves_for: Tier = Tier.CPU) -> AdapterName:
        """Who is worth least, for an owner that needs the room; `candidates` has at least one.

        Of equals the one used longest ago, then the first.
        """
        ...

    def victim(
        self,
        candidates: Sequence[AdapterName],
        *,
        now: Seconds,
        incoming: AdapterName,
        leaves_for: Tier = Tier.CPU,
    ) -> AdapterName | None:
        """Who should leave for `incoming`: `least`, or None if `incoming` is worth less than each of them.

        None is for an owner with a choice: do not preload it, do not keep it, or let it take its turn in a churn slot.
        """
        ...
