"""Counts what happens to requests, loads and slots, for the metrics page.

In: every event with its effects and the residency changes that it made. Out: families (`live.families`), series under
the names of other pickers (`live.metrics_epp`). Not here: the page (see `live.metrics`), gauges of the whole fleet.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lorapick.live.families import Families
from lorapick.live.families_gauges import WINDOWS
from lorapick.live.labels import BASE, OTHER, AdapterLabels
from lorapick.live.metrics_epp import CANCELLED, DISPATCHED, EXPIRED, REJECTED, EppMetrics
from lorapick.live.metrics_flights import PASSED_ON, Flight, Wait
from lorapick.live.metrics_stays import Stays
from lorapick.model.effects import (
    LOAD_FAILED,
    LOAD_REFUSED,
    PREFILL_FAILED,
    PRESSURE_CHANGED,
    Dispatch,
    Effect,
    Hold,
    Note,
    PassOn,
    Raise,
    Reject,
)
from lorapick.model.events import (
    BodyStarted,
    By,
    Event,
    Evicted,
    LoadStarted,
    LoadSucceeded,
    PodAppeared,
    PodGone,
    RequestArrived,
    RequestDispatched,
    RequestEnded,
    RequestRefused,
    ResponseStarted,
)
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import SloSettings
from lorapick.model.signals import Change
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds

NO_REASON = "none"
UNKNOWN = "unknown"
CLIENT_ERROR = "client_error"
"""A pod answered 4xx, and not because it was busy."""
TOO_MANY_REQUESTS = 429
WORDS = tuple(tier.word for tier in Tier)
"""By the tier's number: the property makes the word anew each time."""
FORGET_PODS_AFTER: Seconds = 3600.0
"""Series of a pod that is gone are shown for so long, so that what happened last can be read."""


# Looking a member up in its enum takes longer than counting.
_SERVED, _REJECTED, _INFERRED = Outcome.SERVED, Outcome.REJECTED, By.INFERRED
_LOADING, _GPU_IDLE = Tier.LOADING, Tier.GPU_IDLE


def _fault(event: RequestEnded) -> str:
    """Whose fault a failure is, where its status says that it is the client's."""
    status = event.status
    theirs = event.outcome is Outcome.FAILED and status is not None and 400 <= status < 500
    return CLIENT_ERROR if theirs and status != TOO_MANY_REQUESTS else NO_REASON


