"""Ctrl-C and SIGTERM as an event that a server waits for, and the usual handlers back when it is over.

What comes in are signals; what leaves is an `asyncio.Event`. It ends nothing by itself: that is for who waits.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_ASKING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def asked_to_stop() -> Iterator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set, within the running loop of the main thread.

    The handlers are taken away on leaving: a loop of uvloop that is closed while an exception leaves it keeps them,
    and whoever runs in this process afterwards could not be interrupted.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in _ASKING:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in _ASKING:
            loop.remove_signal_handler(number)
