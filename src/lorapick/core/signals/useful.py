"""How much of the time that pods are busy goes into inference, as far as the picker's own traffic tells.

In: dispatches and ends of requests, loads that begin. Out: seconds busy, and of these seconds useful, per pod: since
the start, and shares of the last minute. Inference / (inference + drain + transfer + warm-up) is meant.
Not here: what pods say of themselves (no engine says this), loads that nobody knows of.

A pod is busy while a request of ours is there. Loads stall it: one after another, each for what a load from its tier
takes. That is what is configured, or less where answers show so: the quickest of those that waited for a load took so
much longer than the quickest of those that did not. When none is believed to be under way, none stalls.

An engine that drains runs its batch empty before it loads, and lets nobody join meanwhile. Then the load comes when the
last of those that ran has ended; what is empty of the room they took is lost too. Whether a pod drains is learnt: none
that was sent after a load began ends there before all that were sent before it.
"""

from collections import deque
from copy import copy
from math import inf

from lorapick.model.settings import LoadTimes
from lorapick.model.signals import RATE_WINDOW, Change
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds

MARK_EVERY: Seconds = 5.0
"""Between two totals that are kept to look back at."""
OVERTAKEN_AT_FIRST = 0.3
"""Share of loads during which somebody is overtaken, before any was seen: the engine does not drain."""
DRAINS_BELOW = 0.12
"""Share below which it does. One that drains has 0, but for answers that arrive in another order than they ended."""
FADING = 0.04
"""Weight of one load against all before."""
REMEMBERED = 64
"""Answers of each kind from which the quickest are taken."""
SPARED = 2
"""Quickest ones that are not believed."""
LEAST_OLD = 2
"""Requests that must run when a load begins for their order to say anything."""


class Stalls:
    """What one pod does at the moment, and what it has done."""

    def __init__(self, now: Seconds) -> None:
        self.t = now
        self.busy: Seconds = 0.0
        self.useful: Seconds = 0.0
        self.drains = False
        self.running = 0
        """Requests of ours in the batch, as far as that can be told. Without drains: all."""
        self.width = 0
        """Those when the drain began."""
        self.waiting = 0
        """Requests that join after the loads that come next, or run."""
        self.behind = 0
        """Requests behind one whose load is not among those that run."""
        self.stall: Seconds = 0.0
        """What the loads that run will still take."""
        self.debt: Seconds = 0.0
        """What loads will take for which the batch has to be empty first."""

    @property
    def in_flight(self) -> int:
        """Requests of ours."""
        return self.running + self.waiting + self.behind

    def advance(self, now: Seconds) -> None:
        """Live up to now."""
        while self.stall > 0.0 and self.t < now:
            self._stall(min(self.stall, now - self.t))
        left = max(0.0, now - self.t)
        if self.running:
            self.busy += left
            self.useful += left * (self.running / self.width if self.debt else 1.0)
        self.t = max(self.t, now)

    def _stall(self, seconds: Seconds) -> None:
        self.busy += seconds
        self.t += seconds
        self.stall -= seconds
        if self.stall <= 1e-9:
            self.stall = 0.0
            self._join()

    def _join(self) -> None:
        """The loads are over: who waited for them runs."""
        self.running += self.waiting
        self.width = max(1, self.running)
        self.waiting, self.behind = self.behind, 0
        self._settle()

    def _settle(self) -> None:
        """Once the batch is empty, all loads come that somebody waits for."""
        if self.debt and not self.running and not self.stall:
            self.stall, self.debt = self.debt, 0.0
            self.waiting, self.behind = self.waiting + self.behind, 0

    def begin(self) -> None:
        """One request more."""
        if not self.drains or not (self.stall or self.debt):
            self.running += 1
        elif self.stall and self.debt:
            self.behind += 1
        else:
            self.waiting += 1

    def end(self) -> None:
        """One less: who runs ends before who waits."""
        if self.running:
            self.running -= 1
        elif self.waiting:
            self.waiting -= 1
        elif self.behind:
            self.behind -= 1
        if not self.in_flight:
            self.stall = self.debt = 0.0  # what loads now costs nobody anything
        self._settle()

    def none_loads(self) -> None:
        """No load is under way, as far as we believe. Says nothing of one that a drain comes before."""
        if not self.drains and self.stall:
            self.stall = 0.0
            self._join()

    def load(self, seconds: Seconds, *, newest_waits: bool) -> None:
        """A load is wanted; maybe the request that came last waits for it."""
        if not self.drains:
            self.stall += seconds
            return
        if not self.debt and newest_waits:
            if self.stall:
                self.waiting, self.behind = self.waiting - 1, self.behind + 1
            else:
                self.running, self.waiting = self.running - 1, self.waiting + 1
        if not self.debt and not self.stall:
            self.width = max(1, self.running)
        self.debt += seconds
        self._settle()

    def drop(self, seconds: Seconds) -> None:
        """A load is no longer wanted, or has failed."""
        self.debt = max(0.0, self.debt - seconds)
        if not self.debt and not self.stall:
            self._join()

    def restart(self) -> None:
        """The process is new, and loads nothing."""
        self.stall = self.debt = 0.0
        self.running, self.waiting, self.behind = self.in_flight, 0, 0

    def become(self, drains: bool) -> None:
        """Take the engine for one that drains, or for one that does not."""
        self.drains = drains
        self.stall += self.debt
        self.debt = 0.0
        self.running, self.waiting, self.behind = self.in_flight, 0, 0


