"""Statistics of a run, in memory that does not grow with its length.

In: what the world tells an observer. Out: counts and histograms by window, merged on demand, and the check that
outcomes add up to arrivals. Not here: what only the pods know (see `sim.sampling`), whether what was told is what
happened (see `sim.conservation`), ratios (see `sim.metrics`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from lorapick.model.effects import Clear, Dispatch, Effect, Hold, Load, Raise, Reject, Touch, Unload
from lorapick.model.events import Event
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds
from lorapick.pod.values import (
    AdapterEvicted,
    FirstToken,
    PodEvent,
    RequestFinished,
    RequestStarted,
    SwapEnded,
    SwapFailed,
    SwapStarted,
)
from lorapick.sim.arrivals import Arrival
from lorapick.sim.bounds.yardstick import Yardstick
from lorapick.sim.histogram import Histogram
from lorapick.sim.observer import Handed
from lorapick.sim.residencies import Residencies
from lorapick.sim.windows import Part, Promise, Window

PHASES = ("drain", "deallocation", "transfer", "initialisation", "warm_up")
"""Of a swap, in order."""
_LOADING, _FOLLOWS = Tier.LOADING, Reason.HELD_FOR_LOAD
"""Found faster than the enum's members."""
QUIET: Seconds = 3600.0
"""After so long without a request, the next one for an adapter is its first one again, as that of a new day."""


class Stood(NamedTuple):
    """An alert that stood."""

    alert: str
    since: Seconds
    until: Seconds = inf


class _Flight:
    """One request between its arrival and its end."""

    __slots__ = ("adapter", "arrived", "began", "first", "follows", "held", "part", "window")

    def __init__(self, arrived: Seconds, adapter: AdapterName | None, *, window: Window | None) -> None:
        self.arrived = arrived
        self.adapter = adapter
        self.window = window
        """None: it came during the warm-up."""
        self.held: Seconds | None = None
        """Since when it waits at the picker; None: it does not."""
        self.follows = False
        """Whether it was held for another one's load."""
        self.began: Seconds | None = None
        """When its first token came; None: it has not."""
        self.first = False
        """Whether nobody had asked for its adapter for a while."""
        self.part: Part | None = None
        """None: it came during the warm-up, or its adapter is of none."""


