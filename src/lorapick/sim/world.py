"""One simulated fleet: the live decision core and the live pod model, driven from a heap instead of sockets.

In: settings, pods, a stream of arrivals, planned changes. Out: what happened, to an observer, as it happens.
The same calls are made as live: `Fleet.apply` with the same events, and what a pod's HTTP server does with
`PodEngine`. Effects that take time come back as events. Not here: statistics (see `sim.tally`), files, chance
(arrivals come with their sizes; each pod is given its stream of draws).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any

from lorapick.core.fleet import Fleet
from lorapick.model import events as said
from lorapick.model.effects import Dispatch, Effect, Load, Register, Reject, Solve, Touch, Unload
from lorapick.model.events import Event
from lorapick.model.pods import Pod, SilentWhy
from lorapick.model.requests import Outcome, Request
from lorapick.model.units import PodName, RequestId, Seconds
from lorapick.pod.engine import PodEngine
from lorapick.pod.values import (
    AdapterUnloaded,
    FirstToken,
    PodConfig,
    PodEvent,
    RequestFailed,
    RequestFinished,
    SwapEnded,
    SwapFailed,
)
from lorapick.sim.arrivals import Arrival
from lorapick.sim.commands import Commands
from lorapick.sim.deadlock import Deadlock, require_found
from lorapick.sim.kernel import Kernel, Priority
from lorapick.sim.observer import Observer
from lorapick.sim.sending import Sending
from lorapick.sim.setup import Setup
from lorapick.sim.simpod import SimPod

# Looking a member up in its enum takes longer than what is done with it here.
_POD, _SCRAPE, _TICK, _CHANGE, _ARRIVAL = (int(each) for each in Priority)
_SERVED, _FAILED, _REJECTED = Outcome.SERVED, Outcome.FAILED, Outcome.REJECTED


class World:
    """The fleet, its pods and the clock."""

    check_every: int | None = None
    """Check the core's and the pods' invariants after every so many events of the core; None: never."""

    def __init__(self, setup: Setup, *, observer: Observer, seed: int) -> None:
        """Make everything; nothing happens before `run`."""
        self.heard: Callable[[Event, Sequence[Effect]], None] | None = None
        """Told of every event with its effects, those without any too: for event logs."""
        self.kernel = Kernel()
        self.setup = setup
        self.settings = setup.settings
        self.fleet = Fleet(setup.settings, seed=seed, journal=setup.journal)
        self.observer = observer
        self._names = tuple(spec.name for spec in setup.adapters)
        self.spec = {spec.name: spec for spec in setup.adapters}.__getitem__
        """What is known of an adapter."""
        self.drawn = 0
        """Requests that the workload gave for the time up to the run's end, followers included."""
        self._until: Seconds = inf
        self._events = 0
        self._tick_at: Seconds | None = None
        self._arrivals: Iterator[Arrival] = iter(())
        self._exhausted = True
        self.open: dict[RequestId, Arrival] = {}
        """Arrivals in flight: their sizes are needed at dispatch."""
        self._followers = setup.followers
        self._coming = 0
        """Followers that are scheduled and have not arrived."""
        commands = self._commands = Commands(self)
        self._sending = Sending(self)
        self._actions: dict[type[Effect], Callable[[Any], None]] = {
            Dispatch: self._sending.dispatch,
            Reject: self._reject,
            Load: commands.load,
            Unload: commands.unload,
            Register: commands.register,
            Touch: commands.touch,
            Solve: commands.solve,
        }
        """Holds need none: `_arm` wakes the core in time. Notes and alerts are the observer's."""
        self._reactions: dict[type[PodEvent], Callable[[SimPod, Any], None]] = {
            RequestFinished: self._finished,
            RequestFailed: self._failed,
            SwapEnded: commands.loaded,
            SwapFailed: commands.not_loaded,
            AdapterUnloaded: commands.unloaded,
        }
        if setup.tells_starts:
            self._reactions[FirstToken] = self._first_token
        self.pods: dict[PodName, SimPod] = {}
        """Those that are gone or have not come yet too; their time is down time."""
        for pod, config in setup.pods:
            self.add_pod(pod, config, listed=pod.name not in setup.later)

    # -- the run

    def run(self, arrivals: Iterable[Arrival], *, until: Seconds | None = None) -> None:
        """Play a stream of arrivals; with `until`, stop there, else when every request has left.

        Raises:
            Deadlock: requests wait and nothing will ever end them, or nobody has them at the end.
        """
        self._until = inf if until is None else until
        self._arrivals = iter(arrivals)
        self._exhausted = False
        self._take_next()
        self._first_scrapes()
        if until is not None:
            self.kernel.run(until)
            self.settle()
            open_ones = {name: each for name, each in self.open.items() if not self._sending.has(name)}
            require_found(open_ones, self.fleet.state.flights, pods=self.pods, now=until)
            return
        while self._under_way() and self.kernel.step():
            pass
        if self.open:
            raise Deadlock(self.open)

    def _under_way(self) -> bool:
        return not self._exhausted or bool(self.open) or self._coming > 0

    def add_pod(self, pod: Pod, config: PodConfig, *, listed: bool = True) -> None:
        """A pod appears, with nothing loaded; or is only known of, until `return_pod`."""
        now, setup = self.kernel.now, self.setup
        draw = setup.draws(pod.name) if setup.draws is not None else None
        engine = PodEngine(config, setup.adapters, now=now, draw=draw, retention=setup.retention)
        sim = SimPod(pod, engine, names=self._names, reports_loaded=setup.reports_loaded, now=now)
        self.pods[pod.name] = sim
        if listed:
            self.apply(said.PodAppeared, pod=pod)
            self._report(sim)
        else:
            sim.die(now)
            sim.listed = False

    def restart_pod(self, name: PodName, *, down: Seconds) -> None:
        """A pod's process dies now and is back, empty, after `down` seconds. One that is not there does not."""
        sim, now = self.pods[name], self.kernel.now
        if not sim.alive:
            return
        self._die(sim)
        self.apply(said.PodSilent, pod=name, why=SilentWhy.REFUSED)
        self.kernel.at(now + down, self._back, argument=sim, priority=_CHANGE)

    def remove_pod(self, name: PodName) -> None:
        """Discovery no longer names a pod, and its process ends with all that it has."""
        sim = self.pods[name]
        if sim.alive:
            self._die(sim)
        sim.listed = False
        self.apply(said.PodGone, pod=name)

    def return_pod(self, name: PodName) -> None:
        """A pod appears, with nothing loaded; one that is there already drains no longer."""
        sim = self.pods[name]
        if not sim.listed:
            sim.listed = True
            sim.rise(self.kernel.now)
        self.apply(said.PodAppeared, pod=sim.pod)
        if sim.alive:
            self._report(sim)

    def _die(self, sim: SimPod) -> None:
        now = self.kernel.now
        self.advance(sim)
        lost = sim.die(now)
        self.observer.restarted(sim.pod.name, now)
        for request_id in self._commands.died(sim, self._sending.died(sim, lost)):
            self._broken(request_id, 502)

    def _back(self, sim: SimPod) -> None:
        if sim.listed and not sim.alive:
            sim.rise(self.kernel.now)
            self._report(sim)

    def apply(self, kind: Callable[..., Event], **fields: Any) -> None:
        """Hand the core an event of `kind`, now, and perform what it says."""
        self._hear(kind(t=self.kernel.now, id=self._number(), **fields))

    def _number(self) -> int:
        self._events += 1
        return self._events

    def _hear(self, event: Event) -> None:
        fleet = self.fleet
        effects = fleet.apply(event, event.t)
        if self.heard is not None:
            self.heard(event, effects)
        if effects:
            self.observer.applied(event, effects)
            actions = self._actions
            for effect in effects:
                act = actions.get(type(effect))
                if act is not None:
                    act(effect)
        due = fleet.next_wakeup()
        if due is not None and (self._tick_at is None or due < self._tick_at):
            self._tick_at = max(due, event.t)
            self.kernel.at(self._tick_at, self._tick, priority=_TICK)
        if self.check_every is not None and event.id % self.check_every == 0:
            self.check()

    def check(self) -> None:
        """Raise AssertionError when an invariant of the core or of a pod is broken."""
        self.fleet.check()
        for sim in self.pods.values():
            if sim.alive:
                sim.engine.check()

    # -- requests

    def _take_next(self) -> None:
        arrival = next(self._arrivals, None)
        if arrival is None:
            self._exhausted = True
        else:
            self._draw(arrival)
            self.kernel.at(max(arrival.t, self.kernel.now), self._arrive, argument=arrival, priority=_ARRIVAL)

    def _draw(self, arrival: Arrival) -> None:
        self.drawn += arrival.t <= self._until

    def _arrive(self, arrival: Arrival) -> None:
        self._enter(arrival)
        # Only now: a stream that is longer than memory is never held.
        self._take_next()

    def _follow(self, arrival: Arrival) -> None:
        self._coming -= 1
        self._enter(arrival)

    def _enter(self, arrival: Arrival) -> None:
        self.open[arrival.id] = arrival
        self.observer.arrived(arrival)
        request = Request(
            id=arrival.id,
            model=arrival.adapter if arrival.adapter is not None else self.settings.base_model,
            prompt_tokens=arrival.prompt_tokens,
            blocks=arrival.blocks,
            max_tokens=arrival.output_tokens,
            stream=True,
            priority=arrival.priority,
            session=arrival.session,
            tenant=arrival.tenant,
        )
        self._hear(said.RequestArrived(t=self.kernel.now, id=self._number(), request=request))

    def _reject(self, effect: Reject) -> None:
        del self.open[effect.request_id]
        self.observer.ended(effect.request_id, _REJECTED, now=self.kernel.now)

    def end(self, request_id: RequestId, outcome: Outcome, *, status: int) -> None:
        """A request leaves: its client has the answer, or an error."""
        now, arrival = self.kernel.now, self.open.pop(request_id)
        self.observer.ended(request_id, outcome, now=now)
        ended = said.RequestEnded(t=now, id=self._number(), request_id=request_id, outcome=outcome, status=status)
        self._hear(ended)
        if self._followers is not None and outcome is _SERVED:
            for follower in self._followers.after_end(arrival, now):
                self._coming += 1
                self._draw(follower)
                self.kernel.at(follower.t, self._follow, argument=follower, priority=_ARRIVAL)

    # -- pods

    def rewake(self, sim: SimPod) -> None:
        """Wake a pod when it has something to say, unless it is woken before."""
        # First tokens are not waited for: they change nothing, and are handed out with what comes next.
        due = sim.engine.next_change() if self.setup.tells_starts else sim.engine.next_end()
        if due is not None and (sim.due is None or due < sim.due):
            sim.due = due
            self.kernel.at(due, self._wake, argument=sim, priority=_POD)

    def _wake(self, sim: SimPod) -> None:
        if sim.due != self.kernel.now:
            return  # a sooner wake has overtaken this one, and set what comes next
        sim.due = None
        self.advance(sim)
        self.rewake(sim)

    def settle(self) -> None:
        """Let all pods live up to now, until none has anything more to say."""
        while any(self.advance(sim) for sim in self.pods.values()):
            pass

    def advance(self, sim: SimPod) -> bool:
        """Let a pod live up to now, and pass on what it did; whether it did anything."""
        events = sim.engine.advance(self.kernel.now)
        if not events:
            return False
        sim.note_slots(self.kernel.now)
        happened, reactions, name = self.observer.happened, self._reactions, sim.pod.name
        for event in events:
            if self._commands.ours(event) or self._sending.ours(sim, event):
                continue
            happened(name, event)
            react = reactions.get(type(event))
            if react is not None:
                react(sim, event)
        return True

    def _finished(self, _: SimPod, event: RequestFinished) -> None:
        self.end(event.request_id, _SERVED, status=200)

    def _first_token(self, _: SimPod, event: FirstToken) -> None:
        self.apply(said.BodyStarted, request_id=event.request_id)

    def _failed(self, _: SimPod, event: RequestFailed) -> None:
        self._broken(event.request_id, 500)

    def _broken(self, request_id: RequestId, status: int) -> None:
        # A stream's headers came when the pod took it; they only change what its failure means, so they may come now.
        if not self.setup.tells_starts:
            self.apply(said.ResponseStarted, request_id=request_id, status=200)
        self.end(request_id, _FAILED, status=status)

    # -- scrapes and ticks

    def _first_scrapes(self) -> None:
        """Spread over one interval, as live."""
        interval = self.settings.scrape.interval
        for number, sim in enumerate(self.pods.values(), start=1):
            first = self.kernel.now + interval * number / len(self.pods)
            self.kernel.at(first, self._scrape, argument=sim, priority=_SCRAPE)

    def _scrape(self, sim: SimPod) -> None:
        if sim.alive:
            self._report(sim)
        elif sim.listed and self._under_way():
            self.apply(said.PodSilent, pod=sim.pod.name, why=SilentWhy.REFUSED)
        if self._under_way():
            if self._stuck():
                raise Deadlock(self.open)
            due = self.kernel.now + self.settings.scrape.interval
            self.kernel.at(due, self._scrape, argument=sim, priority=_SCRAPE)

    def _report(self, sim: SimPod) -> None:
        now = self.kernel.now
        self.advance(sim)
        report = sim.scrape.report(sim.engine, now)
        self._hear(said.PodReported(t=now, id=self._number(), pod=sim.pod.name, report=report))

    def _tick(self, _: None) -> None:
        if self._tick_at != self.kernel.now:
            return  # a sooner tick has overtaken this one, and set what comes next
        self._tick_at = None
        wall = self.setup.midnight
        self.apply(said.Ticked, wall=None if wall is None else wall + self.kernel.now)

    # -- faults of ours

    def _stuck(self) -> bool:
        """Whether requests wait for something that nobody has scheduled."""
        return (
            self._exhausted
            and not self._coming
            and not self._sending.fetching
            and bool(self.open)
            and self.fleet.next_wakeup() is None
            and all(sim.alive and sim.engine.next_change() is None for sim in self.pods.values())
        )
