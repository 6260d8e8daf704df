"""What the status page costs the picker: CPU per second for 200 pods of 16 slots and 1,000 adapters.

    python -m bench.page [--pods 200] [--slots 16] [--adapters 1000] [--policy round-robin] [--seconds 10] [--json]

A real core behind real views, on a clock of its own: 400 requests a second, Zipf over the adapters, each in flight for
four seconds, sent to pods in turn so that all slots and all host memory are full and change; every pod reports once a
second. First one frame is timed in parts, with everything that changed within a second. Then the admin API serves the
feed to 0, 1 and 16 watchers in another process, and the picker's CPU is read, without that of the requests themselves.
Means over the seconds of each; the yardstick is a loop of plain Python, to compare machines by.

With `--policy weighted` adapters stay where they are, as in a fleet that does not thrash.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from bench.pick import yardstick
from lorapick.live.admin import serve_admin
from lorapick.live.driver import Driver
from lorapick.live.frames import Frames
from lorapick.live.published import PublishedViews
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.pods import Pod, PodLimits, PodReport
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import PickingSettings, Settings
from lorapick.testing.clock import ManualClock

PER_SECOND = 400
LASTS = 4
HOST = 48
"""Adapters in a pod's host memory, those in slots included."""
WATCHERS = (0, 1, 16)
WARM = 120
"""Virtual seconds before anything is timed."""
CLIENT = """
import socket, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ways = []
for _ in range(count):
    way = socket.create_connection((host, port))
    way.sendall(b"GET /v1/stream HTTP/1.1\\r\\nhost: 127.0.0.1\\r\\n\\r\\n")
    ways.append(way)
import selectors
ready = selectors.DefaultSelector()
for way in ways:
    ready.register(way, selectors.EVENT_READ)
total = 0
print("open", flush=True)
while True:
    for key, _ in ready.select():
        if not key.fileobj.recv(1 << 20):
            sys.exit(1)
"""


class Case:
    """A busy fleet."""

    def __init__(self, *, pods: int, slots: int, adapters: int, policy: str = "round-robin") -> None:
        self.clock = ManualClock(0.0)
        self.names = tuple(f"adapter-{number:04d}" for number in range(adapters))
        settings = Settings(
            adapters=tuple(Adapter(name=name, rank=16, declared=True) for name in self.names),
            picking=PickingSettings(policy=policy),
        )
        self.driver = Driver(settings, seed=1, clock=self.clock)
        self.published = PublishedViews(self.driver)
        self.random = random.Random(1)
        self.weights = [1 / (rank + 1) ** 0.7 for rank in range(adapters)]
        self.open: deque[list[str]] = deque()
        self.count = 0
        self.pods = tuple(f"pod-{number:04d}" for number in range(pods))
        limits = PodLimits(max_loras=slots, max_cpu_loras=HOST)
        for number, name in enumerate(self.pods):
            self.say(events.PodAppeared, pod=Pod(name=name, address=f"10.1.0.{number}:8000", limits=limits))

    def say(self, kind: type[events.Event], **fields: Any) -> None:
        self.driver.submit(lambda t, i: kind(t=t, id=i, **fields))

    def second(self) -> None:
        """All that happens within one."""
        self.clock.now += 1.0
        for pod in self.pods:
            running = self.random.randint(0, 9)
            kv = self.random.random()
            self.say(
                events.PodReported,
                pod=pod,
                report=PodReport(waiting=0, running=running, kv_usage=kv, registered=self.names, gpu_utilization=kv),
            )
        asked = self.random.choices(self.names, self.weights, k=PER_SECOND)
        begun = [self.arrive(name) for name in asked]
        self.open.append(begun)
        if len(self.open) > LASTS:
            for request in self.open.popleft():
                self.say(events.RequestEnded, request_id=request, outcome=Outcome.SERVED, status=200)
        self.say(events.Ticked, wall=1.8e9 + self.clock.now)

    def arrive(self, name: str) -> str:
        self.count += 1
        request = f"r{self.count}"
        self.say(events.RequestArrived, request=Request(id=request, model=name))
        self.say(events.ResponseStarted, request_id=request, status=200)
        return request


def milliseconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return (time.process_time() - began) * 1000


def parts(case: Case, rounds: int) -> dict[str, float]:
    """CPU milliseconds of one frame and of what it is made of."""
    frames, encoder, published = Frames(case.published), msgspec.json.Encoder(), case.published
    frames.advance()
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        case.second()
        for name, call in (
            ("fleet_ms", published.fleet),
            ("signals_ms", published.signals),
            ("memory_ms", published.memory),
            ("frame_ms", lambda: encoder.encode(frames.advance())),
            ("whole_ms", lambda: encoder.encode(frames.whole())),
        ):
            found.setdefault(name, []).append(milliseconds(call))
        assert frames.last is not None
        found.setdefault("frame_bytes", []).append(len(encoder.encode(frames.last)))
        found.setdefault("whole_bytes", []).append(len(encoder.encode(frames.whole())))
        found.setdefault("yardstick_us", []).append(yardstick())
    return {name: round(statistics.mean(values), 3) for name, values in found.items()}


async def watched(case: Case, watchers: int, *, seconds: int) -> float:
    """CPU seconds per second that the picker spends beside its requests."""
    async with serve_admin(case.published, bind="127.0.0.1:0") as address:
        host, port = address.split(":")
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CLIENT, host, port, str(watchers), stdout=asyncio.subprocess.PIPE
        )
        try:
            assert client.stdout is not None
            assert await client.stdout.readline() == b"open\n"
            await asyncio.sleep(2.0)
            shares = []
            for _ in range(seconds):
                began = time.process_time()
                case.second()
                work = time.process_time() - began
                start = time.perf_counter()
                await asyncio.sleep(1.0)
                shares.append((time.process_time() - began - work) / (time.perf_counter() - start))
        finally:
            client.kill()
            await client.wait()
    return statistics.mean(shares)


async def measure(arguments: argparse.Namespace) -> dict[str, float]:
    sizes = {"pods": arguments.pods, "slots": arguments.slots, "adapters": arguments.adapters}
    case = Case(**sizes, policy=arguments.policy)
    for _ in range(WARM):
        case.second()
    figures = parts(case, 3 * arguments.seconds)
    for watchers in WATCHERS:
        figures[f"core_share_{watchers}_watchers"] = round(await watched(case, watchers, seconds=arguments.seconds), 4)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--adapters", type=int, default=1000)
    parser.add_argument("--policy", default="round-robin")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = asyncio.run(measure(arguments))
    if arguments.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:>24}  {value:g}")


if __name__ == "__main__":
    main()
