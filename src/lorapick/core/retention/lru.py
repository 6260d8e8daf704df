"""LRU: who was used longest ago leaves. What vLLM does on both levels, and so what a picker has to expect there.

In: uses. Out: their times as scores. Not here: how often.
Good at: traffic that comes in stretches; needs to know nothing. Bad at: a batch of 200 requests for a rare adapter.
Its adapter is the most recent one when the batch is over, so the popular adapter that had to leave for it comes back in
the place of the next popular one, and so on, until every one of them was loaded again and the rare one is the oldest.
"""

from typing import ClassVar

from lorapick.core.retention.scored import Scored
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds


class Lru(Scored):
    """Worth is the time of the last use."""

    __slots__ = ()
    name: ClassVar[str] = "lru"

    def worth(self, adapter: AdapterName, *, now: Seconds, leaves_for: Tier = Tier.CPU) -> float:
        """Time of the last use; of an adapter that was never used, minus infinity."""
        del now, leaves_for
        return self._last.get(adapter, float("-inf"))
