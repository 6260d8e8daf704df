"""Everything that shows thrash as thrash, in one place: fed by the handlers, read by alerts, views, metrics.

In: arrivals, dispatches, ends, refusals, changes of tiers. Out: what `core.signals.views` makes values of, and the
points of the last hour. It changes no decision. Not here: bounds (see `core.thrash_alarms`), counters since the start
(see `core.state.Tally`).

A request costs a handful of additions. Whatever looks at all pods or adapters is made when somebody asks, at most once
a second, and the fleet's own figures every `POINT_EVERY` seconds for alerts and the history.
"""

from collections import deque

from lorapick.core.residency.cells import PodResidency
from lorapick.core.signals.adapters import Courses
from lorapick.core.signals.handovers import Handovers
from lorapick.core.signals.outcomes import Outcomes
from lorapick.core.signals.stays import PodStays
from lorapick.core.signals.traffic import TrafficBins
from lorapick.core.signals.useful import UsefulTime
from lorapick.core.signals.windows import Sliding, merge, quantile
from lorapick.model.signals import (
    MOST_POINTS,
    POINT_EVERY,
    RATE_WINDOW,
    AdapterSignals,
    Change,
    FleetSignals,
    SignalPoint,
    Signals,
)
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds

_LOADING = Tier.LOADING
NEW_FOR: Seconds = 3600.0
"""For how long an adapter is new, and how long one must have watched to say so."""


class PodTrack:
    """What is counted of one pod."""

    __slots__ = ("asked", "believed", "hits", "name", "stays")

    def __init__(self, name: PodName) -> None:
        self.name = name
        self.stays = PodStays()
        self.asked = Sliding(RATE_WINDOW)
        """Requests for adapters that were served."""
        self.hits = Sliding(RATE_WINDOW)
        """Of these, those whose adapter had been there since before they were sent."""
        self.believed = Sliding(RATE_WINDOW)
        """Of these, those whose adapter was believed to be on the GPU when they were sent."""

    def turned_over(self, home: PodResidency, now: Seconds) -> bool:
        """Whether as many adapters left within the residency window as the pod has slots, and stayed for as short."""
        return self.stays.evictions.total(now) >= home.shadow.gpu_slots


class Tracker:
    """Counts what happens; see `core.signals.views` for what is made of it."""

    def __init__(self) -> None:
        self.began: Seconds | None = None
        """When the first event of ours came; None: there was none."""
        self.pods: dict[PodName, PodTrack] = {}
        self.traffic = TrafficBins()
        """Of the last hours, by adapter: for what changed."""
        self.courses = Courses(self.traffic)
        self.arrivals = Sliding(RATE_WINDOW)
        self.outcomes = Outcomes()
        self.useful = UsefulTime()
        self.handovers = Handovers()
        self.points: deque[SignalPoint] = deque(maxlen=MOST_POINTS)
        """Of the last hour, oldest first."""
        self.next_point: Seconds = float("-inf")
        self.latest: FleetSignals | None = None
        """As of the last point."""
        self._adapters: tuple[AdapterSignals, ...] = ()
        self._adapters_at: Seconds = float("-inf")
        self.kept: Signals | None = None
        """What was last looked at."""

    def watched(self, now: Seconds) -> Seconds:
        """For how long there has been anything to watch."""
        return 0.0 if self.began is None else now - self.began

    def pod(self, name: PodName) -> PodTrack:
        """What is counted of a pod, made on first use."""
        track = self.pods.get(name)
        if track is None:
            track = self.pods[name] = PodTrack(name)
        return track

    def gone(self, name: PodName) -> None:
        """A pod is gone."""
        self.pods.pop(name, None)
        self.useful.gone(name)
        self.handovers.gone(name)

    def arrived(self, name: AdapterName | None, *, now: Seconds) -> None:
        """A request arrived; None: for the base model."""
        if self.began is None:
            self.began = now
        self.arrivals.add(now)
        self.outcomes.arrived(now=now)
        if name is not None:
            self.traffic.arrived(name, now)
            self.courses.arrived(name, now=now)

    def dispatched(self, pod: PodName, *, now: Seconds) -> None:
        """A request went to a pod."""
        self.useful.dispatched(pod, now)

    def left(self, pod: PodName, *, sent: Seconds, now: Seconds) -> None:
        """A request that was sent to a pod at `sent` left it, in whatever way."""
        self.useful.ended(pod, now, sent=sent)

    def served(
        self, home: PodResidency, name: AdapterName, *, tier: Tier | None, sent: Seconds, seconds: Seconds, now: Seconds
    ) -> None:
        """A request for an adapter was served there; `tier` is what was believed when it was sent, at `sent`."""
        track, course, cell = self.pod(home.name), self.courses.of(name), home.cells.get(name)
        track.asked.add(now)
        track.stays.used(name, now=now)
        course.latency.add(seconds, now=now)
        if tier is not None and tier > _LOADING:
            track.believed.add(now)
        if cell is not None and cell.tier > _LOADING and cell.since <= sent:
            track.hits.add(now)
            course.hits.add(now)

    def changed(self, changes: list[Change]) -> None:
        """Adapters came to other tiers."""
        for change in changes:
            if change.restart and change.pod not in self.pods:
                continue  # the pod is gone, and what was counted of it
            self.useful.changed(change)
            stays = self.pod(change.pod).stays
            stay = stays.take(change)
            if change.before < _LOADING <= change.after:
                self.courses.of(change.adapter).loads.add(change.t)
            elif stay is not None:
                course = self.courses.of(change.adapter)
                course.evictions.add(change.t)
                course.stayed.add(change.t, int(1000 * stay))

    def adapters(self, now: Seconds) -> tuple[AdapterSignals, ...]:
        """Of all adapters; a thousand of them take milliseconds, so they are looked at every few seconds only."""
        if now - self._adapters_at >= POINT_EVERY:
            self.courses.forget(now)
            self._adapters = self.courses.signals(now=now, watched=self.watched(now))
            self._adapters_at = now
        return self._adapters

    def quantiles(self, shares: tuple[Ratio, ...], *, now: Seconds) -> list[Seconds | None]:
        """Of the residencies of all pods that ended lately."""
        merged = merge(track.stays.stays.merged(now) for track in self.pods.values())
        return [quantile(merged, share) for share in shares]
