"""Watch pods: ask each for its metrics on its own schedule and say what came of it.

In: pods, from `watch` and `forget` or as an observer of discovery's events. Out: `PodReported`, `PodSilent` and
`GpuReported`, through `submit`. Not here: what pages mean (see `wire.engines`), when a report is too old (the core's).

One task per pod asks serially, so a pod never has two questions at once and a slow pod delays nobody else. Scraping
has a budget, a share of one core: when pods times cost exceed it, the interval of all pods stretches.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from msgspec.structs import replace

from lorapick.live.page import PageClient, PageError
from lorapick.live.slow_pages import SlowPages
from lorapick.model.effects import Effect
from lorapick.model.events import Event, PodAppeared, PodChanged, PodGone, PodReported, PodSilent
from lorapick.model.pods import Pod, PodReport, SilentWhy
from lorapick.model.profiles import CustomMetric
from lorapick.model.settings import ScrapeSettings
from lorapick.model.units import PodName, Ratio, Seconds
from lorapick.wire.engines import DIALECTS, custom
from lorapick.wire.exposition import ExpositionError

log = logging.getLogger(__name__)

Submit: TypeAlias = Callable[[Callable[[Seconds, int], Event]], object]
"""The driver's door: takes a function from (time, id) to the event."""

JITTER: Ratio = 0.1
"""Each pause differs from the interval by up to this share, so that pods do not fall into step."""
FIRST_SPREAD: Seconds = 0.005
"""First scrapes of n pods are spread over n times this, at most over one interval."""


class Budget:
    """What scraping costs, and the interval that keeps it within its share of a core.

    As a context manager it measures the CPU of this thread between entry and exit. What no callback of ours sees
    (system calls, the event loop's own work) is added as a constant per scrape; `bench.scrape` compares the sum with
    the CPU of the whole process.
    """

    MEMORY: Ratio = 0.02
    """Weight of the newest scrape in the mean cost."""

    def __init__(self, *, interval: Seconds, share: Ratio, cpu: Callable[[], Seconds] = time.thread_time) -> None:
        self._interval = interval
        self._share = share
        self._cpu = cpu
        self._entered = 0.0
        self._pending = 0.0
        self.cost: Seconds | None = None
        """CPU seconds of one scrape, lately; None: none ended yet."""
        self.scrapes = 0
        self.spent: Seconds = 0.0
        """CPU seconds of all scrapes."""

    def __enter__(self) -> None:
        """Work begins."""
        self._entered = self._cpu()

    def __exit__(self, *_: object) -> None:
        """Work ends."""
        self._pending += self._cpu() - self._entered

    def scraped(self, *, unseen: Seconds) -> None:
        """One scrape ended, well or badly; what was measured since the last one belongs to scraping."""
        cost, self._pending = self._pending + unseen, 0.0
        self.spent += cost
        self.scrapes += 1
        # A plain mean at first, so that a slow first scrape (cold caches) is soon forgotten.
        weight = max(self.MEMORY, 1.0 / self.scrapes)
        self.cost = cost if self.cost is None else self.cost + (cost - self.cost) * weight

    def interval(self, watchers: int) -> Seconds:
        """Seconds between two scrapes of the same pod."""
        return max(self._interval, watchers * (self.cost or 0.0) / self._share)


