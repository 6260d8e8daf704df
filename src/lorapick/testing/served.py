"""An admin API in a thread with a loop of its own, for tests of commands: those block while they ask.

In: what it shows. Out: its URL, while the block runs. Not here: a picker.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lorapick.live.admin import serve_admin
from lorapick.live.operations import Operations
from lorapick.live.publish import Published

PATIENCE = 10.0
"""Seconds within which it must be up, and down again."""


@contextmanager
def served(published: Published, *, operations: Operations | None = None) -> Iterator[str]:
    """Serve on a free port of 127.0.0.1; give `http://host:port`. Without `operations` nothing is placed."""
    loop, stop, up = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    address: list[str] = []

    async def serve() -> None:
        async with serve_admin(published, bind="127.0.0.1:0", operations=operations) as bound:
            address.append(bound)
            up.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert up.wait(PATIENCE), "the admin API did not come up"
        yield f"http://{address[0]}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        loop.close()
