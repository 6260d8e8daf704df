"""FIFO: who was loaded first leaves. What SGLang does with `--lora-eviction-policy fifo`.

In: loads. Out: their times as scores. Not here: uses.
Good at: nothing that LRU is not. Bad at: popular adapters, which leave when their turn comes, used or not.
"""

from typing import ClassVar

from lorapick.core.retention.scored import Scored
from lorapick.model.retention import FactsOf
from lorapick.model.settings import RetentionSettings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds


class Fifo(Scored):
    """Worth is the time of the last load."""

    __slots__ = ("_loaded",)
    name: ClassVar[str] = "fifo"

    def __init__(self, settings: RetentionSettings, facts: FactsOf) -> None:
        super().__init__(settings, facts)
        self._loaded: dict[AdapterName, Seconds] = {}

    def loaded(self, adapter: AdapterName, now: Seconds) -> None:
        """It came in."""
        self._loaded[adapter] = now
        super().loaded(adapter, now)

    def _forget(self, adapter: AdapterName) -> None:
        super()._forget(adapter)
        self._loaded.pop(adapter, None)

    def worth(self, adapter: AdapterName, *, now: Seconds, leaves_for: Tier = Tier.CPU) -> float:
        """Time of the last load; of an adapter that was never loaded, minus infinity."""
        del now, leaves_for
        return self._loaded.get(adapter, float("-inf"))
