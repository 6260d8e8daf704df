"""The status page's feed: one frame a second, made once for all who watch.

In: a `Published`. Out: server-sent events. Not here: what a frame holds (see `live.frames`), HTTP routes (see
`live.admin`).

Frames are due at whole multiples of the interval on the loop's clock, so that watchers share them: the picker
pays for one frame a second however many watch, and for none when nobody does. Where frames cost more than `SHARE` of
that second, they come more seldom. Whoever comes, or was too slow for the frame before, gets a whole one.
"""

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec

from lorapick.live.admin_views import Frame
from lorapick.live.frames import Frames
from lorapick.live.publish import Published
from lorapick.model.units import Ratio, Seconds

INTERVAL_S = 1.0
MAX_WATCHERS = 16
SHARE: Ratio = 0.025
"""Of a core, for making frames; to send them to each watcher comes on top."""
MOST_INTERVALS = 4
"""From one frame to the next; the page takes longer silence for a lost connection."""
_SMOOTH = 0.3


class Feed:
    """Shares frames among watchers."""

    def __init__(self, published: Published, *, interval: float = INTERVAL_S, limit: int = MAX_WATCHERS) -> None:
        self._frames = Frames(published)
        self._interval = interval
        self._limit = limit
        self._closing = asyncio.Event()
        self._encoder = msgspec.json.Encoder()
        self._due = float("-inf")
        self._cost: Seconds = 0.0
        """CPU time of a frame, smoothed."""
        self._delta = b""
        self._whole: bytes | None = None
        """Of the last frame; None: nobody has needed it."""
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
        known = 0
        try:
            yield b"retry: 2000\n\n"
            while not self._closing.is_set():
                seq = self._advance()
                if seq != known:
                    yield self._delta if 0 < known == seq - 1 else self._everything()
                known = seq
                await self._until_next()
        finally:
            self.watchers -= 1

    def _advance(self) -> int:
        """Make a frame if one is due and nobody has; the number of the last one."""
        now = asyncio.get_running_loop().time()
        last = self._frames.last
        if now >= self._due or last is None:
            began = time.thread_time()
            last = self._frames.advance()
            self._delta, self._whole = self._event(last), None
            self._cost += _SMOOTH * (time.thread_time() - began - self._cost)
            self._due = (int(now / self._interval) + self._intervals()) * self._interval
        return last.seq

    def _intervals(self) -> int:
        """Intervals until the next frame."""
        return min(MOST_INTERVALS, 1 + int(self._cost / (SHARE * self._interval)))

    def _everything(self) -> bytes:
        if self._whole is None:
            self._whole = self._event(self._frames.whole())
        return self._whole

    def _event(self, frame: Frame) -> bytes:
        return b"data: " + self._encoder.encode(frame) + b"\n\n"

    async def _until_next(self) -> None:
        # One millisecond late on purpose: a timer that fires early would find no new frame.
        wait = max(0.0, self._due - asyncio.get_running_loop().time()) + 1e-3
        try:
            async with asyncio.timeout(wait):
                await self._closing.wait()
        except TimeoutError:
            return
