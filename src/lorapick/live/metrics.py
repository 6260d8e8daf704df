"""The picker's own Prometheus metrics.

In: every event with its effects (`Observer`), pick times from the driver, a fleet snapshot at each scrape.
Out: a page in Prometheus's text format, and a server for it. Names and labels: docs/metrics.md.
Not here: metrics of pods (they have their own pages), anything that a decision rests on.

An event costs a few dictionary look-ups and counter increments; whatever needs the whole fleet is made at the
scrape. Unknown values have no sample: a gauge of 0 would be a claim.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from lorapick.live.families import WINDOWS, Families, FleetGauges, WithoutCreated
from lorapick.live.guard import LOOPBACK, Guard
from lorapick.live.labels import AdapterLabels
from lorapick.live.publish import Published
from lorapick.live.web import serving, split_bind
from lorapick.model.effects import (
    LOAD_FAILED,
    LOAD_REFUSED,
    PRESSURE_CHANGED,
    Dispatch,
    Effect,
    Hold,
    Note,
    Raise,
    Reject,
)
from lorapick.model.events import (
    By,
    Event,
    Evicted,
    LoadStarted,
    LoadSucceeded,
    PodGone,
    RequestDispatched,
    RequestEnded,
    RequestRefused,
    ResponseStarted,
)
from lorapick.model.requests import Outcome
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds

SETTING = "server.metrics"
NO_REASON = "none"
UNKNOWN = "unknown"
WORDS = tuple(tier.word for tier in Tier)
"""By the tier's number: the property makes the word anew each time."""


class _Flight(NamedTuple):
    """A dispatched request, until it ends."""

    t: Seconds
    pod: PodName
    adapter: AdapterName | None
    tier: Tier | None
    """As believed at the dispatch; None: base model, or a fallback serves, of which nothing was believed."""
    label: str


class _Wait(NamedTuple):
    """A request that is held."""

    since: Seconds
    reason: str
    adapter: AdapterName | None


