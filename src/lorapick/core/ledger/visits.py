"""Requests from arrival to end, and what each spent its time on.

In: request events with their effects, and the loads of pods. Out: one row for each request that leaves.
Not here: loads and stays (see `core.ledger.slots`).
"""

from math import inf
from typing import NamedTuple

from lorapick.core.ledger.sharing import Shares, Span, shares
from lorapick.core.ledger.slots import Load, Slots
from lorapick.model.arms import Arm
from lorapick.model.effects import Dispatch, Hold, PassOn, Reject
from lorapick.model.events import (
    BodyStarted,
    PrefillEnded,
    RequestArrived,
    RequestDispatched,
    RequestEnded,
    RequestRefused,
)
from lorapick.model.ledger import RequestRow
from lorapick.model.picks import Pick
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds

_FOR_LOAD = Reason.HELD_FOR_LOAD
_NOBODY = Shares({}, {})


class _Visit:
    """One request that has not left."""

    __slots__ = (
        "adapter",
        "arrived",
        "body",
        "dispatched",
        "gone",
        "held",
        "hit",
        "load",
        "model",
        "passed",
        "pod",
        "prefilled_by",
        "queue",
        "sent",
        "since",
        "stream",
        "tier",
        "waits",
        "would",
    )

    def __init__(self, request: Request, now: Seconds) -> None:
        self.model = request.model
        self.stream = request.stream
        self.arrived = now
        self.adapter: AdapterName | None = None
        self.waits: Reason | None = None
        """What it waits for at the picker now, since `since`."""
        self.since = now
        self.queue: Seconds = 0.0
        self.held: Seconds = 0.0
        """At the picker, for a load."""
        self.load: Load | None = None
        """The load that it waited for there."""
        self.dispatched: Seconds | None = None
        self.pod: PodName | None = None
        self.prefilled_by: PodName | None = None
        self.tier: Tier | None = None
        self.sent: Seconds = inf
        """To the pod that it was at last, which may be later than `dispatched`."""
        self.gone = False
        """Whether its pod has left the fleet."""
        self.hit: bool | None = None
        self.body: Seconds | None = None
        self.passed: Seconds | None = None
        """When it was sent without a pod's name; None: a pod was named."""
        self.would: Pick | None = None
        """What would have been decided; None: that was in force."""

    def wait(self, reason: Reason | None, now: Seconds) -> None:
        """From now on it waits at the picker for this; None: no longer."""
        if self.waits is _FOR_LOAD:
            self.held += now - self.since
        elif self.waits is not None:
            self.queue += now - self.since
        self.waits, self.since = reason, now


class _End(NamedTuple):
    """How a request left."""

    outcome: Outcome
    status: int | None = None
    reason: Reason | None = None
    said: RequestEnded | None = None


def _would_be(pick: Pick) -> str:
    """A tier's word, `base`, or why it would have had no pod."""
    if pick.pod is None:
        return str(pick.reason)
    return pick.tier.word if pick.tier is not None else "base"


