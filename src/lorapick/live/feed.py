"""The status page's feed: one frame a second, made once for all who watch.

In: a `Published`. Out: server-sent events. Not here: what a frame holds (see `live.frames`), HTTP routes (see
`live.admin`).

Frames are due at whole multiples of the interval on the loop's clock, so that watchers share them: the picker
pays for one frame a second however many watch, and for none when nobody does. Whoever comes, or was too slow for the
frame before, gets a whole one.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from lorapick.live.admin_views import Frame
from lorapick.live.frames import Frames
from lorapick.live.publish import Published

INTERVAL_S = 1.0
MAX_WATCHERS = 16


class Feed:
    """Shares frames among watchers."""

    def __init__(self, published: Published, *, interval: float = INTERVAL_S, limit: int = MAX_WATCHERS) -> None:
        self._frames = Frames(published)
        self._interval = interval
        self._limit = limit
        self._closing = asyncio.Event()
        self._encoder = msgspec.json.Encoder()
        self._tick = -1
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
        """Make the frame of this tick if nobody has; its number."""
        tick = int(asyncio.get_running_loop().time() / self._interval)
        last = self._frames.last
        if tick != self._tick or last is None:
            self._tick = tick
            last = self._frames.advance()
            self._delta, self._whole = self._event(last), None
        return last.seq

    def _everything(self) -> bytes:
        if self._whole is None:
            self._whole = self._event(self._frames.whole())
        return self._whole

    def _event(self, frame: Frame) -> bytes:
        return b"data: " + self._encoder.encode(frame) + b"\n\n"

    async def _until_next(self) -> None:
        due = (self._tick + 1) * self._interval
        # One millisecond late on purpose: a timer that fires early would send the old frame again.
        wait = max(0.0, due - asyncio.get_running_loop().time()) + 1e-3
        try:
            async with asyncio.timeout(wait):
                await self._closing.wait()
        except TimeoutError:
            return
