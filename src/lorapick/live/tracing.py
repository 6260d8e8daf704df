"""Spans of requests: what the picker did with each, and for how long, in the caller's own trace.

In: events and effects, as an observer of the driver. Out: `Span`s to a sink; the `traceparent` that a pod gets.
Not here: how spans leave the process (see `live.tracing_export`), any other way to look at requests.

    gateway.request      arrival to the end of the answer; the name that llm-d's endpoint picker uses
      lorapick.pick      one decision: dispatched, held or rejected
      lorapick.hold      waits at the picker, for a load or for a place
      lorapick.load_wait waits at the pod for its adapter to be loaded

A request is traced when its caller's is; one whose caller says nothing, with the configured chance, by the trace id as
OpenTelemetry's samplers do it. One that is not costs a look at its header.
"""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast

from lorapick.model.effects import Dispatch, Effect, Hold, Reject
from lorapick.model.events import BodyStarted, Event, RequestArrived, RequestDispatched, RequestEnded, ResponseStarted
from lorapick.model.picks import Pick
from lorapick.model.requests import Outcome, Request
from lorapick.model.signals import Change
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Ratio, RequestId, Seconds
from lorapick.wire import traceparent

REQUEST, PICK, HOLD, LOAD_WAIT = "gateway.request", "lorapick.pick", "lorapick.hold", "lorapick.load_wait"
MOST_OPEN = 10_000
"""Traced requests in flight; beyond, requests are not traced, which is counted."""
_LOW_BITS = 2**64 - 1
"""Part of a trace id that decides, as in OpenTelemetry's `TraceIdRatioBased`."""

# A look at a set costs a tenth of `isinstance` with several classes, and every event of the fleet comes by.
_ANSWERS = frozenset({Dispatch, Hold, Reject})
_AFTERWARDS = frozenset({RequestDispatched, ResponseStarted, BodyStarted, RequestEnded})

Value = str | float | int | bool | tuple[str, ...]


class Span(NamedTuple):
    """One that has ended. Ids as numbers, times in nanoseconds of Unix time."""

    name: str
    trace_id: int
    span_id: int
    parent_id: int | None
    """None: the trace began here."""
    start: int
    end: int
    attributes: dict[str, Value]
    error: str | None = None
    """What went wrong; None: nothing."""
    remote: bool = False
    """Whether the parent is somebody else's."""


class _Part(NamedTuple):
    """A span that has begun, within a request."""

    name: str
    span_id: int
    start: Seconds
    attributes: dict[str, Value]


class _Open:
    """A traced request in flight."""

    __slots__ = ("attributes", "hold", "load", "offset", "parent_id", "span_id", "start", "trace_id", "waits_for")

    def __init__(self, request: Request, *, trace_id: int, span_id: int, parent_id: int | None) -> None:
        self.trace_id = trace_id
        self.span_id = span_id
        self.parent_id = parent_id
        self.start: Seconds = 0.0
        self.offset = 0
        """Nanoseconds from the driver's clock to Unix time."""
        self.attributes: dict[str, Value] = {"lorapick.request_id": request.id, "gen_ai.request.model": request.model}
        self.hold: _Part | None = None
        self.load: _Part | None = None
        self.waits_for: tuple[PodName, AdapterName] | None = None
        """The load that it waits for at a pod."""


