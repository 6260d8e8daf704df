"""What each adapter asks for and goes through, over the whole fleet.

In: requests and changes of tiers. Out: `AdapterSignals`. Bounded: an adapter that nobody asked for within the last hour
and that left no slot is forgotten, but for when it came first (see `core.signals.traffic`).
"""

from math import isfinite

from lorapick.core.signals.traffic import TrafficBins
from lorapick.core.signals.windows import Durations, Sliding
from lorapick.model.signals import RESIDENCY_WINDOW, AdapterSignals
from lorapick.model.units import AdapterName, Seconds

FORGET_AFTER: Seconds = 3600.0


class AdapterCourse:
    """One adapter."""

    __slots__ = ("evictions", "hits", "last", "latency", "loads", "recent", "requests", "stayed")

    def __init__(self) -> None:
        self.requests = Sliding(RESIDENCY_WINDOW)
        self.recent = Sliding(60.0)
        self.hits = Sliding(RESIDENCY_WINDOW)
        self.loads = Sliding(RESIDENCY_WINDOW)
        self.evictions = Sliding(RESIDENCY_WINDOW)
        self.stayed = Sliding(RESIDENCY_WINDOW)
        """Milliseconds of residencies that ended."""
        self.latency = Durations(RESIDENCY_WINDOW)
        self.last: Seconds = float("-inf")
        """Its last request."""


class Courses:
    """All of them."""

    def __init__(self, traffic: TrafficBins) -> None:
        """`traffic` knows when each was asked for first."""
        self._traffic = traffic
        self._courses: dict[AdapterName, AdapterCourse] = {}

    def of(self, name: AdapterName) -> AdapterCourse:
        """The adapter's course, made on first use."""
        course = self._courses.get(name)
        if course is None:
            course = self._courses[name] = AdapterCourse()
        return course

    def arrived(self, name: AdapterName, *, now: Seconds) -> None:
        """A request for it arrived."""
        course = self.of(name)
        course.last = now
        course.requests.add(now)
        course.recent.add(now)

    def active(self, since: Seconds) -> int:
        """Adapters with a request since then."""
        return sum(course.last >= since for course in self._courses.values())

    def names_since(self, since: Seconds) -> list[AdapterName]:
        """Adapters with a request since then."""
        return [name for name, course in self._courses.items() if course.last >= since]

    def new(self, since: Seconds, *, now: Seconds) -> tuple[list[AdapterName], int]:
        """Adapters whose first request came since then, and requests for them in the last minute."""
        first = self._traffic.first
        names = [name for name in self._courses if (first(name) or since) > since]
        return names, sum(self._courses[name].recent.total(now) for name in names)

    def forget(self, now: Seconds) -> None:
        """Drop those that nobody asked for within the last hour."""
        old = [
            name
            for name, course in self._courses.items()
            if course.last < now - FORGET_AFTER and not course.evictions.total(now) and not course.loads.total(now)
        ]
        for name in old:
            del self._courses[name]

    def signals(self, *, now: Seconds, watched: Seconds) -> tuple[AdapterSignals, ...]:
        """Those with something in the residency window, by name."""
        window = min(RESIDENCY_WINDOW, max(1.0, watched))
        counted = [(name, course, course.requests.total(now)) for name, course in sorted(self._courses.items())]
        every = sum(count for _, _, count in counted)
        found = [self._signals(name, course, now=now, window=window, every=every) for name, course, _ in counted]
        return tuple(each for each in found if each.requests_per_second or each.loads or each.evictions)

    def _signals(
        self, name: AdapterName, course: AdapterCourse, *, now: Seconds, window: Seconds, every: int
    ) -> AdapterSignals:
        requests, evictions = course.requests.total(now), course.evictions.total(now)
        return AdapterSignals(
            adapter=name,
            requests_per_second=requests / window,
            share=requests / every if every else 0.0,
            hit_ratio=min(1.0, course.hits.total(now) / requests) if requests else None,
            loads=course.loads.total(now),
            evictions=evictions,
            mean_residency=course.stayed.total(now) / 1000 / evictions if evictions else None,
            latency_p95=course.latency.quantile(0.95, now=now),
            first_seen=first if isfinite(first := self._traffic.first(name) or 0.0) else None,
        )
