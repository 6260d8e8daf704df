"""Frequency x cost / size: whose absence would cost most time per room it takes stays. With an admission filter.

In: uses; what a load costs and what room it takes, as facts. Out: expected seconds of loading per second, per unit of
room. Not here: how requests become a rate (`demand`, `recency`).

The idea is GreedyDual-Size-Frequency's (Cherkasova 1998) with rates that fade in place of its clock: an adapter that
nobody asks for loses its worth by itself. The rate is the long one, bursts damped, as far as the silence since the
last request allows, or half the rate of a stretch that is going on, whichever is more. So a ghost is gone in minutes;
a batch of 200 keeps its adapter while it runs and gives the place back when it is over; an adapter that is asked for in
stretches of minutes stays for the stretch; and a new one is as good as the old ones within a minute or two.

The admission filter is TinyLFU's: who comes in must be worth as much as who leaves. An adapter that is asked for once
is not, and an owner that asks `victim` may let it take its turn without pushing anyone out. An owner that must take it
in asks `least`; then it is the next to leave.

Not as good as LRU where only the last use tells anything: all adapters in stretches, or all old ones gone at once.
"""

from collections.abc import Sequence
from typing import ClassVar

from lorapick.core.retention.demand import Demand
from lorapick.core.retention.recency import Recency
from lorapick.core.retention.scored import Scored
from lorapick.model.retention import FactsOf
from lorapick.model.settings import RetentionSettings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

STRETCH = 0.5
"""What the rate of a stretch counts beside a long one: the stretch may end before the next request."""


class CostAware(Scored):
    """Worth is rate x seconds to bring it back / room. Memory: a sketch of fixed size, and two entries per name."""

    __slots__ = ("_demand", "_recency")
    name: ClassVar[str] = "cost"

    def __init__(self, settings: RetentionSettings, facts: FactsOf) -> None:
        super().__init__(settings, facts)
        self._demand = Demand(settings.window)
        self._recency = Recency()

    def used(self, adapter: AdapterName, now: Seconds) -> None:
        """A request, for the long rate and for the stretch."""
        super().used(adapter, now)
        self._demand.add(adapter, now)
        self._recency.add(adapter, now)

    def worth(self, adapter: AdapterName, *, now: Seconds, leaves_for: Tier = Tier.CPU) -> float:
        """Expected seconds of loading per second if it were not there, per unit of room."""
        facts = self._facts(adapter)
        steady = min(self._demand.rate(adapter, now), self._recency.most(adapter, now))
        rate = max(steady, STRETCH * self._recency.stretch(adapter, now))
        return rate * facts.reload(leaves_for) / facts.room

    def victim(
        self,
        candidates: Sequence[AdapterName],
        *,
        now: Seconds,
        incoming: AdapterName,
        leaves_for: Tier = Tier.CPU,
    ) -> AdapterName | None:
        """Who leaves for `incoming`; None: `incoming` is worth less than each of them, and is no pin."""
        least = self.least(candidates, now=now, leaves_for=leaves_for)
        if self._facts(incoming).pinned:
            return least
        lowest = self.worth(least, now=now, leaves_for=leaves_for)
        return None if self.worth(incoming, now=now, leaves_for=leaves_for) < lowest else least
