"""Time-weighted LRU, the article's own: requests in the last ten minutes, and how recent the last one is [R3.2].

In: uses, and who is pinned. Out: `frequency_weight * requests in the window + recency_weight / seconds since the last
use + pinned_bonus * pinned`. Not here: what a load costs.
Good at: ghosts, which are gone after a window; and a new adapter that is used catches up within one. Bad at: a batch of
200 in seconds, which outweighs a popular adapter with five requests a minute (50 in the window) for ten minutes. The
recency term is at most 1 with the default weights, so beside counts it does no more than break ties. The bonus of a pin
is finite and would lose to a busy window: pins are no candidates, it is there for who reads scores.

Memory: one entry for each request of the window.
"""

from collections import deque
from typing import ClassVar

from lorapick.core.retention.scored import Scored
from lorapick.model.retention import FactsOf
from lorapick.model.settings import RetentionSettings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Seconds

RECENCY_FLOOR: Seconds = 1.0
"""A use counts as at least this long ago: without it the term has no bound."""


class TimeWeighted(Scored):
    """Counts are exact: the requests after `now - window`, up to and including `now`."""

    __slots__ = ("_counts", "_window")
    name: ClassVar[str] = "window"

    def __init__(self, settings: RetentionSettings, facts: FactsOf) -> None:
        super().__init__(settings, facts)
        self._window: deque[tuple[Seconds, AdapterName]] = deque()
        self._counts: dict[AdapterName, int] = {}

    def used(self, adapter: AdapterName, now: Seconds) -> None:
        """One more request in the window."""
        super().used(adapter, now)
        self._expire(now)
        self._window.append((now, adapter))
        self._counts[adapter] = self._counts.get(adapter, 0) + 1

    def requests(self, adapter: AdapterName, now: Seconds) -> int:
        """Requests for it in the window that ends now."""
        self._expire(now)
        return self._counts.get(adapter, 0)

    def worth(self, adapter: AdapterName, *, now: Seconds, leaves_for: Tier = Tier.CPU) -> float:
        """The formula above; an adapter that was never used has no recency."""
        del leaves_for
        settings = self._settings
        last = self._last.get(adapter)
        recency = 0.0 if last is None else 1.0 / max(RECENCY_FLOOR, now - last)
        return (
            settings.frequency_weight * self.requests(adapter, now)
            + settings.recency_weight * recency
            + settings.pinned_bonus * self._facts(adapter).pinned
        )

    def _expire(self, now: Seconds) -> None:
        window, counts = self._window, self._counts
        begin = now - self._settings.window
        while window and window[0][0] <= begin:
            adapter = window.popleft()[1]
            if counts[adapter] == 1:
                del counts[adapter]
            else:
                counts[adapter] -= 1
