"""The status page's feed: one frame a second, made once for all who watch.

In: a `Published`. Out: server-sent events. Not here: HTTP routes (see `live.admin`).

Frames are due at whole multiples of the interval on the loop's clock, so that watchers share them: the picker
pays for one frame a second however many watch, and for none when nobody does.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from lorapick.live.admin_views import Frame
from lorapick.live.publish import AdapterRow, Published
from lorapick.model.tiers import Tier
from lorapick.wire.api import cell

INTERVAL_S = 1.0
MAX_WATCHERS = 16
MAX_PODS = 256
MAX_ADAPTERS = 50
MAX_DECISIONS = 25
_SHOWN_TIERS = frozenset(tier.word for tier in Tier if tier >= Tier.CPU)


def frame(published: Published) -> Frame:
    """What the page shows now, cut to its bounds."""
    fleet = published.fleet()
    shown = fleet.pods[:MAX_PODS]
    names = {pod.name for pod in shown}
    adapters = published.adapters()
    # Busiest first; the sort is stable, so equals stay in the order of names.
    busiest = sorted(adapters, key=lambda row: -row.requests)[:MAX_ADAPTERS]
    return Frame(
        fleet=msgspec.structs.replace(fleet, pods=shown),
        pods_total=len(fleet.pods),
        cells=tuple(
            cell(belief, now=fleet.now)
            for belief in published.residency()
            if belief.tier >= Tier.CPU and belief.pod in names
        ),
        adapters_total=len(adapters),
        adapters=tuple(_in_memory(row) for row in busiest),
        decisions=tuple(published.decisions(MAX_DECISIONS)),
        alerts=tuple(published.alerts()),
    )


def _in_memory(row: AdapterRow) -> AdapterRow:
    """Without the pods that have it only on disk: that may be all of them."""
    pods = {tier: names for tier, names in row.pods.items() if tier in _SHOWN_TIERS}
    return msgspec.structs.replace(row, pods=pods)


class Feed:
    """Shares frames among watchers."""

    def __init__(self, published: Published, *, interval: float = INTERVAL_S, limit: int = MAX_WATCHERS) -> None:
        self._published = published
        self._interval = interval
        self._limit = limit
        self._closing = asyncio.Event()
        self._tick = -1
        self._event = b""
        self.watchers = 0

    def full(self) -> bool:
        """Whether no further watcher may come."""
        return self.watchers >= self._limit

    def close(self) -> None:
        """End all streams."""
        self._closing.set()

    async def watch(self) -> AsyncIterator[bytes]:
        """Events for one watcher, the first at once, until `close` or until the watcher is cancelled."""
        self.watchers += 1
        try:
            yield b"retry: 2000\n\n"
            while not self._closing.is_set():
                yield self._current()
                await self._until_next()
        finally:
            self.watchers -= 1

    def _current(self) -> bytes:
        tick = int(asyncio.get_running_loop().time() / self._interval)
        if tick != self._tick:
            self._tick = tick
            self._event = b"data: " + msgspec.json.encode(frame(self._published)) + b"\n\n"
        return self._event

    async def _until_next(self) -> None:
        due = (self._tick + 1) * self._interval
        # One millisecond late on purpose: a timer that fires early would send the old frame again.
        wait = max(0.0, due - asyncio.get_running_loop().time()) + 1e-3
        try:
            async with asyncio.timeout(wait):
                await self._closing.wait()
        except TimeoutError:
            return