class Visits:
    """All requests that have not left."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._open: dict[RequestId, _Visit] = {}

    def __len__(self) -> int:
        return len(self._open)

    def arrived(self, event: RequestArrived) -> None:
        """It waits for a decision."""
        self._open[event.request.id] = _Visit(event.request, event.t)

    def refused(self, event: RequestRefused) -> RequestRow:
        """It never had an id."""
        return RequestRow(
            id=None,
            arrived=event.t,
            ended=event.t,
            model=None,
            outcome=Outcome.REJECTED,
            status=event.status,
            reason=event.reason,
        )

    def moved(self, event: RequestDispatched) -> None:
        """Another pod serves it than the one that was picked, and nothing was believed of that one."""
        visit = self._open.get(event.request_id)
        if visit is not None and visit.pod is not None and visit.pod != event.pod:
            visit.pod, visit.tier = event.pod, None
            if visit.prefilled_by == event.pod:
                visit.prefilled_by = None
            self._sent(visit, event.t)

    def body_started(self, event: BodyStarted) -> None:
        """The first bytes of its answer."""
        visit = self._open.get(event.request_id)
        if visit is not None and visit.pod is not None and visit.body is None:
            visit.body = event.t

    def dispatched(self, effect: Dispatch, now: Seconds) -> None:
        """It is sent to a pod."""
        visit = self._open.get(effect.request_id)
        if visit is None:
            return
        if visit.waits is not None:
            visit.wait(None, now)
        pick = effect.pick
        visit.adapter, visit.tier = pick.adapter, pick.tier
        visit.pod, visit.dispatched = effect.target.pod, now if visit.passed is None else visit.passed
        visit.would = effect.would
        self._sent(visit, now)
        visit.sent = visit.dispatched
        if effect.prefill is not None:
            visit.prefilled_by = effect.prefill.pod
            if pick.adapter is not None:
                self._slots.sent(effect.prefill.pod, pick.adapter, now=now)

    def prefill_ended(self, event: PrefillEnded) -> None:
        """Another pod has prefilled it, or its own had to."""
        visit = self._open.get(event.request_id)
        if visit is not None and not event.ok:
            visit.prefilled_by = None

    def gone(self, pod: PodName) -> None:
        """A pod left the fleet."""
        for visit in self._open.values():
            visit.gone |= visit.pod == pod

    def _sent(self, visit: _Visit, now: Seconds) -> None:
        visit.sent, visit.gone = now, False
        if visit.adapter is not None and visit.pod is not None:
            self._slots.sent(visit.pod, visit.adapter, now=now)

    def passed_on(self, effect: PassOn, now: Seconds) -> None:
        """It is sent, and the gateway will say where."""
        visit = self._open.get(effect.request_id)
        if visit is not None:
            if visit.waits is not None:
                visit.wait(None, now)
            visit.adapter, visit.passed, visit.would = effect.pick.adapter, now, effect.pick

    def held(self, effect: Hold, now: Seconds) -> None:
        """It waits at the picker."""
        visit = self._open.get(effect.request_id)
        if visit is None:
            return
        pick = effect.pick
        visit.adapter = pick.adapter
        visit.wait(effect.reason, now)
        if effect.reason is _FOR_LOAD and pick.follows is not None and pick.adapter is not None:
            visit.load = self._slots.loading(pick.follows, pick.adapter) or visit.load

    def rejected(self, effect: Reject, now: Seconds) -> RequestRow | None:
        """We answer it ourselves."""
        visit = self._open.pop(effect.request_id, None)
        if visit is None:
            return None
        if effect.pick is not None:
            visit.adapter = effect.pick.adapter
        end = _End(Outcome.REJECTED, effect.status, effect.reason)
        return self._row(effect.request_id, visit, now=now, end=end)

    def ending(self, event: RequestEnded) -> None:
        """It is about to leave, and nothing has come of that yet.

        A hit is what signals count as one: its adapter had been there whole since before the request was sent, and
        was there until its end. Who joined a load is none, however long the load took from then on.
        """
        visit = self._open.get(event.request_id)
        if visit is None or visit.adapter is None or visit.pod is None or visit.gone:
            return
        if event.outcome is Outcome.SERVED and event.status is not None and event.status < 400:
            since = self._slots.usable_since(visit.pod, visit.adapter)
            visit.hit = since is not None and since <= visit.sent

    def ended(self, event: RequestEnded) -> RequestRow | None:
        """It left: from its pod, or from the picker by itself."""
        visit = self._open.pop(event.request_id, None)
        if visit is None:
            return None
        end = _End(event.outcome, event.status, said=event)
        return self._row(event.request_id, visit, now=event.t, end=end)

    def _row(self, request_id: RequestId, visit: _Visit, *, now: Seconds, end: _End) -> RequestRow:
        if visit.waits is not None:
            visit.wait(None, now)
        sent = visit.dispatched
        spans = self._met(visit, until=now)
        cost = shares(spans, sent, until=now) if spans and sent is not None else _NOBODY
        waited, drained = cost.waited, cost.drained
        served = max(0.0, now - sent - waited - drained) if sent is not None else 0.0
        prefill = self._prefill(visit, spans)
        worst = max(cost.others, key=cost.others.__getitem__) if cost.others else None
        said = end.said
        return RequestRow(
            id=request_id,
            arrived=visit.arrived,
            ended=now,
            model=visit.model,
            adapter=visit.adapter,
            pod=visit.pod,
            outcome=end.outcome,
            status=end.status,
            reason=end.reason,
            tier=None if visit.tier is None else visit.tier.word,
            hit=visit.hit,
            dispatched=sent,
            queue=visit.queue,
            load_wait=visit.held + waited,
            load_wait_held=visit.held,
            drain=drained,
            served=served,
            prefill=prefill,
            decode=None if prefill is None else max(0.0, served - prefill),
            load=visit.load.id if visit.load is not None else next(iter(cost.own), None),
            drain_load=worst,
            drain_most=None if worst is None else cost.others[worst],
            prompt_tokens=None if said is None else said.prompt_tokens,
            cached_tokens=None if said is None else said.cached_tokens,
            output_tokens=None if said is None else said.output_tokens,
            prefilled_by=visit.prefilled_by,
            arm=Arm.ENFORCED if visit.would is None else Arm.OBSERVED,
            would_pod=None if visit.would is None else visit.would.pod,
            would_be=None if visit.would is None else _would_be(visit.would),
        )

    def _met(self, visit: _Visit, *, until: Seconds) -> list[Span]:
        """Loads of its pod while it was there."""
        if visit.pod is None or visit.dispatched is None:
            return []
        return self._slots.spans(visit.pod, visit.adapter, since=visit.dispatched, until=until)

    def _prefill(self, visit: _Visit, spans: list[Span]) -> Seconds | None:
        if visit.body is None or not visit.stream or visit.dispatched is None:
            return None
        cost = shares(spans, visit.dispatched, until=visit.body) if spans else _NOBODY
        return max(0.0, visit.body - visit.dispatched - cost.waited - cost.drained)
