"""The commands of all pods: each pod's one after another, each bounded in time, each answered by one event per adapter.

In: effects that the driver hands on. Out: HTTP requests to the pods' own paths (see `engines`), and the events that say
what came of them. Whatever happens, exactly one event follows for each adapter of a command: also when the pod or the
picker leaves, when too many wait, or when an answer makes no sense. A `LoadStarted` besides says when an engine that
loads into slots is told.
Not here: whom to load and when (see `core.placement`, `core.relief`), what engines are told (see `vllm`, `sglang`).
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

import aiohttp

from lorapick.live.control.commands import Command, MakeEvent, failed, kind_of, started, succeeded
from lorapick.live.control.counts import ControlCounts, Tally
from lorapick.live.control.door import Door, open_session
from lorapick.live.control.engines import DRIVERS, EngineDriver, unsupported
from lorapick.live.control.line import MOST_WAITING, Line, Waiting
from lorapick.live.control.problems import Outcome, ProblemError, UnknownNameError
from lorapick.live.control.sources import AllowedSources, check_name, no_sources
from lorapick.live.ports import NoSourceError, SourceError, Sources
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.pods import Engine, Pod
from lorapick.model.units import AdapterName, PodName, Seconds

log = logging.getLogger(__name__)
T = TypeVar("T")
_NOWHERE = NoSourceError("nobody said where it is loaded from")


class Timeouts(NamedTuple):
    """Bounds of a command."""

    pod: Seconds = 30.0
    """Of a load, an unload (which waits for the adapter's requests) or a registration, for one adapter."""
    touch: Seconds = 10.0
    """A touch waits behind the pod's other requests."""
    source: Seconds = 30.0
    """Of finding out where an adapter is loaded from; commands about other adapters pass meanwhile."""
    turn: Seconds = 30.0
    """How long a command waits for its turn. With one adapter and a source at hand it has its event after at most
    `turn` + `pod`, when the core gives up as well."""


TIMEOUTS = Timeouts()


class _Running(NamedTuple):
    """What there is while `run` runs."""

    session: aiohttp.ClientSession
    group: asyncio.TaskGroup


class _Told(NamedTuple):
    """Who is told what."""

    driver: EngineDriver
    door: Door
    source: str | NoSourceError

    async def call(self, command: Command, adapter: AdapterName) -> Outcome:
        """Do it, without any limit of time."""
        match command:
            case Load():
                return await self.driver.load(self.door, adapter, source=self.source)
            case Register():
                return await self.driver.register(self.door, adapter, source=self.source)
            case Unload():
                return await self.driver.unload(self.door, command)
            case Touch():
                return await self.driver.touch(self.door, adapter, source=self.source)


class _PodWork:
    """One pod's commands."""

    __slots__ = ("current", "line", "timers", "wake")

    def __init__(self) -> None:
        self.line = Line()
        self.current: Waiting | None = None
        self.timers: dict[Waiting, asyncio.TimerHandle] = {}
        """Of those that are ready and wait for their turn."""
        self.wake = asyncio.Event()
        """Set when it may be somebody else's turn."""


class PodControl:
    """The control paths of all pods. Runs on one event loop; nothing is done outside of `run`."""

    def __init__(
        self,
        *,
        submit: Callable[[MakeEvent], object],
        find: Callable[[PodName], Pod | None],
        sources: Sources = no_sources,
        allowed: Callable[[AdapterName, str], None] | None = None,
        timeouts: Timeouts = TIMEOUTS,
        on_missing: Callable[[PodName], None] = lambda _: None,
    ) -> None:
        """Do nothing yet.

        Args:
            submit: the driver's door.
            find: the pod of a name; None: it is gone.
            sources: where adapters are loaded from.
            allowed: raises `SourceError` for what no pod may be told to load; None: nothing may be.
            timeouts: bounds in seconds.
            on_missing: told when a pod does not serve an adapter that it was asked for: its list of models may be
                another than we know.
        """
        self._submit = submit
        self._find = find
        self._sources = sources
        self._allowed = allowed if allowed is not None else AllowedSources()
        self._timeouts = timeouts
        self._on_missing = on_missing
        self._drivers: dict[Engine, EngineDriver] = {engine: make() for engine, make in DRIVERS.items()}
        self._running: _Running | None = None
        self._works: dict[PodName, _PodWork] = {}
        self._tally = Tally()

    def perform(self, command: Command) -> None:
        """Begin to do it; what came of it is submitted as events, never before this returns."""
        asyncio.get_running_loop().call_soon(self._begin, command)

    def counts(self) -> ControlCounts:
        """What came of all commands until now."""
        works = self._works.values()
        waiting = sum(len(work.line) for work in works)
        return self._tally.shown(waiting=waiting, under_way=sum(work.current is not None for work in works))

    async def run(self) -> None:
        """Carry out commands until cancelled; what is under way or waits then has failed."""
        try:
            async with open_session() as session, asyncio.TaskGroup() as group:
                self._running = _Running(session, group)
                await asyncio.Event().wait()
        finally:
            self._running = None
            self._end()

    def _end(self) -> None:
        works, self._works = self._works, {}
        for work in works.values():
            for timer in work.timers.values():
                timer.cancel()
            for one in [*([work.current] if work.current is not None else []), *work.line]:
                self._drop(one, "the picker is ending")

    # -- waiting

    def _begin(self, command: Command) -> None:
        pod = self._find(command.pod)
        one = Waiting(command, ready=not self._needs_source(command, pod))
        if self._running is None:
            self._drop(one, "the picker is ending")
        elif pod is None:
            self._drop(one, "the pod is gone")
        elif pod.engine not in self._drivers:
            self._fail(one, unsupported(pod.engine))
        else:
            self._join(one, pod=pod, running=self._running)

    def _needs_source(self, command: Command, pod: Pod | None) -> bool:
        driver = self._drivers.get(pod.engine) if pod is not None else None
        touched = isinstance(command, Touch) and driver is not None and driver.tells_sources
        return touched or isinstance(command, Load | Register)

    def _join(self, one: Waiting, *, pod: Pod, running: _Running) -> None:
        work = self._works.get(pod.name)
        if work is None:
            work = self._works[pod.name] = _PodWork()
            running.group.create_task(self._work(pod.name, work), name=f"commands {pod.name}")
        pushed = work.line.add(one)
        if pushed is not None:
            _stop(work, pushed)
            self._drop(pushed, f"more than {MOST_WAITING} commands wait for this pod, and this one has waited longest")
        if one.ready:
            self._wait(work, one)
        else:
            running.group.create_task(self._find_sources(work, one, pod=pod), name=f"sources {pod.name}")

    async def _find_sources(self, work: _PodWork, one: Waiting, *, pod: Pod) -> None:
        """Find out where everything that a command wants is loaded from; others may pass meanwhile."""
        driver = self._drivers[pod.engine]
        names = [name for name in dict.fromkeys(one.left) if driver.remembered(pod.name, name) is None]
        found = await asyncio.gather(*(self._source(name, pod=pod) for name in names))
        one.sources.update(zip(names, found, strict=True))
        one.ready = True
        if one in work.line:
            self._wait(work, one)

    async def _source(self, adapter: AdapterName, *, pod: Pod) -> str | NoSourceError | ProblemError:
        """Where a pod is told to load an adapter from, or why it cannot be told."""
        try:
            return await _sure(self._look(adapter, pod=pod), f"source of {adapter} for pod {pod.name}")
        except (NoSourceError, ProblemError) as problem:
            return problem

    async def _look(self, adapter: AdapterName, *, pod: Pod) -> str:
        check_name(adapter)
        async with _within(self._timeouts.source, "its source was not found within {:g} s"):
            source = await self._sources(adapter, pod)
        self._allowed(adapter, source)
        return source

    def _wait(self, work: _PodWork, one: Waiting) -> None:
        """It is ready, and has so long until its turn must have come."""
        work.timers[one] = asyncio.get_running_loop().call_later(self._timeouts.turn, self._waited, work, one)
        work.wake.set()

    def _waited(self, work: _PodWork, one: Waiting) -> None:
        _stop(work, one)
        if work.line.drop(one):
            self._drop(one, f"its turn did not come within {self._timeouts.turn:g} s")

    # -- working

    async def _work(self, name: PodName, work: _PodWork) -> None:
        """Do everything that waits for one pod."""
        while len(work.line):
            one = work.line.take()
            if one is None:
                work.wake.clear()
                await work.wake.wait()
                continue
            work.current = one
            _stop(work, one)
            for adapter in tuple(one.left):
                await self._do(one, adapter)
            work.current = None
        del self._works[name]
        for driver in self._drivers.values():
            driver.forget(lambda pod: self._find(pod) is None)

    async def _do(self, one: Waiting, adapter: AdapterName) -> None:
        """Carry out a command for one adapter, and say what came of it."""
        command, began = one.command, time.monotonic()
        try:
            told = self._prepare(one, adapter)
            if isinstance(command, Load) and told.driver.loads_into_slot:
                self._submit(started(command, adapter))
            told_at = time.monotonic()
            outcome = await _sure(self._tell(command, adapter, told=told), f"{kind_of(command)} of {adapter}")
        except ProblemError as problem:
            if isinstance(problem, UnknownNameError):
                self._on_missing(command.pod)
            self._failed(one, adapter, problem=problem, seconds=time.monotonic() - began)
            return
        now = time.monotonic()
        self._end_one(one, adapter, outcome=outcome, seconds=now - began)
        self._submit(succeeded(command, adapter, outcome=outcome, seconds=now - told_at))

    def _still(self, name: PodName, address: str | None = None) -> Pod:
        """The pod now; raises ProblemError when it is gone, or not where it was."""
        pod = self._find(name)
        if pod is None:
            raise ProblemError("the pod is gone", outcome=Outcome.DROPPED)
        if address is not None and pod.address != address:
            raise ProblemError(f"the pod has moved from {address} to {pod.address} meanwhile")
        return pod

    def _prepare(self, one: Waiting, adapter: AdapterName) -> "_Told":
        """Find out who is told what; raises ProblemError."""
        pod = self._still(one.command.pod)
        driver = self._drivers.get(pod.engine)
        if driver is None or self._running is None:
            raise unsupported(pod.engine)
        return _Told(driver, Door(self._running.session, pod), self._place(one, adapter, driver=driver))

    def _place(self, one: Waiting, adapter: AdapterName, *, driver: EngineDriver) -> str | NoSourceError:
        """What the pod is told of where to load from; why nobody knows that. Raises ProblemError: it cannot be told."""
        remembered = driver.remembered(one.command.pod, adapter)
        place = remembered if remembered is not None else one.sources.get(adapter, _NOWHERE)
        if isinstance(place, ProblemError):
            raise place
        return place

    async def _tell(self, command: Command, adapter: AdapterName, *, told: "_Told") -> Outcome:
        """Tell the pod; raises ProblemError and what `Door` raises."""
        limit = self._timeouts.touch if isinstance(command, Touch) else self._timeouts.pod
        async with _within(limit, "no answer within {:g} s"):
            outcome = await told.call(command, adapter)
        self._still(command.pod, told.door.pod.address)
        return outcome

    # -- what came of it

    def _drop(self, one: Waiting, why: str) -> None:
        self._fail(one, ProblemError(why, outcome=Outcome.DROPPED))

    def _fail(self, one: Waiting, problem: ProblemError) -> None:
        for adapter in tuple(one.left):
            self._failed(one, adapter, problem=problem, seconds=None)

    def _failed(self, one: Waiting, adapter: AdapterName, *, problem: ProblemError, seconds: Seconds | None) -> None:
        command = one.command
        log.warning("pod %s did not %s %s: %s", command.pod, kind_of(command), adapter, problem)
        self._end_one(one, adapter, outcome=problem.outcome, seconds=seconds)
        self._submit(failed(command, adapter, problem=problem))

    def _end_one(self, one: Waiting, adapter: AdapterName, *, outcome: Outcome, seconds: Seconds | None) -> None:
        """From now on it has had its event."""
        one.left.remove(adapter)
        self._tally.end(kind_of(one.command), outcome, seconds=seconds)


@asynccontextmanager
async def _within(limit: Seconds, why: str) -> AsyncIterator[None]:
    """Raise ProblemError with `why` when the body takes longer than `limit`."""
    try:
        async with asyncio.timeout(limit):
            yield
    except TimeoutError:
        raise ProblemError(why.format(limit), outcome=Outcome.UNANSWERED) from None


async def _sure(work: Awaitable[T], what: str) -> T:
    """What `work` returns; whatever else comes of it is a ProblemError, but that nobody knows a source."""
    try:
        return await work
    except (NoSourceError, ProblemError):
        raise
    except SourceError as refused:
        raise ProblemError(str(refused), lasting=refused.lasting, outcome=Outcome.REFUSED) from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise ProblemError(f"{type(error).__name__}: {error}") from None
    except Exception as error:
        # A mistake of ours, or of who finds sources: that is answered too, since nobody may wait for ever.
        log.exception("%s", what)
        raise ProblemError(f"a mistake of the picker's: {error!r}") from None


def _stop(work: _PodWork, one: Waiting) -> None:
    """It waits no more, whatever became of it."""
    timer = work.timers.pop(one, None)
    if timer is not None:
        timer.cancel()
    work.wake.set()