class Counting:
    """All counts since the start, and what is under way."""

    def __init__(self, *, labels: AdapterLabels, epp: EppMetrics, slo: SloSettings | None = None) -> None:
        self.families = Families(slo)
        self.epp = epp
        self.labels = labels
        self.active: dict[AdapterName, Seconds] = {}
        """Last request of each adapter."""
        self.stays = Stays(self.families, label=labels.known)
        self._asked: Request | None = None
        """The request that arrived last."""
        self._flights: dict[RequestId, Flight] = {}
        self._held: dict[RequestId, Wait] = {}
        self._loading: dict[tuple[PodName, AdapterName], None] = {}
        """Inferred loads that have not ended, so that an engine's report of the same load is not counted again."""
        self._moved: dict[tuple[PodName, AdapterName], Seconds] = {}
        """When an adapter last began to load on a pod, or left its slot: a request from before that is no hit."""
        self._gone: dict[PodName, Seconds] = {}
        """When each pod went that has series still."""
        self._on_event: dict[type[Event], Callable[[Any], None]] = {
            ResponseStarted: self._response_started,
            BodyStarted: self._body_started,
            RequestEnded: self._ended,
            RequestRefused: self._refused,
            RequestDispatched: self._dispatched_elsewhere,
            LoadStarted: self._load_started,
            LoadSucceeded: self._load_ended,
            Evicted: self._evicted,
            PodAppeared: self._pod_appeared,
            PodGone: self._pod_gone,
        }
        if epp.wanted:
            self._on_event[RequestArrived] = self._arrived
        self._on_effect: dict[type[Effect], Callable[[Any, Seconds], None]] = {
            Dispatch: self._dispatch,
            PassOn: self._pass_on,
            Hold: self._hold,
            Reject: self._reject,
            Note: self._note,
            Raise: self._raise,
        }

    def observe(self, event: Event, effects: Sequence[Effect], *, changes: Iterable[Change]) -> None:
        """Count one event, what came of it, and what changed its tier by it."""
        for change in changes:
            if self.stays.take(change, event):
                self._moved[change.pod, change.adapter] = change.t
        on_event = self._on_event.get(type(event))
        if on_event is not None:
            on_event(event)
        for effect in effects:
            on_effect = self._on_effect.get(type(effect))
            if on_effect is not None:
                on_effect(effect, event.t)

    def waiting(self) -> Counter[str]:
        """Requests that wait at the picker, by the label of their adapter."""
        return Counter(self.labels.still(wait.label) for wait in self._held.values())

    # -- requests

    def _arrived(self, event: RequestArrived) -> None:
        self._asked = event.request

    def _request(self, request_id: RequestId) -> Request | None:
        """The request that is decided right now, when it arrived right now."""
        asked = self._asked
        return asked if asked is not None and asked.id == request_id else None

    def _dispatch(self, effect: Dispatch, now: Seconds) -> None:
        pick, pod = effect.pick, effect.target.pod
        adapter, tier = pick.adapter, pick.tier
        wait = self._hold_over(effect.request_id, now, outcome=DISPATCHED)
        label = self.labels.of(adapter) if wait is None else self.labels.still(wait.label)
        flight = Flight(pod, adapter, tier=tier, label=label, sent=now)
        self._send(flight, effect, wait=wait)
        self._flights[effect.request_id] = flight
        word = WORDS[tier] if tier is not None else NO_REASON
        self.families.decisions.add("dispatched", pick.reason or NO_REASON)
        self.families.picks.add(label, word)
        self.families.pod_picks.add(pod, word)
        if adapter is None or tier is None:
            return
        self.active[adapter] = now
        # Those that were held were counted then, as followers.
        self._goes(pod, tier, flight=flight, follows=wait is None)
        if pick.prefill is not None and pick.prefill_tier is not None:
            flight.prefill = pick.prefill
            self._goes(pick.prefill, pick.prefill_tier, flight=flight, follows=True)

    def _goes(self, pod: PodName, tier: Tier, *, flight: Flight, follows: bool) -> None:
        """A pod gets a request, to prefill or to decode it, while its adapter is in this tier there."""
        adapter, label, word = flight.adapter, flight.label, WORDS[tier]
        assert adapter is not None, "the base model has no tier"
        self.stays.used(pod, adapter, now=flight.sent)
        if tier is _LOADING:
            if follows:
                self.families.coalesced.add(pod)
                self.families.adapter_coalesced.add(label)
        elif tier < _LOADING:
            self._loads(pod, _INFERRED, came_from=word, label=label)
            self._swaps(pod, word, label=label)
            self._loading[pod, adapter] = None
            self._moved[pod, adapter] = flight.sent

    def _send(self, flight: Flight, effect: Dispatch, *, wait: Wait | None) -> None:
        """Tell the other pickers' counts, and take over from the wait what the flight needs."""
        if wait is not None:
            flight.arrived, request, series = wait.since, wait.request, wait.series
        else:
            request, series = self._request(effect.request_id), None
        if request is None:
            return
        if series is None:
            series = self.epp.arrived(request, effect.model or request.model, label=flight.label)
        target, split = effect.target, effect.prefill is not None
        flight.asked = self.epp.sent(series, pod=flight.pod, address=target.address, stream=request.stream, split=split)

    def _pass_on(self, effect: PassOn, now: Seconds) -> None:
        """It arrived, and its dispatch comes when the gateway says where it is."""
        request, pick = self._request(effect.request_id), effect.pick
        wait = self._hold_over(effect.request_id, now, outcome=DISPATCHED)
        label = self.labels.of(pick.adapter) if wait is None else self.labels.still(wait.label)
        series = wait.series if wait is not None else None
        if series is None and request is not None:
            series = self.epp.arrived(request, pick.adapter or request.model, label=label)
        since, request = (now, request) if wait is None else (wait.since, wait.request)
        self._held[effect.request_id] = Wait(since, PASSED_ON, pick.adapter, label, request, series)
        self.families.decisions.add("observed", NO_REASON)

    def _hold(self, effect: Hold, now: Seconds) -> None:
        self.families.decisions.add("held", effect.reason)
        if effect.request_id in self._held:
            return
        pick, request = effect.pick, self._request(effect.request_id)
        label, series = self.labels.of(pick.adapter), None
        if request is not None:
            series = self.epp.arrived(request, pick.adapter or request.model, label=label)
            self.epp.waits(series)
        self._held[effect.request_id] = Wait(now, effect.reason, pick.adapter, label, request, series)
        if pick.adapter is not None:
            self.active[pick.adapter] = now
        if pick.follows is not None:
            self.families.coalesced.add(pick.follows)
            self.families.adapter_coalesced.add(label)

    def _hold_over(self, request_id: RequestId, now: Seconds, *, outcome: str) -> Wait | None:
        wait = self._held.pop(request_id, None)
        if wait is not None and wait.reason != PASSED_ON:
            self.families.hold_seconds.add(now - wait.since, wait.reason)
            if wait.series is not None:
                self.epp.waited(wait.series, now - wait.since, outcome=outcome)
        return wait

    def _reject(self, effect: Reject, now: Seconds) -> None:
        outcome = EXPIRED if effect.reason is Reason.DEADLINE else REJECTED
        wait = self._hold_over(effect.request_id, now, outcome=outcome)
        self.families.requests.add(_REJECTED, effect.reason)
        self.families.decisions.add("rejected", effect.reason)
        request = self._request(effect.request_id)
        series = wait.series if wait is not None else None
        if series is None and request is not None:
            series = self.epp.arrived(request, request.model, label=self._label_of_refused(effect))
        if series is not None:
            self.epp.refused(series, effect.status)

    def _label_of_refused(self, effect: Reject) -> str | None:
        """None: it may be any name that a client made up."""
        adapter = effect.pick.adapter if effect.pick is not None else None
        if adapter is None or effect.reason is Reason.ADAPTER_UNKNOWN:
            return None
        return self.labels.known(adapter)

    def _note(self, effect: Note, now: Seconds) -> None:
        del now
        if effect.kind == LOAD_FAILED:
            pod = str(effect.facts["pod"])
            adapter = str(effect.facts["adapter"])
            self._loading.pop((pod, adapter), None)
            self.families.failures.add(pod)
            self.families.adapter_failures.add(self.labels.known(adapter))
        elif effect.kind == PREFILL_FAILED:
            self.families.prefills_failed.add(str(effect.facts["pod"]), str(effect.facts["end"]))
        elif effect.kind == PRESSURE_CHANGED:
            self.families.pressure.add(str(effect.facts["pod"]), str(effect.facts["tier"]))
        elif effect.kind == LOAD_REFUSED:
            self.families.refusals.add(str(effect.facts["reason"]))

    def _raise(self, effect: Raise, now: Seconds) -> None:
        del now
        self.families.alerts.add(effect.alert)

    def _dispatched_elsewhere(self, event: RequestDispatched) -> None:
        flight = self._flights.get(event.request_id)
        if flight is not None and flight.pod != event.pod:
            flight.pod, flight.tier = event.pod, None
            if flight.adapter is not None:
                self.stays.used(event.pod, flight.adapter, now=event.t)

    def _response_started(self, event: ResponseStarted) -> None:
        flight = self._flights.get(event.request_id)
        if flight is not None and event.status < 400:
            self._ran(flight)

    def _ran(self, flight: Flight) -> None:
        """The pod answers, and for an adapter that was there all the time that is a hit."""
        flight.answered = True
        if flight.adapter is None:
            return
        key, tier = (flight.pod, flight.adapter), flight.tier
        self._loading.pop(key, None)
        if flight.prefill is not None:
            self._loading.pop((flight.prefill, flight.adapter), None)
        if tier is not None and tier >= _GPU_IDLE and self._moved.get(key, flight.sent) <= flight.sent:
            self.families.hits.add(self.labels.still(flight.label), WORDS[tier])
            self.families.pod_hits.add(flight.pod, WORDS[tier])

    def _body_started(self, event: BodyStarted) -> None:
        flight = self._flights.get(event.request_id)
        if flight is not None and flight.answered:
            seconds = event.t - flight.arrived
            self.families.ttft.add(seconds)
            if flight.asked is not None:
                self.epp.body_started(flight.asked, event.t, seconds=seconds)

    def _ended(self, event: RequestEnded) -> None:
        flight = self._flights.pop(event.request_id, None)
        if flight is None:
            self._hold_over(event.request_id, event.t, outcome=CANCELLED)
        if event.outcome is not _REJECTED:  # those were counted as our own effect
            self.families.requests.add(event.outcome, _fault(event))
        if flight is not None:
            self._landed(flight, event)

    def _landed(self, flight: Flight, event: RequestEnded) -> None:
        seconds = event.t - flight.arrived
        if event.outcome is _SERVED:
            if not flight.answered:  # nobody told of its headers
                self._ran(flight)
            self.families.latency.add(seconds)
            self.families.adapter_latency.add(seconds, self.labels.still(flight.label))
            if flight.adapter is not None:
                self.stays.used(flight.pod, flight.adapter, now=event.t)
        if flight.asked is not None:
            self.epp.ended(flight.asked, event, seconds=seconds)

    def _refused(self, event: RequestRefused) -> None:
        self.families.requests.add(_REJECTED, event.reason)
        self.epp.refused_unread(event.status)

    # -- loads

    def _loads(self, pod: PodName, by: By, *, came_from: str, label: str) -> None:
        self.families.loads.add(pod, by, came_from)
        self.families.adapter_loads.add(label, came_from)

    def _swaps(self, pod: PodName, came_from: str, *, label: str) -> None:
        self.families.swaps.add(pod, came_from)
        self.families.adapter_swaps.add(label)

    def _load_started(self, event: LoadStarted) -> None:
        came_from = event.tier_from.word if event.tier_from is not None else UNKNOWN
        for adapter in event.adapters:
            key, label = (event.pod, adapter), self.labels.known(adapter)
            self._moved[key] = event.t
            if event.by is not By.CONTROLLER and key in self._loading:
                continue
            self._loads(event.pod, event.by, came_from=came_from, label=label)
            if any(wait.adapter == adapter for wait in self._held.values()):
                self._swaps(event.pod, came_from, label=label)

    def _load_ended(self, event: LoadSucceeded) -> None:
        self._loading.pop((event.pod, event.adapter), None)

    def _evicted(self, event: Evicted) -> None:
        self._moved[event.pod, event.adapter] = event.t

    def _pod_appeared(self, event: PodAppeared) -> None:
        self._gone.pop(event.pod.name, None)

    def _pod_gone(self, event: PodGone) -> None:
        self._gone[event.pod] = event.t
        for key in [key for key in self._loading if key[0] == event.pod]:
            del self._loading[key]

    def relabel(self, known: int, *, now: Seconds) -> None:
        """Give labels to the busiest of so many adapters; who loses one is counted among the others from here on."""
        for adapter in self.labels.look(known, now=now):
            if adapter not in (OTHER, BASE):
                self.families.forget_adapter(adapter)

    def forget(self, now: Seconds) -> None:
        """Drop what no answer can need any more, so that tables stay as small as what is going on."""
        oldest = min((flight.sent for flight in self._flights.values()), default=now)
        for key in [key for key, moved in self._moved.items() if moved < oldest]:
            del self._moved[key]
        longest = max(WINDOWS.values())
        for adapter in [adapter for adapter, last in self.active.items() if last < now - longest]:
            del self.active[adapter]
        for pod in [pod for pod, since in self._gone.items() if since < now - FORGET_PODS_AFTER]:
            del self._gone[pod]
            self.families.forget_pod(pod)
            self.epp.forget_pod(pod)
