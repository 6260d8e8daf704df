"""Who of several pickers leads, by a lease in the shared store.

In: the store, the local clock. Out: `leads`; calls when that changes. Not here: what only a leader may do (see
`live.fencing`, which fences both kinds of leader).

Clocks are never compared: the lease ends by the store's clock, and whoever leads counts from before it asked, for less
time than the lease lasts. While the store is out of reach nobody leads, once that time is over.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from lorapick.live.peers.store import Store
from lorapick.model.units import Seconds

log = logging.getLogger(__name__)

LASTS: Seconds = 6.0
RENEW_WITHIN: Seconds = 4.0
"""A leader that has not renewed for so long stops; less than `LASTS`, so that it has stopped before another begins."""
EVERY: Seconds = 1.0


class StoreLeader:
    """One candidate."""

    def __init__(self, store: Store, *, me: str, clock: Callable[[], Seconds] = time.monotonic) -> None:
        """Lead nobody yet."""
        self.holder: str | None = None
        """Who leads, as far as is known."""
        self.losses = 0
        """Times that the lead ended other than by `release`."""
        self.on_change: Callable[[bool], None] = lambda _: None
        """Told when this picker begins or ceases to lead."""
        self._store = store
        self._me = me
        self._clock = clock
        self._until = float("-inf")
        self._told = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def leads(self) -> bool:
        """Whether this picker leads at this moment; asked before everything that only a leader may do."""
        return self._clock() < self._until

    async def run(self) -> None:
        """Try until cancelled, or until the store is out of reach."""
        while True:
            await self.attempt()
            await asyncio.sleep(EVERY)

    async def attempt(self) -> None:
        """Renew, or become the leader if nobody is."""
        asked = self._clock()
        self.holder = await self._store.lead(lasts=LASTS)
        self._until = asked + RENEW_WITHIN if self.holder == self._me else float("-inf")
        self.tell()

    async def release(self) -> None:
        """Let the next one begin at once."""
        if self._timer is not None:
            self._timer.cancel()
        if self.leads:
            self._until = float("-inf")
            self._told = False
            self.on_change(False)
            await self._store.follow()

    def tell(self) -> None:
        """Say what changed; and be back when the lead ends by itself."""
        leads = self.leads
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if leads:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, self._until - self._clock()), self.tell)
        if leads == self._told:
            return
        self._told = leads
        if leads:
            log.info("this picker leads now: it tells pods what to load")
        else:
            self.losses += 1
            log.warning("this picker leads no longer")
        self.on_change(leads)