class Tracing:
    """Follows traced requests from event to event."""

    def __init__(
        self,
        sink: Callable[[Span], None],
        *,
        sample: Ratio,
        changes: Callable[[], Sequence[Change]],
        clock: Callable[[], Seconds],
        ids: random.Random | None = None,
    ) -> None:
        """Begin.

        Args:
            sink: takes each span that has ended; must be quick and not raise.
            sample: share of the requests to trace whose callers do not say.
            changes: what came to another tier through the last event (`Fleet.changes`).
            clock: the driver's.
            ids: where ids come from; None: chance.
        """
        self._sink = sink
        self._bound = round(sample * 2**64)
        self._changes = changes
        self._clock = clock
        self._ids = random.Random() if ids is None else ids
        self._open: dict[RequestId, _Open] = {}
        self._loads: dict[tuple[PodName, AdapterName], list[_Open]] = {}
        self.not_followed = 0
        """Requests that were to be traced while too many were."""

    def __len__(self) -> int:
        return len(self._open)

    def header(self, request_id: RequestId) -> str | None:
        """The `traceparent` that a request goes on with; None: as it came."""
        traced = self._open.get(request_id)
        return None if traced is None else traceparent.write(traced.trace_id, traced.span_id)

    # -- live.publish.Observer

    def observe(self, event: Event, effects: Sequence[Effect]) -> None:
        """Begin and end spans."""
        kind = type(event)
        if kind is RequestArrived:
            self._arrived(cast("RequestArrived", event))
        if not self._open:
            return
        if self._loads:
            self._loads_ended(self._changes(), now=event.t)
        for effect in effects:
            if type(effect) in _ANSWERS:
                answer = cast("Dispatch | Hold | Reject", effect)
                traced = self._open.get(answer.request_id)
                if traced is not None:
                    self._decided(traced, answer, now=event.t)
        if kind in _AFTERWARDS:
            later = cast("RequestDispatched | ResponseStarted | BodyStarted | RequestEnded", event)
            traced = self._open.get(later.request_id)
            if traced is not None:
                self._went_on(traced, later)

    def _arrived(self, event: RequestArrived) -> None:
        request = event.request
        parent = None if request.traceparent is None else traceparent.read(request.traceparent)
        trace_id = parent.trace_id if parent is not None else self._ids.getrandbits(128) or 1
        if not (parent.sampled if parent is not None else (trace_id & _LOW_BITS) < self._bound):
            return
        if len(self._open) >= MOST_OPEN:
            self.not_followed += 1
            return
        traced = _Open(
            request, trace_id=trace_id, span_id=self._id(), parent_id=None if parent is None else parent.span_id
        )
        traced.start, traced.offset = event.t, time.time_ns() - int(self._clock() * 1e9)
        self._open[request.id] = traced

    def _id(self) -> int:
        return self._ids.getrandbits(64) or 1

    # -- decisions

    def _decided(self, traced: _Open, answer: Dispatch | Hold | Reject, *, now: Seconds) -> None:
        self._end_hold(traced, now=now, error=None)
        pick = _Part(PICK, self._id(), now, _of_pick(answer))
        refused = str(answer.reason) if isinstance(answer, Reject) else None
        # Until now: what it takes to decide is what this span is for.
        self._end(traced, pick, now=max(now, self._clock()), error=refused)
        if isinstance(answer, Dispatch):
            self._dispatched(traced, answer, now=now)
        elif isinstance(answer, Hold):
            traced.hold = _Part(HOLD, self._id(), now, _of_hold(answer))
        else:
            status: dict[str, Value] = {
                "lorapick.outcome": str(Outcome.REJECTED),
                "http.response.status_code": answer.status,
            }
            self._close(answer.request_id, traced, now=now, error=refused, more=status)

    def _dispatched(self, traced: _Open, answer: Dispatch, *, now: Seconds) -> None:
        pick = answer.pick
        traced.attributes["lorapick.pod"] = answer.target.pod
        if pick.adapter is None or pick.tier is None:
            return
        traced.attributes |= {"lorapick.adapter": pick.adapter, "lorapick.tier": pick.tier.word}
        if not pick.tier.on_gpu:
            waits: dict[str, Value] = {
                "lorapick.adapter": pick.adapter,
                "lorapick.pod": answer.target.pod,
                "lorapick.tier": pick.tier.word,
                "lorapick.load.shared": pick.tier is Tier.LOADING,
            }
            traced.load, traced.waits_for = _Part(LOAD_WAIT, self._id(), now, waits), (answer.target.pod, pick.adapter)
            self._loads.setdefault(traced.waits_for, []).append(traced)

    def _loads_ended(self, changes: Iterable[Change], *, now: Seconds) -> None:
        for change in changes:
            if change.before is Tier.LOADING:
                error = None if change.after.on_gpu else f"the load ended in {change.after.word}"
                for traced in self._loads.pop((change.pod, change.adapter), ()):
                    self._end_load(traced, now=now, error=error)

    # -- afterwards

    def _went_on(self, traced: _Open, event: RequestDispatched | ResponseStarted | BodyStarted | RequestEnded) -> None:
        match event:
            case RequestDispatched():
                if event.pod != traced.attributes.get("lorapick.pod"):
                    traced.attributes["lorapick.pod"] = event.pod
                    traced.attributes["lorapick.fallback"] = True
                    self._end_load(traced, now=event.t, error="another pod serves the request")
            case ResponseStarted():
                traced.attributes["lorapick.response_started_s"] = round(event.t - traced.start, 6)
            case BodyStarted():
                traced.attributes["lorapick.body_started_s"] = round(event.t - traced.start, 6)
            case RequestEnded():
                self._ended(traced, event)

    def _ended(self, traced: _Open, event: RequestEnded) -> None:
        more: dict[str, Value] = {"lorapick.outcome": str(event.outcome)}
        found = {
            "http.response.status_code": event.status,
            "gen_ai.usage.input_tokens": event.prompt_tokens,
            "gen_ai.usage.output_tokens": event.output_tokens,
        }
        more |= {name: value for name, value in found.items() if value is not None}
        error = None if event.outcome is Outcome.SERVED else str(event.outcome)
        self._close(event.request_id, traced, now=event.t, error=error, more=more)

    # -- ends

    def _close(
        self, request_id: RequestId, traced: _Open, *, now: Seconds, error: str | None, more: dict[str, Value]
    ) -> None:
        self._end_hold(traced, now=now, error=error)
        self._end_load(traced, now=now, error=error)
        del self._open[request_id]
        traced.attributes |= more
        whole = _Part(REQUEST, traced.span_id, traced.start, traced.attributes)
        self._end(traced, whole, now=now, error=error)

    def _end_hold(self, traced: _Open, *, now: Seconds, error: str | None) -> None:
        if traced.hold is not None:
            self._end(traced, traced.hold, now=now, error=error)
            traced.hold = None

    def _end_load(self, traced: _Open, *, now: Seconds, error: str | None) -> None:
        if traced.load is None or traced.waits_for is None:
            return
        waiting = self._loads.get(traced.waits_for)
        if waiting is not None:
            waiting.remove(traced)
            if not waiting:
                del self._loads[traced.waits_for]
        self._end(traced, traced.load, now=now, error=error)
        traced.load = traced.waits_for = None

    def _end(self, traced: _Open, part: _Part, *, now: Seconds, error: str | None) -> None:
        whole = part.name == REQUEST
        self._sink(
            Span(
                name=part.name,
                trace_id=traced.trace_id,
                span_id=part.span_id,
                parent_id=traced.parent_id if whole else traced.span_id,
                start=int(part.start * 1e9) + traced.offset,
                end=int(now * 1e9) + traced.offset,
                attributes=part.attributes,
                error=error,
                remote=whole,
            )
        )


