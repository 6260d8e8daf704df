"""What the picker's metrics cost: per event, and per page of a large fleet.

    python -m bench.metrics_page [--pods 200] [--adapters 1000] [--requests 10000] [--slots 16]

One process, no sockets: a driver with its own clock decides requests for adapters of a skewed popularity. Its events
are then counted again by fresh metrics; the cost is CPU time of the thread, the least of several runs. A page is what
Prometheus gets: the part in the picker's loop, and all of it, with the text that is made in a thread.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from typing import NamedTuple

from lorapick.core.fleet import Fleet
from lorapick.live.driver import Driver
from lorapick.live.metrics import Metrics
from lorapick.live.ports import Usage
from lorapick.live.published import PublishedViews
from lorapick.model.effects import Dispatch, Effect
from lorapick.model.events import Event, PodAppeared, PodReported
from lorapick.model.pods import Pod, PodLimits, PodReport
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings
from lorapick.model.signals import Change
from lorapick.model.units import Seconds
from lorapick.testing.clock import ManualClock

ROUNDS = 5
STEP = 0.002
"""Seconds between two requests."""


class Size(NamedTuple):
    """Of the fleet and of the course."""

    pods: int
    adapters: int
    requests: int
    slots: int


class Recorded(NamedTuple):
    """One event as metrics hear of it."""

    event: Event
    effects: Sequence[Effect]
    changes: tuple[Change, ...]


class Recording:
    """Keeps what an observer is told; plays the part of the core that metrics follow, too."""

    def __init__(self, fleet: Fleet) -> None:
        self.events: list[Recorded] = []
        self._fleet = fleet

    def observe(self, event: Event, effects: Sequence[Effect]) -> None:
        """Keep one."""
        self.events.append(Recorded(event, effects, tuple(self._fleet.changes)))


class Course:
    """A driver and the requests that it is asked for."""

    def __init__(self, size: Size) -> None:
        self.size, self.clock = size, ManualClock()
        self.driver = Driver(Settings(), seed=1, clock=self.clock)
        self.recording = Recording(self.driver.fleet)
        self.driver.observers.append(self.recording)
        self.names = [f"adapter-{number:04d}" for number in range(size.adapters)]
        for number in range(size.pods):
            limits = PodLimits(max_loras=size.slots, max_cpu_loras=4 * size.slots)
            pod = Pod(name=f"pod-{number:03d}", address=f"10.0.{number // 250}.{number % 250}:8000", limits=limits)
            self.driver.submit(lambda t, i, pod=pod: PodAppeared(t=t, id=i, pod=pod))
        self.report()

    def report(self) -> None:
        """Every pod is scraped."""
        report = PodReport(waiting=0, running=4, kv_usage=0.4, registered=tuple(self.names))
        for number in range(self.size.pods):
            name = f"pod-{number:03d}"
            self.driver.submit(lambda t, i, name=name: PodReported(t=t, id=i, pod=name, report=report))

    def play(self) -> None:
        """All requests."""
        draw, driver = random.Random(1), self.driver
        weights = [1.0 / (1 + rank) for rank in range(len(self.names))]
        models = draw.choices(self.names, weights=weights, k=self.size.requests)
        usage = Usage(prompt_tokens=200, cached_tokens=50, output_tokens=80)
        for number, model in enumerate(models):
            if number % 1000 == 0:
                self.report()
            self.clock.advance(STEP)
            answer = driver.ask(Request(id=f"r{number}", model=model, stream=True, body_bytes=900))
            if isinstance(answer, Dispatch):
                driver.response_started(answer.request_id, 200)
                driver.body_started(answer.request_id)
                driver.ended(answer.request_id, Outcome.SERVED, 200, usage)

    def counted(self, *, compat: str) -> tuple[Metrics, Seconds]:
        """Metrics that have counted all of it, and the CPU time for it."""
        metrics = Metrics(compat=compat)
        metrics.show(PublishedViews(self.driver))
        metrics.follow(self.driver.fleet)
        observe = metrics.counting.observe
        began = time.thread_time()
        for event, effects, changes in self.recording.events:
            observe(event, effects, changes)
        return metrics, time.thread_time() - began


async def pages(course: Course, metrics: Metrics) -> tuple[Seconds, Seconds, int, int]:
    """Seconds in the loop, seconds in all, bytes and lines of a page: the least of several."""
    in_loop, in_all, page = [], [], b""
    for _ in range(ROUNDS):
        course.clock.advance(15.0)
        began = time.perf_counter()
        metrics.take()
        in_loop.append(time.perf_counter() - began)
        began = time.perf_counter()
        page, _ = await metrics.page()
        in_all.append(time.perf_counter() - began)
    return min(in_loop), min(in_all), len(page), page.count(b"\n")


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("pods", 200), ("adapters", 1000), ("requests", 10_000), ("slots", 16)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    size = Size(given.pods, given.adapters, given.requests, given.slots)
    print(f"{size.pods} pods x {size.slots} slots, {size.adapters} adapters, {size.requests} requests")
    course = Course(size)
    course.play()
    for compat in ("off", "both"):
        runs = [course.counted(compat=compat) for _ in range(ROUNDS)]
        least, events = min(spent for _, spent in runs), len(course.recording.events)
        in_loop, in_all, bytes_, lines = await pages(course, runs[-1][0])
        print(
            f"{compat:5} {least / events * 1e6:.1f} us per event, {least / size.requests * 1e6:.1f} us per request; "
            f"page: {in_loop * 1e3:.0f} ms in the loop, {in_all * 1e3:.0f} ms in all, "
            f"{bytes_ / 1e3:,.0f} kB, {lines:,} lines"
        )


if __name__ == "__main__":
    asyncio.run(main())
