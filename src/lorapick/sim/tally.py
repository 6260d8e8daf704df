"""Statistics of a run, in memory that does not grow with its length.

In: what the world tells an observer. Out: counts, histograms and time series for a report, and the conservation
checks: outcomes add up to arrivals, residencies to slots in use times time.
Not here: where GPU time went (the pods know; see `sim.run`), layout (see `sim.report`).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from lorapick.model.effects import Dispatch, Effect, Hold
from lorapick.model.events import Event
from lorapick.model.requests import Outcome
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds
from lorapick.pod.values import (
    AdapterEvicted,
    FirstToken,
    PodEvent,
    RequestFinished,
    RequestStarted,
    SwapEnded,
    SwapStarted,
)
from lorapick.sim.arrivals import Arrival
from lorapick.sim.histogram import Histogram
from lorapick.sim.residencies import Residencies


class Window:
    """What happened in one stretch of the run."""

    __slots__ = ("arrivals", "hits", "latency", "misses", "start", "swaps", "ttft", "waited")

    def __init__(self, start: Seconds) -> None:
        self.start = start
        self.arrivals = 0
        self.waited = 0
        """Requests that waited for a load."""
        self.hits = 0
        self.misses = 0
        self.swaps: Counter[PodName] = Counter()
        self.latency = Histogram()
        self.ttft = Histogram()


class Tally:
    """An observer of `sim.world.World`."""

    def __init__(self, *, start: Seconds, window: Seconds) -> None:
        """Count from `start`; what came before is warm-up and only kept track of."""
        self.start = start
        self.window = window
        self.windows: list[Window] = []
        self.outcomes: Counter[Outcome] = Counter()
        self.arrivals = 0
        self.holds = 0
        self.dispatches: Counter[PodName] = Counter()
        self.swaps: Counter[PodName] = Counter()
        self.swaps_from: Counter[str] = Counter()
        self.loads: Counter[PodName] = Counter()
        self.swap_seconds: Counter[str] = Counter()
        """Seconds by phase of all swaps."""
        self.hits = 0
        self.misses = 0
        self.waited = 0
        self.latency = Histogram()
        self.ttft = Histogram()
        self.output_tokens = 0
        self.residencies = Residencies()
        self.sequence: Callable[[PodName, AdapterName, Seconds], None] | None = None
        """Told the order in which requests began service, for the bound; None: nobody asks."""
        self._arrived: dict[RequestId, tuple[Seconds, AdapterName | None]] = {}
        self._on: dict[type[PodEvent], Callable[[PodName, Any], None]] = {
            RequestStarted: self._started,
            FirstToken: self._first_token,
            RequestFinished: self._finished,
            SwapStarted: self._swap_started,
            SwapEnded: self._swap_ended,
            AdapterEvicted: self._evicted,
        }

    # -- sim.world.Observer

    def arrived(self, arrival: Arrival) -> None:
        """A request arrived."""
        self._arrived[arrival.id] = (arrival.t, arrival.adapter)
        if arrival.t >= self.start:
            self.arrivals += 1
            self._window(arrival.t).arrivals += 1

    def applied(self, event: Event, effects: Sequence[Effect]) -> None:
        """Count dispatches by pod, and holds."""
        del event
        for effect in effects:
            if type(effect) is Dispatch:
                self.dispatches[effect.target.pod] += 1
            elif type(effect) is Hold:
                self.holds += 1

    def happened(self, pod: PodName, event: PodEvent) -> None:
        """A pod did something."""
        handler = self._on.get(type(event))
        if handler is not None:
            handler(pod, event)

    def ended(self, request_id: RequestId, outcome: Outcome, now: Seconds) -> None:
        """A request left."""
        arrived, _ = self._arrived.pop(request_id)
        if arrived < self.start:
            return
        self.outcomes[outcome] += 1
        if outcome is Outcome.SERVED:
            latency = now - arrived
            self.latency.add(latency)
            self._window(arrived).latency.add(latency)

    # -- what pods do

    def _started(self, pod: PodName, event: RequestStarted) -> None:
        arrived, adapter = self._arrived[event.request_id]
        if adapter is None:
            return
        if self.sequence is not None:
            self.sequence(pod, adapter, event.t)
        if arrived < self.start:
            return
        window = self._window(arrived)
        if event.hit:
            self.hits += 1
            window.hits += 1
        else:
            self.misses += 1
            window.misses += 1

    def _first_token(self, pod: PodName, event: FirstToken) -> None:
        del pod
        arrived, _ = self._arrived[event.request_id]
        if arrived >= self.start:
            self.ttft.add(event.t - arrived)
            self._window(arrived).ttft.add(event.t - arrived)

    def _finished(self, pod: PodName, event: RequestFinished) -> None:
        del pod
        arrived, _ = self._arrived[event.request_id]
        if arrived < self.start:
            return
        self.output_tokens += event.output_tokens
        if event.waited_for_load:
            self.waited += 1
            self._window(arrived).waited += 1

    def _swap_started(self, pod: PodName, event: SwapStarted) -> None:
        if event.t >= self.start and event.waited:
            self.swaps[pod] += 1
            self.swaps_from[event.tier_from.word] += 1
            self._window(event.t).swaps[pod] += 1

    def _swap_ended(self, pod: PodName, event: SwapEnded) -> None:
        self.residencies.loaded(pod, event.adapter, event.t)
        if event.t >= self.start:
            self.loads[pod] += 1
            for phase in ("drain", "deallocation", "transfer", "initialisation", "warm_up"):
                self.swap_seconds[phase] += getattr(event, phase)

    def _evicted(self, pod: PodName, event: AdapterEvicted) -> None:
        self.residencies.evicted(pod, event.adapter, event.t)

    def _window(self, t: Seconds) -> Window:
        index = int((t - self.start) / self.window)
        while len(self.windows) <= index:
            self.windows.append(Window(self.start + len(self.windows) * self.window))
        return self.windows[index]

    # -- checks

    def check(self, now: Seconds) -> None:
        """Conservation; raises AssertionError that says what differs."""
        in_flight = sum(arrived >= self.start for arrived, _ in self._arrived.values())
        ended = sum(self.outcomes.values())
        assert ended + in_flight == self.arrivals, f"{self.arrivals} arrivals, {ended} ended, {in_flight} in flight"
        self.residencies.check(now)