def _of_pick(answer: Dispatch | Hold | Reject) -> dict[str, Value]:
    """What a decision says of itself; what is unknown is left out."""
    outcome = "dispatched" if isinstance(answer, Dispatch) else "held" if isinstance(answer, Hold) else "rejected"
    found: dict[str, Value | None] = {"lorapick.outcome": outcome}
    pick: Pick | None = answer.pick
    if pick is not None:
        found |= {
            "lorapick.adapter": pick.adapter,
            "lorapick.tier": None if pick.tier is None else pick.tier.word,
            "lorapick.pod": pick.pod,
            "lorapick.policy": pick.policy,
            "lorapick.score": pick.score,
            "lorapick.reason": pick.reason,
            "lorapick.follows": pick.follows,
            "lorapick.fallbacks": pick.fallbacks or None,
            "lorapick.degraded": pick.degraded or None,
        }
    if isinstance(answer, Dispatch) and answer.prefill is not None:
        found["lorapick.prefill_pod"] = answer.prefill.pod
    return {name: _plain(value) for name, value in found.items() if value is not None}


def _of_hold(answer: Hold) -> dict[str, Value]:
    held: dict[str, Value] = {"lorapick.reason": str(answer.reason)}
    if answer.pick.adapter is not None:
        held["lorapick.adapter"] = answer.pick.adapter
    if answer.pick.follows is not None:
        held["lorapick.follows"] = answer.pick.follows
    return held


def _plain(value: Value) -> Value:
    """An enum's word as plain text: exporters take nothing else."""
    return str(value) if isinstance(value, str) else value