class Metrics:
    """An `Observer` that counts, and the page that shows the counts."""

    def __init__(self, *, adapter_labels: int = 50) -> None:
        registry = CollectorRegistry()
        self._count = Families(registry)
        self._gauges = FleetGauges()
        registry.register(self._gauges)
        ProcessCollector(registry=registry)
        self._families = WithoutCreated(registry)
        self._labels = AdapterLabels(adapter_labels)
        self._published: Published | None = None
        self._flights: dict[RequestId, _Flight] = {}
        self._held: dict[RequestId, _Wait] = {}
        self._loading: dict[tuple[PodName, AdapterName], None] = {}
        """Inferred loads that have not ended, so that an engine's report of the same load is not counted again."""
        self._moved: dict[tuple[PodName, AdapterName], Seconds] = {}
        """When an adapter last began to load on a pod, or left its slot: a request from before that is no hit."""
        self._active: dict[AdapterName, Seconds] = {}
        """Last request of each adapter."""
        self._on_event: dict[type[Event], Callable[[Any], None]] = {
            ResponseStarted: self._response_started,
            RequestEnded: self._ended,
            RequestRefused: self._refused,
            RequestDispatched: self._dispatched_elsewhere,
            LoadStarted: self._load_started,
            LoadSucceeded: self._load_ended,
            Evicted: self._evicted,
            PodGone: self._pod_gone,
        }
        self._on_effect: dict[type[Effect], Callable[[Any, Seconds], None]] = {
            Dispatch: self._dispatch,
            Hold: self._hold,
            Reject: self._reject,
            Note: self._note,
            Raise: self._raise,
        }

    def show(self, published: Published) -> None:
        """Name the picker whose gauges the page shows. Until then the page has none."""
        self._published = published

    def observe(self, event: Event, effects: Sequence[Effect]) -> None:
        """Count one event and what came of it."""
        on_event = self._on_event.get(type(event))
        if on_event is not None:
            on_event(event)
        for effect in effects:
            on_effect = self._on_effect.get(type(effect))
            if on_effect is not None:
                on_effect(effect, event.t)

    def pick_seconds(self, seconds: Seconds) -> None:
        """Take note of how long one decision took."""
        self._count.pick_seconds.observe(seconds)

    async def page(self, accept: str = "") -> tuple[bytes, str]:
        """The page and its content type.

        The snapshot is taken here, in the picker's loop; the text is made in a thread, because a large fleet's page
        takes tens of milliseconds and picks must not wait for all of it.
        """
        fleet, alerts = None, list[str]()
        if self._published is not None:
            fleet = self._published.fleet()
            alerts = [alert.name for alert in self._published.alerts()]
            self._labels.promote(known=len(self._published.adapters()))
            self._forget(fleet.now)
        self._gauges.take(fleet, dict(self._active), alerts=alerts)
        self._count.freeze()
        encode, content_type = choose_encoder(accept)
        return await asyncio.to_thread(encode, self._families), content_type

    # -- requests

    def _dispatch(self, effect: Dispatch, now: Seconds) -> None:
        pick, pod = effect.pick, effect.target.pod
        adapter, tier = pick.adapter, pick.tier
        label = self._labels.of(adapter)
        self._flights[effect.request_id] = _Flight(now, pod, adapter, tier, label)
        self._count.picks.add(label, WORDS[tier] if tier is not None else NO_REASON)
        was_held = self._hold_over(effect.request_id, now)
        if adapter is None or tier is None:
            return
        self._active[adapter] = now
        if tier is Tier.LOADING:
            if not was_held:  # those that were held were counted then
                self._count.coalesced.add(pod)
        elif not tier.on_gpu:
            self._count.loads.add(pod, By.INFERRED, WORDS[tier])
            self._count.swaps.add(pod, WORDS[tier])
            self._loading[pod, adapter] = None
            self._moved[pod, adapter] = now

    def _hold(self, effect: Hold, now: Seconds) -> None:
        if effect.request_id in self._held:
            return
        pick = effect.pick
        self._held[effect.request_id] = _Wait(now, effect.reason, pick.adapter)
        if pick.adapter is not None:
            self._active[pick.adapter] = now
        if pick.follows is not None:
            self._count.coalesced.add(pick.follows)

    def _hold_over(self, request_id: RequestId, now: Seconds) -> bool:
        wait = self._held.pop(request_id, None)
        if wait is None:
            return False
        self._count.hold_seconds.labels(wait.reason).observe(now - wait.since)
        return True

    def _reject(self, effect: Reject, now: Seconds) -> None:
        self._hold_over(effect.request_id, now)
        self._count.requests.add(Outcome.REJECTED, effect.reason)

    def _note(self, effect: Note, now: Seconds) -> None:
        del now
        if effect.kind == LOAD_FAILED:
            pod = str(effect.facts["pod"])
            self._loading.pop((pod, str(effect.facts["adapter"])), None)
            self._count.failures.add(pod)
        elif effect.kind == PRESSURE_CHANGED:
            self._count.pressure.add(str(effect.facts["pod"]), str(effect.facts["tier"]))
        elif effect.kind == LOAD_REFUSED:
            self._count.refusals.add(str(effect.facts["reason"]))

    def _raise(self, effect: Raise, now: Seconds) -> None:
        del now
        self._count.alerts.add(effect.alert)

    def _dispatched_elsewhere(self, event: RequestDispatched) -> None:
        flight = self._flights.get(event.request_id)
        if flight is not None and flight.pod != event.pod:
            self._flights[event.request_id] = flight._replace(pod=event.pod, tier=None)

    def _response_started(self, event: ResponseStarted) -> None:
        flight = self._flights.get(event.request_id)
        if flight is None or flight.adapter is None or event.status >= 400:
            return
        key = flight.pod, flight.adapter
        self._loading.pop(key, None)
        tier = flight.tier
        if tier is not None and tier.on_gpu and self._moved.get(key, flight.t) <= flight.t:
            self._count.hits.add(flight.label, WORDS[tier])

    def _ended(self, event: RequestEnded) -> None:
        self._flights.pop(event.request_id, None)
        self._hold_over(event.request_id, event.t)
        if event.outcome is not Outcome.REJECTED:  # those were counted as our own effect
            self._count.requests.add(event.outcome, NO_REASON)

    def _refused(self, event: RequestRefused) -> None:
        self._count.requests.add(Outcome.REJECTED, event.reason)

    # -- loads

    def _load_started(self, event: LoadStarted) -> None:
        came_from = event.tier_from.word if event.tier_from is not None else UNKNOWN
        for adapter in event.adapters:
            key = event.pod, adapter
            self._moved[key] = event.t
            if event.by is not By.CONTROLLER and key in self._loading:
                continue
            self._count.loads.add(event.pod, event.by, came_from)
            if any(wait.adapter == adapter for wait in self._held.values()):
                self._count.swaps.add(event.pod, came_from)

    def _load_ended(self, event: LoadSucceeded) -> None:
        self._loading.pop((event.pod, event.adapter), None)

    def _evicted(self, event: Evicted) -> None:
        self._moved[event.pod, event.adapter] = event.t

    def _pod_gone(self, event: PodGone) -> None:
        for key in [key for key in self._loading if key[0] == event.pod]:
            del self._loading[key]

    def _forget(self, now: Seconds) -> None:
        """Drop what no answer can need any more, so that tables stay as small as what is going on."""
        oldest = min((flight.t for flight in self._flights.values()), default=now)
        for key in [key for key, moved in self._moved.items() if moved < oldest]:
            del self._moved[key]
        longest = max(WINDOWS.values())
        for adapter in [adapter for adapter, last in self._active.items() if last < now - longest]:
            del self._active[adapter]


def metrics_app(metrics: Metrics, *, bind_host: str = "127.0.0.1") -> ASGIApp:
    """Serve `/metrics`. Bound to loopback, foreign host names are refused as by the admin API."""

    async def answer(request: Request) -> Response:
        body, content_type = await metrics.page(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": content_type})

    app = Starlette(routes=[Route("/metrics", answer)])
    return Guard(app, bind_host=bind_host) if bind_host in LOOPBACK else app


@asynccontextmanager
async def serve_metrics(metrics: Metrics, *, bind: str) -> AsyncIterator[str]:
    """Serve while the block runs; gives `host:port` as bound. Raises BindError, which names a port in use."""
    app = metrics_app(metrics, bind_host=split_bind(bind, setting=SETTING)[0])
    async with serving(app, bind, what="metrics", setting=SETTING) as address:
        yield address