class Answers:
    """What answers of one pod took from their dispatch, at the quickest."""

    __slots__ = ("_least", "_seen")

    def __init__(self) -> None:
        self._seen: dict[Tier | None, deque[Seconds]] = {}
        """The last ones, by the tier that their load came from; None: there was no load."""
        self._least: dict[Tier | None, Seconds] = {}

    def took(self, came_from: Tier | None, seconds: Seconds) -> None:
        """One answer."""
        seen = self._seen.setdefault(came_from, deque(maxlen=REMEMBERED))
        gone = seen[0] if len(seen) == REMEMBERED else inf
        seen.append(seconds)
        least = self._least.get(came_from, inf)
        if len(seen) > SPARED and min(seconds, gone) <= least:  # else it is what it was
            self._least[came_from] = sorted(seen)[SPARED]

    def load(self, tier: Tier) -> Seconds | None:
        """What a load from a tier takes; None: too few answers were seen."""
        with_load, without = self._least.get(tier), self._least.get(None)
        return None if with_load is None or without is None else max(0.0, with_load - without)


class Order:
    """Whether requests overtake at a pod those that were there when a load began."""

    __slots__ = ("_began", "_causes", "_old", "overtaken")

    def __init__(self) -> None:
        self.overtaken: Ratio = OVERTAKEN_AT_FIRST
        """Of loads."""
        self._began: Seconds = inf
        """When the load began that is watched; infinity: none is."""
        self._old = 0
        """Requests sent before that and not ended."""
        self._causes: dict[Seconds, None] = {}
        """When requests were sent that caused loads and have not ended."""

    def load(self, others: int, *, now: Seconds, newest_waits: bool) -> None:
        """A load begins while `others` requests are there."""
        # While somebody waits for a load already, those behind it wait too, and may end in any order.
        if self._began == inf and others >= LEAST_OLD and not self._causes:
            self._began, self._old = now, others
        if newest_waits:
            self._causes[now] = None

    def ended(self, sent: Seconds) -> None:
        """A request that was sent then has ended."""
        self._causes.pop(sent, None)
        if self._began == inf:
            return
        old = sent < self._began
        self._old -= old
        if not old or not self._old:
            self._began = inf
            self.overtaken += FADING * ((not old) - self.overtaken)

    def restart(self) -> None:
        """What was there has gone."""
        self._began = inf
        self._causes.clear()


