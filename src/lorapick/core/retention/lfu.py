"""LFU: who was used least often since it was loaded leaves; of equals the one used longest ago.

In: uses. Out: counts as scores. Not here: when the uses were.
Good at: traffic that never changes. Bad at: traffic that does. An adapter with 50,000 requests of last week keeps its
place for ever (a ghost), while one that was just deployed has none and is the first to leave, again and again; and a
batch of 200 counts like 200 requests of a day. Counts begin anew with each load: without that, every adapter that was
ever popular would be a ghost.
"""

from typing import ClassVar

from lorapick.core.retention.scored import Scored
from lorapick.model.retention import FactsOf
from lorapick.model.settings import RetentionSettings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds


class Lfu(Scored):
    """Worth is the number of requests since the adapter was last brought in."""

    __slots__ = ("_counts",)
    name: ClassVar[str] = "lfu"

    def __init__(self, settings: RetentionSettings, facts: FactsOf) -> None:
        super().__init__(settings, facts)
        self._counts: dict[AdapterName, int] = {}

    def used(self, adapter: AdapterName, now: Seconds) -> None:
        """One more."""
        self._counts[adapter] = self._counts.get(adapter, 0) + 1
        super().used(adapter, now)

    def _forget(self, adapter: AdapterName) -> None:
        super()._forget(adapter)
        self._counts.pop(adapter, None)

    def worth(self, adapter: AdapterName, *, now: Seconds, leaves_for: Tier = Tier.CPU) -> float:
        """Requests since it was loaded, those that made it be loaded included."""
        del now, leaves_for
        return float(self._counts.get(adapter, 0))
