"""What the retention policies share: the lowest score leaves, of equals the one used longest ago.

In: uses. Out: the least of some candidates. Not here: scores (see the policies).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from lorapick.model.retention import FactsOf
from lorapick.model.settings import RetentionSettings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

MOST_NAMES = 8192
"""Names remembered; one more, and the one used longest ago counts as never used. A pod holds far fewer."""
_NEVER = float("-inf")


class Scored(ABC):
    """A policy that is a score. Time per decision grows with the candidates, memory with `MOST_NAMES` at most."""

    __slots__ = ("_facts", "_last", "_settings")
    name: ClassVar[str]

    def __init__(self, settings: RetentionSettings, facts: FactsOf) -> None:
        self._settings = settings
        self._facts = facts
        self._last: dict[AdapterName, Seconds] = {}
        """Time of the last use of each adapter, in order of use."""

    def used(self, adapter: AdapterName, now: Seconds) -> None:
        """A request for it runs or has arrived."""
        self.touched(adapter, now)

    def touched(self, adapter: AdapterName, now: Seconds) -> None:
        """It is in use at this moment."""
        last = self._last
        last.pop(adapter, None)
        last[adapter] = now
        if len(last) > MOST_NAMES:
            self._forget(next(iter(last)))

    def loaded(self, adapter: AdapterName, now: Seconds) -> None:
        """It came into the memory, which engines count as a use."""
        self.touched(adapter, now)

    def removed(self, adapter: AdapterName, now: Seconds) -> None:
        """It left the memory."""
        del now
        self._forget(adapter)

    def _forget(self, adapter: AdapterName) -> None:
        self._last.pop(adapter, None)

    @abstractmethod
    def worth(self, adapter: AdapterName, *, now: Seconds, leaves_for: Tier = Tier.CPU) -> float:
        """What keeping it is worth."""

    def least(self, candidates: Sequence[AdapterName], *, now: Seconds, leaves_for: Tier = Tier.CPU) -> AdapterName:
        """Who is worth least; of equals the one used longest ago, then the first."""
        assert candidates, "nobody may leave: whoever asks must see to it that somebody can"
        last = self._last

        def rank(adapter: AdapterName) -> tuple[float, Seconds]:
            return self.worth(adapter, now=now, leaves_for=leaves_for), last.get(adapter, _NEVER)

        return min(candidates, key=rank)

    def victim(
        self,
        candidates: Sequence[AdapterName],
        *,
        now: Seconds,
        incoming: AdapterName,
        leaves_for: Tier = Tier.CPU,
    ) -> AdapterName | None:
        """Who leaves for `incoming`; a policy without an admission filter lets everybody in."""
        del incoming
        return self.least(candidates, now=now, leaves_for=leaves_for)