class Tally:
    """An observer of `sim.world.World`."""

    def __init__(
        self,
        *,
        start: Seconds,
        window: Seconds,
        yardstick: Yardstick | None = None,
        parts: Mapping[str, Sequence[AdapterName]] | None = None,
        promise: Promise | None = None,
    ) -> None:
        """Count from `start`; what came before is warm-up and only kept track of."""
        self.parts = {name: Part() for name in parts or {}}
        """Requests for some adapters by themselves."""
        self._part_of = {adapter: self.parts[name] for name, adapters in (parts or {}).items() for adapter in adapters}
        self.promise = promise if promise is not None else Promise()
        self.start = start
        self.window = window
        self.windows: list[Window] = []
        self.early = 0
        """Requests that arrived during the warm-up."""
        self.holds = 0
        self.stood: list[Stood] = []
        """Alerts that the picker raised, those of the warm-up too."""
        self.dispatches: Counter[PodName] = Counter()
        self.swaps_from: Counter[str] = Counter()
        """Swaps by the tier that the adapter came from."""
        self.loads: Counter[PodName] = Counter()
        self.hits: Counter[PodName] = Counter()
        self.misses: Counter[PodName] = Counter()
        self.swap_seconds: Counter[str] = Counter()
        """Seconds by phase of all loads."""
        self.failed_loads = 0
        self.residencies = Residencies()
        self.hit_to_evict = Histogram()
        """From an adapter's last hit on a pod to its eviction there: short ones mean that hits are real and useless."""
        self.yardstick = yardstick
        """Told the order in which requests came and began service; None: nobody asks for bounds."""
        self._last_hit: dict[tuple[PodName, AdapterName], Seconds] = {}
        self._flights: dict[RequestId, _Flight] = {}
        self._last_came: dict[AdapterName, Seconds] = {}
        self._on: dict[type[PodEvent], Callable[[PodName, Any], None]] = {
            RequestStarted: self._started,
            FirstToken: self._first_token,
            RequestFinished: self._finished,
            SwapStarted: self._swap_started,
            SwapEnded: self._swap_ended,
            SwapFailed: self._swap_failed,
            AdapterEvicted: self._evicted,
        }

    # -- sim.world.Observer

    def arrived(self, arrival: Arrival) -> None:
        """A request arrived."""
        if self.yardstick is not None:
            self.yardstick.arrived(arrival)
        window, t = None, arrival.t
        if t >= self.start:
            window = self.window_at(t)
            window.arrivals += 1
        else:
            self.early += 1
        flight = self._flights[arrival.id] = _Flight(t, arrival.adapter, window=window)
        if arrival.adapter is not None:
            part = self._part_of.get(arrival.adapter)
            if window is not None and part is not None:
                flight.part = part
                part.arrivals += 1
            flight.first = t - self._last_came.get(arrival.adapter, 0.0) >= QUIET
            self._last_came[arrival.adapter] = t

    def applied(self, event: Event, effects: Sequence[Effect]) -> None:
        """Count dispatches by pod, holds, commands and alerts."""
        for effect in effects:
            if type(effect) is Dispatch:
                self._dispatched(effect, now=event.t)
            elif type(effect) is Hold:
                self._held(effect, now=event.t)
            elif type(effect) is Unload and event.t >= self.start:
                self.window_at(event.t).unloads += 1
            elif type(effect) is Reject:
                self._let_go(self._flights[effect.request_id], now=event.t)
            elif type(effect) is Raise:
                self.stood.append(Stood(str(effect.alert), event.t))
            elif type(effect) is Clear:
                self._cleared(effect.alert, now=event.t)
            elif type(effect) is Load and event.t >= self.start:
                self.window_at(event.t).commanded[effect.why] += len(effect.adapters)
            elif type(effect) is Touch and event.t >= self.start:
                self.window_at(event.t).touches += 1

    def _dispatched(self, effect: Dispatch, *, now: Seconds) -> None:
        self.dispatches[effect.target.pod] += 1
        flight, tier = self._flights[effect.request_id], effect.pick.tier
        if flight.held is not None:
            self._let_go(flight, now=now)
        if flight.window is not None and tier is not None:
            flight.window.followed += tier is _LOADING or (flight.follows and tier > _LOADING)

    def _held(self, effect: Hold, *, now: Seconds) -> None:
        self.holds += 1
        flight = self._flights[effect.request_id]
        flight.follows = flight.follows or effect.reason is _FOLLOWS
        if flight.held is None:
            flight.held = now
            if flight.window is not None:
                flight.window.held += 1

    def _cleared(self, alert: str, *, now: Seconds) -> None:
        place = max(place for place, stood in enumerate(self.stood) if stood.alert == alert)
        self.stood[place] = self.stood[place]._replace(until=now)

    def alerts(self, start: Seconds, end: Seconds) -> dict[str, int]:
        """How often each alert stood at some time in [start, end)."""
        return dict(Counter(each.alert for each in self.stood if each.since < end and start < each.until))

    def _let_go(self, flight: _Flight, *, now: Seconds) -> None:
        if flight.held is not None and flight.window is not None:
            flight.window.held_for.add(now - flight.held)
        flight.held = None

    def happened(self, pod: PodName, event: PodEvent) -> None:
        """A pod did something."""
        handler = self._on.get(type(event))
        if handler is not None:
            handler(pod, event)

    def prefilling(self, pod: PodName, event: PodEvent) -> None:
        """A pod did something with a request that it prefills for another pod."""
        if not isinstance(event, RequestStarted):
            return
        flight = self._flights[event.request_id]
        adapter, window = flight.adapter, flight.window
        if adapter is None:
            return
        if event.hit:
            self._last_hit[pod, adapter] = event.t
        if window is not None:
            window.prefill_hits += event.hit
            window.prefill_misses += not event.hit
            (self.hits if event.hit else self.misses)[pod] += 1

    def fetching(self, request_id: RequestId, seconds: Seconds) -> None:
        """KV begins to go from pod to pod."""
        window = self._flights[request_id].window
        if window is not None:
            window.transfer.add(seconds)

    def handed(self, request_id: RequestId, what: Handed) -> None:
        """A request is handed from pod to pod, or is not."""
        window = self._flights[request_id].window
        if window is not None:
            window.handed[what] += 1

    def restarted(self, pod: PodName, now: Seconds) -> None:
        """A pod's process died: nothing is loaded there."""
        self.residencies.restarted(pod, now)

    def ended(self, request_id: RequestId, outcome: Outcome, *, now: Seconds) -> None:
        """A request left."""
        flight = self._flights.pop(request_id)
        window = flight.window
        if window is None:
            return
        if outcome is Outcome.SERVED:
            window.served += 1
            window.latency.add(now - flight.arrived)
            ttft = (flight.began or now) - flight.arrived
            window.good += self.promise.kept(ttft=ttft, latency=now - flight.arrived)
            if flight.part is not None:
                flight.part.served += 1
                flight.part.latency.add(now - flight.arrived)
        elif outcome is Outcome.FAILED:
            window.failed += 1
        elif outcome is Outcome.REJECTED:
            window.rejected += 1
        else:
            window.abandoned += 1

    # -- what pods do

    def _started(self, pod: PodName, event: RequestStarted) -> None:
        flight = self._flights[event.request_id]
        adapter = flight.adapter
        if adapter is None:
            return
        if self.yardstick is not None:
            self.yardstick.started(adapter, event.t)
        if event.hit:
            self._last_hit[pod, adapter] = event.t
        window = flight.window
        if window is None:
            return
        if event.hit:
            window.hits += 1
            self.hits[pod] += 1
        else:
            window.misses += 1
            self.misses[pod] += 1

    def _first_token(self, pod: PodName, event: FirstToken) -> None:
        del pod
        flight = self._flights[event.request_id]
        flight.began, window = event.t, flight.window
        if window is not None:
            window.ttft.add(event.t - flight.arrived)
            if flight.part is not None:
                flight.part.ttft.add(event.t - flight.arrived)
            if flight.first:
                window.first_ttft.add(event.t - flight.arrived)

    def _finished(self, pod: PodName, event: RequestFinished) -> None:
        del pod
        flight = self._flights[event.request_id]
        window = flight.window
        if window is not None:
            window.output_tokens += event.output_tokens
            if flight.began is not None and event.output_tokens > 1:
                window.tpot.add((event.t - flight.began) / (event.output_tokens - 1))
            window.waited += event.waited_for_load
            cold = event.waited_for_load or flight.follows
            window.cold += cold
            if flight.part is not None:
                flight.part.cold += cold

    def _swap_started(self, pod: PodName, event: SwapStarted) -> None:
        self.residencies.loaded(pod, event.adapter, now=event.t)
        if event.t < self.start:
            return
        window = self.window_at(event.t)
        window.loads += 1
        self.loads[pod] += 1
        if event.waited:
            self.swaps_from[event.tier_from.word] += 1
            window.swaps[pod] += 1

    def _swap_ended(self, pod: PodName, event: SwapEnded) -> None:
        del pod
        if event.t >= self.start:
            for phase in PHASES:
                self.swap_seconds[phase] += getattr(event, phase)

    def _swap_failed(self, pod: PodName, event: SwapFailed) -> None:
        self.failed_loads += 1
        self.residencies.evicted(pod, event.adapter, now=event.t)

    def _evicted(self, pod: PodName, event: AdapterEvicted) -> None:
        if event.tier is Tier.DISK:
            return  # it left host memory, having left the GPU before
        self.residencies.evicted(pod, event.adapter, now=event.t)
        hit = self._last_hit.pop((pod, event.adapter), None)
        if hit is not None and event.t >= self.start:
            self.hit_to_evict.add(event.t - hit)

    def window_at(self, t: Seconds) -> Window:
        """The window of a time at or after the start; made when needed."""
        index, windows = int((t - self.start) / self.window), self.windows
        while len(windows) <= index:
            windows.append(Window(self.start + len(windows) * self.window))
        return windows[index]

    # -- checks

    def in_flight(self, start: Seconds, end: Seconds) -> int:
        """Requests that arrived in [start, end) and have not left."""
        return sum(start <= each.arrived < end for each in self._flights.values() if each.window is not None)

    @property
    def arrivals(self) -> int:
        """All of them, the warm-up's too."""
        return self.early + sum(each.arrivals for each in self.windows)

    def check(self) -> None:
        """Outcomes add up to arrivals, or AssertionError that says what differs."""
        in_flight = sum(each.window is not None for each in self._flights.values())
        ended = sum(each.served + each.failed + each.rejected + each.abandoned for each in self.windows)
        arrivals = sum(each.arrivals for each in self.windows)
        assert ended + in_flight == arrivals, f"{arrivals} arrivals, {ended} ended, {in_flight} in flight"
