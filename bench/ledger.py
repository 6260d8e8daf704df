"""What the ledger costs: in the picker's loop, in its thread, and on disk.

    python -m bench.ledger [--pods 50] [--adapters 500] [--requests 20000]

One process, no sockets: the course of `bench.metrics_page` is decided once, with every request answered at once. Its
events are then booked again, with nobody and with the ledger listening; the cost is CPU time, the least of several
runs. The thread's part is the same rows, written to a file in transactions of a second's requests.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.metrics_page import ROUNDS, Course, Recorded, Size
from lorapick.live.ledger.keeper import Ledger
from lorapick.live.ledger.writer import LedgerWriter
from lorapick.model.settings import LedgerSettings
from lorapick.model.units import Seconds

PER_TURN = 5_000
"""Events between two turns of the thread."""


def told(events: Sequence[Recorded], *, to: Callable[[Recorded], None]) -> Seconds:
    """CPU time for all of them."""
    began = time.thread_time()
    for each in events:
        to(each)
    return time.thread_time() - began


def booked(events: Sequence[Recorded], path: Path) -> tuple[Seconds, Seconds, LedgerWriter]:
    """CPU time in the loop and in the thread, and the writer."""
    writer = LedgerWriter(path, LedgerSettings(), clock=time.monotonic)
    now: list[Recorded] = [events[0]]
    ledger = Ledger(writer, lambda: now[0].changes)
    loop = thread = 0.0

    def observe(each: Recorded) -> None:
        now[0] = each
        ledger.observe(each.event, each.effects)

    for first in range(0, len(events), PER_TURN):
        loop += told(events[first : first + PER_TURN], to=observe)
        began = time.thread_time()
        writer.turn()
        thread += time.thread_time() - began
    writer.close()
    return loop, thread, writer


def nothing(_: Recorded) -> None:
    """What nobody does."""


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("pods", 50), ("adapters", 500), ("requests", 20_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    course = Course(Size(given.pods, given.adapters, given.requests, 16))
    course.play()
    events, requests = course.recording.events, given.requests
    nobody = min(told(events, to=nothing) for _ in range(ROUNDS))
    loops, threads = [], []
    with tempfile.TemporaryDirectory() as directory:
        for number in range(ROUNDS):
            path = Path(directory) / f"{number}.sqlite"
            loop, thread, writer = booked(events, path)
            loops.append(loop)
            threads.append(thread)
        size = path.stat().st_size
    print(f"{given.pods} pods, {given.adapters} adapters, {requests} requests, {len(events)} events")
    per = 1e6 / requests
    print(f"loop: {(min(loops) - nobody) * per:.1f} us per request ({nobody * per:.1f} for nobody)")
    print(f"thread: {min(threads) * per:.1f} us per request, {writer.written / requests:.2f} rows")
    print(f"disk: {size / requests:.0f} bytes per request")


if __name__ == "__main__":
    asyncio.run(main())