class _Pod:
    """One pod: now, and at some times of the last minute."""

    __slots__ = ("answers", "loads", "marks", "newest", "order", "stalls")

    def __init__(self, now: Seconds) -> None:
        self.stalls = Stalls(now)
        self.order = Order()
        self.answers = Answers()
        self.loads: dict[AdapterName, Seconds] = {}
        """Loads believed to be under way, and what each is taken to take."""
        self.newest: Seconds = -inf
        """When the last request came."""
        self.marks: deque[tuple[Seconds, Seconds, Seconds]] = deque([(now, 0.0, 0.0)])
        """Time, busy and useful; the first is as old as the window, or the pod's begin."""

    def advance(self, now: Seconds) -> Stalls:
        """Live up to now."""
        if now >= self.marks[-1][0] + MARK_EVERY:
            self._mark()  # between two marks everything is even, so one stands at the begin of a long silence too
            self.stalls.advance(now)
            self._mark()
            while len(self.marks) > 1 and self.marks[1][0] <= now - RATE_WINDOW:
                self.marks.popleft()
        else:
            self.stalls.advance(now)
        return self.stalls

    def _mark(self) -> None:
        stalls = self.stalls
        if stalls.t > self.marks[-1][0]:
            self.marks.append((stalls.t, stalls.busy, stalls.useful))

    def at(self, now: Seconds) -> Stalls:
        """As of now, a copy: to look changes nothing."""
        ahead = copy(self.stalls)
        ahead.advance(now)
        return ahead

    def window(self, now: Seconds) -> tuple[Seconds, Seconds]:
        """Busy and useful over the last minute."""
        end, last, since = self.at(now), self.stalls, now - RATE_WINDOW
        before = after = self.marks[0]
        for after in (*self.marks, (last.t, last.busy, last.useful), (now, end.busy, end.useful)):
            if after[0] > since:
                break
            before = after
        share = max(0.0, since - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
        busy, useful = (early + share * (late - early) for early, late in zip(before[1:], after[1:], strict=True))
        return end.busy - busy, end.useful - useful


class UsefulTime:
    """Of all pods. Within one event, tell the request before the load that it causes."""

    def __init__(self) -> None:
        self.load_times = LoadTimes()
        """What loads take, as configured: the most that they are taken for."""
        self._pods: dict[PodName, _Pod] = {}

    def _load_seconds(self, tier: Tier) -> Seconds:
        return self.load_times.cpu if tier is Tier.CPU else self.load_times.disk

    def dispatched(self, pod: PodName, now: Seconds) -> None:
        """A request is on its way to a pod."""
        found = self._pods.get(pod) or self._pods.setdefault(pod, _Pod(now))
        found.advance(now).begin()
        found.newest = now

    def ended(self, pod: PodName, now: Seconds, *, sent: Seconds | None = None) -> None:
        """A request is no longer there, whatever became of it. None: nobody knows when it was sent there."""
        found = self._pods.get(pod)
        if found is None:
            return
        stalls = found.advance(now)
        stalls.end()
        if sent is None:
            return
        found.order.ended(sent)
        drains = found.order.overtaken < DRAINS_BELOW
        if drains is not stalls.drains:
            stalls.become(drains)

    def answered(self, pod: PodName, seconds: Seconds, *, tier: Tier) -> None:
        """A request was served within `seconds` of its dispatch, when its adapter was believed in `tier`."""
        found = self._pods.get(pod)
        if found is not None and tier is not Tier.LOADING:
            found.answers.took(None if tier.on_gpu else tier, seconds)

    def changed(self, change: Change) -> None:
        """An adapter came to another tier."""
        now = change.t
        found = self._pods.get(change.pod) or self._pods.setdefault(change.pod, _Pod(now))
        stalls = found.advance(now)
        if change.restart:
            stalls.restart()
            found.order.restart()
            found.loads.clear()
        elif change.after is Tier.LOADING:
            newest_waits = change.waited_for and found.newest == now
            seen = found.answers.load(change.before)
            takes = self._load_seconds(change.before)
            takes = found.loads[change.adapter] = takes if seen is None else min(takes, seen)
            stalls.load(takes, newest_waits=newest_waits)
            found.order.load(stalls.in_flight - newest_waits, now=now, newest_waits=newest_waits)
        elif change.before is Tier.LOADING:
            takes = found.loads.pop(change.adapter, 0.0)
            if not change.after.on_gpu:
                stalls.drop(takes)
            if not found.loads:
                stalls.none_loads()

    def gone(self, pod: PodName) -> None:
        """Forget a pod."""
        self._pods.pop(pod, None)

    def share(self, pod: PodName, now: Seconds) -> Ratio | None:
        """Useful / busy of one pod over `RATE_WINDOW`; None: it was idle, or is not known."""
        found = self._pods.get(pod)
        return _ratio(*found.window(now)) if found is not None else None

    def fleet(self, now: Seconds) -> Ratio | None:
        """The same of all pods together."""
        windows = [pod.window(now) for pod in self._pods.values()]
        return _ratio(sum(busy for busy, _ in windows), sum(useful for _, useful in windows))

    def busy_share(self, now: Seconds) -> Ratio | None:
        """Of the time of all pods over `RATE_WINDOW`, that in which they were busy; None: no pod is known."""
        busy = [pod.window(now)[0] for pod in self._pods.values()]
        return min(1.0, sum(busy) / (len(busy) * RATE_WINDOW)) if busy else None

    def totals(self, now: Seconds) -> dict[PodName, tuple[Seconds, Seconds]]:
        """Busy and useful seconds of each pod since it was first heard of: they only grow."""
        return {name: (end.busy, end.useful) for name, end in ((name, pod.at(now)) for name, pod in self._pods.items())}


def _ratio(busy: Seconds, useful: Seconds) -> Ratio | None:
    return min(1.0, useful / busy) if busy > 0.0 else None
