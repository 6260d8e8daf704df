"""The live driver: sockets on one side, `Fleet.apply` on the other.

In: calls of the transports (`live.ports.Picker`) and of scraper, discovery and controller (`submit`), from one
event loop. Out: decisions as values, notes as log lines, events and effects to observers and to the event log.
It stamps events with the clock (read once per event) and a running id, keeps the futures of held requests, and
wakes the core when a hold runs out. Not here: any decision (see `core`), any protocol (see `wire`).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from lorapick.core.fleet import Fleet
from lorapick.core.near_names import NearNames
from lorapick.live.ports import ModelCard, Usage
from lorapick.live.publish import Observer
from lorapick.live.wordings import REFUSES_UNKNOWN, Wordings
from lorapick.model.effects import (
    Answer,
    ClaimLoad,
    Clear,
    Dispatch,
    Effect,
    Hold,
    KeepDemand,
    Load,
    Note,
    PassOn,
    Raise,
    Register,
    Reject,
    ReleaseClaim,
    Solve,
    Touch,
    Unload,
)
from lorapick.model.events import (
    BodyStarted,
    Event,
    PrefillEnded,
    RequestArrived,
    RequestDispatched,
    RequestEnded,
    RequestRefused,
    ResponseStarted,
    Ticked,
)
from lorapick.model.placement import DemandBin, PlacementProblem
from lorapick.model.pods import Pod
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings
from lorapick.model.units import PodName, RequestId, Seconds

log = logging.getLogger(__name__)

MakeEvent = Callable[[Seconds, int], Event]
"""Given the time and the id, the event."""


class Recorder(Protocol):
    """Keeps events for a replay (see `live.eventlog`)."""

    def record(self, event: Event, outcome: Sequence[Effect] | Exception) -> None:
        """Keep one event, with its effects or with what the core raised."""
        ...


class Controls(Protocol):
    """Tells pods what no request asks for (see `live.control`)."""

    def perform(self, command: Load | Unload | Register | Touch, /) -> None:
        """Begin to do it, and return at once."""
        ...


class Agreement(Protocol):
    """Asks other pickers of the fleet (see `live.peers`)."""

    def perform(self, effect: ClaimLoad | ReleaseClaim, /) -> None:
        """Begin to do it, and return at once."""
        ...


class Driver:
    """One fleet, driven by one event loop. Not thread-safe, by design."""

    def __init__(
        self,
        settings: Settings,
        *,
        seed: int,
        clock: Callable[[], Seconds] = time.monotonic,
        observers: Iterable[Observer] = (),
        recorder: Recorder | None = None,
    ) -> None:
        self.fleet = Fleet(settings, seed=seed)
        self.observers = [*observers]
        self.on_pick: Callable[[Seconds], None] = lambda _: None
        """Told how long each decision took."""
        self.on_missing: Callable[[PodName], None] = lambda _: None
        """Told when a pod may have said that it has no such model: its list may be another than we know."""
        self.control: Controls | None = None
        """Tells pods what no request asks for; None: nobody does."""
        self.agreement: Agreement | None = None
        """Asks other pickers; None: there are none."""
        self.on_problem: Callable[[PlacementProblem], None] | None = None
        """Has a placement solved; its answer is a `PlacementComputed`. None: nobody does, which is said once."""
        self.on_demand: Callable[[Sequence[DemandBin]], None] | None = None
        """Keeps demand; None: it is forgotten at the end."""
        self.wordings = Wordings(self._pod)
        """How pods are asked for adapters."""
        self.started_at = time.time()
        self._clock = clock
        self._recorder = recorder
        self._last_t = clock()
        self._next_id = 0
        self._turn = 0
        self._near = NearNames()
        """For questions that are no events; the core has its own, so that a replay answers alike."""
        self._copies = 0
        self._waiting: dict[RequestId, asyncio.Future[Answer]] = {}
        self._addresses: dict[RequestId, str] = {}
        """Address picked for each dispatched request: a different one that served is news."""
        self._wakeup: asyncio.TimerHandle | None = None
        self._wakeup_at = float("inf")
        self._said_unsolved = False

    # -- the door

    def submit(self, make: MakeEvent) -> list[Effect]:
        """Stamp an event, apply it, perform what comes of it, and return the effects."""
        # The clock is monotonic; max() guards the core against a platform where it is not.
        t = self._last_t = max(self._clock(), self._last_t)
        self._next_id += 1
        event = make(t, self._next_id)
        effects = self._apply(event, t)
        for effect in effects:
            self._perform(effect)
        for observer in self.observers:
            observer.observe(event, effects)
        self._arm()
        return effects

    def _apply(self, event: Event, t: Seconds) -> list[Effect]:
        recorder = self._recorder
        if recorder is None:
            return self.fleet.apply(event, t)
        try:
            effects = self.fleet.apply(event, t)
        except Exception as error:
            recorder.record(event, error)
            raise
        recorder.record(event, effects)
        return effects

    def now(self) -> Seconds:
        """The driver's clock."""
        return self._clock()

    def tell_time(self) -> None:
        """Tell the core the time of day, which forecasts and the calendar need."""
        self.submit(lambda t, i: Ticked(t=t, id=i, wall=time.time()))

    # -- live.ports.Picker

    def ask(self, request: Request) -> "Answer | asyncio.Future[Answer]":
        """Choose a pod: the answer, or its future while the request is held. Cancelling the future abandons it.

        The answer's `request_id` counts from then on: a client that uses an id twice at once gets a fresh one.
        """
        request = self._unique(request)
        began = time.perf_counter()
        effects = self.submit(lambda t, i: RequestArrived(t=t, id=i, request=request))
        self.on_pick(time.perf_counter() - began)
        answer = _answer(effects, request.id)
        if answer is not None:
            return self._worded(answer)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = future
        future.add_done_callback(lambda done: self._waited(request.id, abandoned=done.cancelled()))
        return future

    async def decide(self, request: Request) -> Answer:
        """Choose a pod; waits while the request is held. Cancelling abandons it."""
        answer = self.ask(request)
        return answer if isinstance(answer, Dispatch | PassOn | Reject) else await answer

    def _waited(self, request_id: RequestId, *, abandoned: bool) -> None:
        self._waiting.pop(request_id, None)
        if abandoned:
            self.submit(lambda t, i: RequestEnded(t=t, id=i, request_id=request_id, outcome=Outcome.ABANDONED))
            # Last: a load that ends at this very moment may first have dispatched the request.
            self._addresses.pop(request_id, None)

    def _unique(self, request: Request) -> Request:
        flights = self.fleet.state.flights
        if request.id not in flights:
            return request
        fresh = request.id
        while fresh in flights:
            self._copies += 1
            fresh = f"{request.id}~{self._copies}"
        log.info("request id %s is in flight already; its second use is counted as %s", request.id, fresh)
        return msgspec.structs.replace(request, id=fresh)

    def dispatched(self, request_id: RequestId, address: str) -> None:
        """Say which endpoint really serves a request; news only when it is not the one that was picked."""
        if self._addresses.get(request_id) == address:
            return
        pod = next((pod.name for _, pod in self.fleet.state.columns.live() if pod.address == address), None)
        if pod is None:
            log.warning("request %s was served by %s, which is no pod of ours", request_id, address)
            return
        self.submit(lambda t, i: RequestDispatched(t=t, id=i, request_id=request_id, pod=pod))

    def prefill_ended(self, request_id: RequestId, *, ok: bool, why: str | None = None) -> None:
        """Say that the prefill on another pod is over, and what is said of why it failed."""
        self.submit(lambda t, i: PrefillEnded(t=t, id=i, request_id=request_id, ok=ok, why=why))

    def response_started(self, request_id: RequestId, status: int) -> None:
        """Say that response headers came."""
        self.submit(lambda t, i: ResponseStarted(t=t, id=i, request_id=request_id, status=status))

    def body_started(self, request_id: RequestId) -> None:
        """Say that the first bytes of the answer's body came."""
        self.submit(lambda t, i: BodyStarted(t=t, id=i, request_id=request_id))

    def ended(self, request_id: RequestId, outcome: Outcome, status: int | None, usage: Usage | None) -> None:
        """Say that a dispatched request left."""
        self._addresses.pop(request_id, None)
        flight = self.fleet.state.flights.get(request_id)
        if flight is not None and flight.pod is not None and self.wordings.may_be_unknown(flight.pod, status):
            self.on_missing(flight.pod)
        usage = usage if usage is not None else Usage()
        self.submit(
            lambda t, i: RequestEnded(
                t=t,
                id=i,
                request_id=request_id,
                outcome=outcome,
                status=status,
                prompt_tokens=usage.prompt_tokens,
                cached_tokens=usage.cached_tokens,
                output_tokens=usage.output_tokens,
            )
        )

    def refused(self, reason: Reason, status: int) -> None:
        """Say that the transport refused a request by itself."""
        self.submit(lambda t, i: RequestRefused(t=t, id=i, reason=reason, status=status))

    def models(self) -> Sequence[ModelCard]:
        """Base models of the fleet, then every adapter that a pod or the operator named, then aliases; each once."""
        state = self.fleet.state
        bases = [*dict.fromkeys(pod.base_model for _, pod in state.columns.live())]
        default = bases[0] if bases else state.settings.base_model
        cards = [ModelCard(id=base, root=base) for base in bases]
        for name in state.residency.names():
            adapter = state.adapters.get(name)
            parent = adapter.base_model if adapter is not None and adapter.base_model is not None else default
            cards.append(ModelCard(id=name, parent=parent, root=adapter.source if adapter is not None else None))
        cards += [ModelCard(id=alias, parent=default) for alias in state.aliases]
        return [*{card.id: card for card in cards}.values()]

    def near_names(self, name: str) -> Sequence[str]:
        """At most three of the models' names that look like this one, best first; none when it costs too much now."""
        return self._near.of(name, lambda: [card.id for card in self.models()], now=self._clock())

    def any_endpoint(self) -> str | None:
        """Address of some pod that takes requests, in turn; a pod with an old report only when there is no other."""
        columns, now = self.fleet.state.columns, self._clock()
        live = [(row, pod) for row, pod in columns.live() if not columns.gate[row]]
        fresh = [pod for row, pod in live if columns.fresh_until[row] >= now] or [pod for _, pod in live]
        if not fresh:
            return None
        # Whoever asks for an adapter this way shall not be answered by the base model.
        fresh = [pod for pod in fresh if pod.engine in REFUSES_UNKNOWN] or fresh
        self._turn += 1
        return fresh[self._turn % len(fresh)].address

    # -- performing

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Dispatch() | PassOn() | Reject():
                self._answered(effect)
            case Hold():
                pass  # the future of `decide` waits; `_arm` wakes the core in time
            case Note():
                if not effect.quiet:
                    log.info("%s %s", effect.kind, _in_words(effect.facts))
            case Raise():
                log.warning("alert %s: %s", effect.alert, _in_words(effect.facts))
            case Clear():
                log.info("alert %s is over: %s", effect.alert, _in_words(effect.facts))
            case Load() | Unload() | Register() | Touch():
                if self.control is None:
                    log.error("no driver for %s yet", type(effect).__name__)
                else:
                    self.control.perform(effect)
            case ClaimLoad() | ReleaseClaim():
                if self.agreement is not None:
                    self.agreement.perform(effect)
            case Solve():
                self._solve(effect.problem)
            case KeepDemand():
                if self.on_demand is not None:
                    self.on_demand(effect.bins)
            case _:
                raise AssertionError(f"no way to perform {effect!r}")

    def _solve(self, problem: PlacementProblem) -> None:
        if self.on_problem is not None:
            self.on_problem(problem)
        elif not self._said_unsolved:
            self._said_unsolved = True
            log.error("nobody solves placements here; adapters stay where requests bring them")

    def _answered(self, answer: Answer) -> None:
        if isinstance(answer, Dispatch):
            self._addresses[answer.request_id] = answer.target.address
        future = self._waiting.get(answer.request_id)
        if future is not None and not future.done():
            future.set_result(self._worded(answer))

    def _worded(self, answer: Answer) -> Answer:
        """The answer in the words of the pod's engine; a request that there are none for is over for the core."""
        if not isinstance(answer, Dispatch):
            return answer
        worded = self.wordings.worded(answer)
        if isinstance(worded, Reject):
            name = answer.request_id
            # Later: this may be within an event.
            asyncio.get_running_loop().call_soon(lambda: self.ended(name, Outcome.ABANDONED, None, None))
        return worded

    def _pod(self, name: PodName) -> Pod | None:
        columns = self.fleet.state.columns
        row = columns.row_of.get(name)
        return columns.pods[row] if row is not None else None

    def _arm(self) -> None:
        due = self.fleet.next_wakeup()
        if due is None:
            if self._wakeup is not None:
                self._wakeup.cancel()
                self._wakeup, self._wakeup_at = None, float("inf")
            return
        if due == self._wakeup_at:
            return
        if self._wakeup is not None:
            self._wakeup.cancel()
        self._wakeup_at = due
        delay = max(0.0, due - self._clock())
        self._wakeup = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._wakeup, self._wakeup_at = None, float("inf")
        self.tell_time()


def _in_words(facts: Mapping[str, str | float]) -> str:
    said = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in facts.items()}
    return " ".join(f"{key}={value}" for key, value in said.items())


def _answer(effects: Sequence[Effect], request_id: RequestId) -> Answer | None:
    for effect in effects:
        if isinstance(effect, Dispatch | PassOn | Reject) and effect.request_id == request_id:
            return effect
    return None