class _Watcher(Protocol):
    """Somebody who asks one address for one kind of page."""

    unseen: Seconds
    """CPU seconds of one scrape outside of our own callbacks."""

    async def scrape(self) -> None:
        """Ask once and submit what came of it; raises nothing that a pod could cause."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


class Scraper:
    """The watchers of all pods. Everything runs on one event loop; only `run` waits."""

    def __init__(
        self,
        settings: ScrapeSettings,
        *,
        core_share: Ratio,
        submit: Submit,
        now: Callable[[], Seconds],
        rng: random.Random,
        cpu: Callable[[], Seconds] = time.thread_time,
    ) -> None:
        """Watch nobody yet.

        Args:
            settings: interval, timeout, period of model lists.
            core_share: how much of one core scraping may use (`budgets.scrape_core_share`).
            submit: the driver's door.
            now: the driver's clock.
            rng: where jitter comes from.
            cpu: CPU seconds of this thread.
        """
        self._settings = settings
        self._submit = submit
        self._now = now
        self._rng = rng
        self.custom: Sequence[CustomMetric] = ()
        """Metrics that the configuration names, of pods that are watched from now on."""
        self.budget = Budget(interval=settings.interval, share=core_share, cpu=cpu)
        self._pods: dict[PodName, Pod] = {}
        self._watchers: dict[PodName, _PodWatcher] = {}
        self._tasks: dict[PodName, list[asyncio.Task[None]]] = {}
        self._group: asyncio.TaskGroup | None = None

    @property
    def interval(self) -> Seconds:
        """Seconds between two scrapes of the same pod now; longer than configured when the budget asks for it."""
        gpus = sum(pod.dcgm_url is not None for pod in self._pods.values())
        return self.budget.interval(len(self._pods) + gpus)

    def watch(self, pod: Pod) -> None:
        """Begin to watch a pod, or take note that discovery says something new of it."""
        before = self._pods.get(pod.name)
        self._pods[pod.name] = pod
        if before is None or _target(before) != _target(pod):
            self._stop(pod.name)
            self._start(pod)

    def forget(self, name: PodName) -> None:
        """Stop watching; nothing is said of the pod from now on."""
        self._pods.pop(name, None)
        self._stop(name)

    def refresh(self, name: PodName) -> None:
        """Ask for the pod's list of models with its next scrape: something was registered or withdrawn there."""
        if (watcher := self._watchers.get(name)) is not None:
            watcher.refresh()

    def observe(self, event: Event, _effects: Sequence[Effect]) -> None:
        """Follow discovery: the driver tells its observers every event."""
        if isinstance(event, PodAppeared | PodChanged):
            self.watch(event.pod)
        elif isinstance(event, PodGone):
            self.forget(event.pod)

    async def run(self) -> None:
        """Scrape until cancelled."""
        assert self._group is None, "the scraper runs already"
        try:
            async with asyncio.TaskGroup() as self._group:
                for pod in self._pods.values():
                    self._start(pod)
                try:
                    await asyncio.Event().wait()
                finally:
                    self._group = None  # pods that appear from now on are not begun
        finally:
            self._tasks.clear()
            self._watchers.clear()

    def _start(self, pod: Pod) -> None:
        if self._group is None:
            return
        watcher = self._watchers[pod.name] = _PodWatcher(pod, self._settings, scraper=self)
        watchers: list[_Watcher] = [watcher]
        if pod.dcgm_url is not None:
            # The full HTTP client it needs costs a fifth of a second to import; most fleets have no exporter.
            from lorapick.live.gpu import GpuWatcher

            watchers.append(GpuWatcher(pod.name, pod.dcgm_url, scraper=self))
        self._tasks[pod.name] = [
            self._group.create_task(self._repeat(each), name=f"scrape {pod.name}") for each in watchers
        ]

    def _stop(self, name: PodName) -> None:
        self._watchers.pop(name, None)
        for task in self._tasks.pop(name, []):
            task.cancel()

    async def _repeat(self, watcher: _Watcher) -> None:
        loop = asyncio.get_running_loop()
        try:
            await asyncio.sleep(self._rng.random() * min(self._settings.interval, len(self._pods) * FIRST_SPREAD))
            while True:
                began = loop.time()
                await watcher.scrape()
                self.budget.scraped(unseen=watcher.unseen)
                pause = self.interval * (1.0 + JITTER * (2.0 * self._rng.random() - 1.0))
                # A pod that needs the whole interval to answer still gets a rest.
                await asyncio.sleep(max(pause - (loop.time() - began), JITTER * pause))
        finally:
            await watcher.aclose()

    # -- for the watchers

    @property
    def timeout(self) -> Seconds:
        """Seconds that one page may take."""
        return self._settings.timeout

    def now(self) -> Seconds:
        """The driver's clock."""
        return self._now()

    def submit(self, make: Callable[[Seconds, int], Event]) -> None:
        """Hand an event to the driver; what it does with it counts as scraping."""
        with self.budget:
            self._submit(make)

    @property
    def stretched(self) -> Seconds | None:
        """The interval when it is longer than configured."""
        interval = self.interval
        return interval if interval > self._settings.interval else None


class _PodWatcher:
    """Asks one pod for its metrics and, now and then, for its models."""

    unseen: Seconds = 200e-6

    def __init__(self, pod: Pod, settings: ScrapeSettings, *, scraper: Scraper) -> None:
        self._pod = pod
        self._scraper = scraper
        self._dialect = DIALECTS[pod.engine]
        self._custom = [each for each in scraper.custom if each.engine is pod.engine]
        self._client = PageClient(pod.address, timeout=settings.timeout, meter=scraper.budget)
        self._slow = SlowPages(self._client, self._dialect, every=settings.models_every, meter=scraper.budget)
        self._last: PodReport | None = None
        self._used_until: Seconds | None = None

    def refresh(self) -> None:
        """Ask for the lists with the next scrape."""
        self._slow.due = 0.0

    async def scrape(self) -> None:
        """Ask once; a report or a silence is submitted."""
        scraper, name = self._scraper, self._pod.name
        try:
            sent, report = await self._ask()
            every = scraper.stretched
            scraper.submit(lambda t, i: PodReported(t=t, id=i, pod=name, report=report, since=sent, every=every))
        except PageError as error:
            self._silent(error.why, str(error))
        except ExpositionError as error:
            self._silent(SilentWhy.GARBAGE, str(error))
        except Exception as error:
            # Whatever a page does to a parser or to the core, the other pods are watched on.
            log.exception("pod %s: its metrics broke the parser", name)
            self._silent(SilentWhy.GARBAGE, f"{type(error).__name__}: {error}")

    async def aclose(self) -> None:
        """Drop the connection."""
        self._client.close()

    async def _ask(self) -> tuple[Seconds, PodReport]:
        sent = self._scraper.now()
        page = await self._client.get(self._dialect.metrics_path)
        with self._scraper.budget:
            report = self._dialect.parse(page, used_since=self._used_until)
            if self._custom:
                report = replace(report, attributes=custom.read(page, self._custom))
        if self._is_new(report):
            self._slow.new_process()  # it knows only the adapters it was started with
        self._last = report
        self._used_until = report.used_until or self._used_until
        # Asked for later than the metrics: what changed in between counts as newer than the lists.
        return sent, await self._slow.add_to(report)

    def _is_new(self, report: PodReport) -> bool:
        """Whether another process may have answered than last time: its start time changed, or a counter fell."""
        last = self._last
        if last is None:
            return False
        if last.preemptions is not None and report.preemptions is not None and report.preemptions < last.preemptions:
            return True
        return last.process_start not in (None, report.process_start)

    def _silent(self, why: SilentWhy, detail: str) -> None:
        name = self._pod.name
        self._scraper.submit(lambda t, i: PodSilent(t=t, id=i, pod=name, why=why, detail=detail))


def _target(pod: Pod) -> tuple[object, ...]:
    """What a watcher depends on; a pod whose labels change is watched on."""
    return (pod.address, pod.engine, pod.dcgm_url)
