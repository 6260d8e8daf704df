"""Demand between runs of the picker: what was asked for before comes back, what is asked for now is kept.

In: the store of demand (`live.history`), the driver. Out: `DemandRecalled` events once the picker serves, the latest
times first and a piece at a time, so that no pick waits for them; bins that are over are kept as the core hands them
out, the open one every few seconds, so that a picker that is killed loses no more than those.
Not here: the file, what is made of demand (see `core.forecast`).
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Sequence

from lorapick.live.driver import Driver, MakeEvent
from lorapick.live.history import HistoryStore
from lorapick.model.events import DemandRecalled
from lorapick.model.placement import DemandBin
from lorapick.model.units import Seconds

log = logging.getLogger(__name__)

KEEP_EVERY: Seconds = 5.0
"""How often the open bin is kept."""
AT_ONCE = 2_000
"""Bins of one event: about 5 ms of the core's time."""
_REST: Seconds = 0.01
"""Between two events, for picks."""
_END_WITHIN: Seconds = 1.0
"""Whoever supervises the picker has its patience: what a hanging disk does not take by then is lost."""


class Demand:
    """Keeps one fleet's demand in one file. Used on one event loop."""

    def __init__(self, store: HistoryStore, driver: Driver, *, every: Seconds = KEEP_EVERY) -> None:
        """Read nothing yet.

        Args:
            store: the file.
            driver: whose core counts.
            every: seconds between two looks at the open bin.
        """
        self._store = store
        self._driver = driver
        self._every = every
        self._kept: tuple[DemandBin, ...] = ()
        """The open bin, as it was kept last."""
        self.recalled = asyncio.Event()
        """Set when all of it has come back."""

    def keep(self, bins: Sequence[DemandBin]) -> None:
        """Keep bins that are over."""
        self._store.keep(bins)

    async def run(self) -> None:
        """Bring back what there was, then keep what comes, until cancelled."""
        bins = await _aside(self._store)
        await self._recall(bins)
        while True:
            self._keep_open()
            await asyncio.sleep(self._every)

    async def end(self) -> None:
        """Keep what is counted until now; in about a second at most."""
        self._keep_open()
        await asyncio.to_thread(self._store.close, _END_WITHIN)

    async def _recall(self, bins: Sequence[DemandBin]) -> None:
        for end in range(len(bins), 0, -AT_ONCE):
            self._driver.submit(_recalled(tuple(bins[max(0, end - AT_ONCE) : end])))
            await asyncio.sleep(_REST)
        if bins:
            log.info("demand of earlier times is back: %d counts", len(bins))
        self.recalled.set()

    def _keep_open(self) -> None:
        open_now = self._driver.fleet.state.placement.history.so_far()
        if open_now != self._kept:
            self._kept = open_now
            self._store.keep(open_now)


def _recalled(bins: tuple[DemandBin, ...]) -> MakeEvent:
    return lambda t, i: DemandRecalled(t=t, id=i, bins=bins)


async def _aside(store: HistoryStore) -> tuple[DemandBin, ...]:
    """What `store.load` reads; by a thread that nobody waits for at the end, whatever the disk does."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[DemandBin, ...]] = loop.create_future()

    def done(bins: tuple[DemandBin, ...]) -> None:
        if not future.done():
            future.set_result(bins)

    def load() -> None:
        bins: tuple[DemandBin, ...] = ()
        try:
            bins = store.load()
        except Exception:
            log.exception("demand history; beginning without it")
        with contextlib.suppress(RuntimeError):  # the loop is gone: so is the picker
            loop.call_soon_threadsafe(done, bins)

    threading.Thread(target=load, name="demand-load", daemon=True).start()
    return await future
