"""Run the pure pod model in real time: one task that sleeps until the model has something to say.

In: requests and adapter loads from HTTP handlers; the clock, read once per wake and once per call.
Out: tickets that move on, and what `PodRecords` counts.
Not here: HTTP, bodies, what the model does.

The task wakes at the model's next change, at the next token of a streamed answer, or when something was handed in.
When it falls behind (high speed, busy machine) it does not lag: the model jumps to now and a stream gets several
tokens at once, as vLLM's own streams do under load.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from msgspec import structs

from lorapick.live.podserver.clock import ModelClock
from lorapick.live.podserver.kv_publisher import KvPublisher
from lorapick.live.podserver.records import PodRecords
from lorapick.live.podserver.refusals import RefusalError, internal
from lorapick.live.podserver.reservations import Reservations, Wait
from lorapick.live.podserver.ticket import Ticket
from lorapick.model.units import AdapterName, RequestId, Seconds, Tokens
from lorapick.pod.engine import PodEngine
from lorapick.pod.errors import PodError
from lorapick.pod.handover import HeldKv
from lorapick.pod.values import (
    AdapterEvicted,
    AdapterSpec,
    AdapterUnloaded,
    FirstToken,
    KvExpired,
    PodConfig,
    PodEvent,
    PodRequest,
    PodStats,
    ReceivedKv,
    RequestFailed,
    RequestFinished,
    RequestStarted,
    SwapEnded,
    SwapFailed,
    SwapStarted,
)

logger = logging.getLogger(__name__)
_WAIT: ContextVar[Wait | None] = ContextVar("wait", default=None)
"""Of the request that is being served, for its reserved slot."""
_SHORTEST_SLEEP: Seconds = 0.001
"""Real seconds; at high speeds the tokens of several steps are handed out together rather than in a busy loop."""


class PodDriver:
    """One running pod."""

    def __init__(
        self,
        config: PodConfig,
        adapters: tuple[AdapterSpec, ...],
        clock: ModelClock,
        *,
        draw: Callable[[], float] | None = None,
        reserves: bool = False,
    ) -> None:
        """`reserves`: adapters are kept while another pod prefills (vLLM has no such thing)."""
        self._clock = clock
        self._config = config
        self._reservations = reservations = Reservations()
        self._reserves = reserves
        retention = (lambda: reservations) if reserves else None
        self._engine = PodEngine(config, adapters, now=clock.now(), draw=draw, retention=retention)
        self._tickets: dict[RequestId, Ticket] = {}
        self._loads: dict[AdapterName, list[asyncio.Future[str | None]]] = {}
        self._unloads: dict[AdapterName, list[asyncio.Future[None]]] = {}
        self._loaded_from: dict[AdapterName, str] = {}
        self._specs = {adapter.name: adapter for adapter in adapters}
        self._wake = asyncio.Event()
        self.records = PodRecords(clock, config.max_model_len)
        self.started_wall = clock.started_wall
        """Unix time of the start or the last restart."""
        self.publisher: KvPublisher | None = None
        """Tells of KV blocks; None: nobody is told."""
        self.kv_expired: Callable[[RequestId], None] = lambda _request_id: None
        """Told when a prefilled request's KV has waited for too long."""
        self.restarted: list[Callable[[], None]] = []
        """Told of each restart."""
        self.failure: str | None = None
        """Why the engine died; None: it lives."""

    @property
    def in_flight(self) -> int:
        """Requests that wait or run."""
        return len(self._tickets)

    @property
    def registered(self) -> tuple[AdapterName, ...]:
        """Names that the front end accepts."""
        return self._engine.registered

    def spec(self, name: AdapterName) -> AdapterSpec | None:
        """What is known of an adapter; None: never heard of."""
        return self._specs.get(name)

    def stats(self) -> PodStats:
        """The model's statistics now."""
        now = self._live()
        stats = self._engine.stats(now)
        if stats.running:
            # A busy engine ends a step every few milliseconds, each of which renews the current label set.
            self.records.step(now)
        # As in vLLM, requests whose KV is on its way wait, deferred.
        coming = sum(ticket.pulling is not None for ticket in self._tickets.values())
        if not coming:
            return stats
        return structs.replace(stats, waiting=stats.waiting + coming, deferred=stats.deferred + coming)

    def submit(self, request: PodRequest, *, finish_reason: str, streams: bool) -> Ticket:
        """Queue a request. Raises what `PodEngine.submit` raises, and RefusalError when the engine is dead."""
        if self.failure is not None:
            raise internal(self.failure)
        now = self._live()
        self._engine.submit(request, now)
        return self._admit(Ticket(request, arrived=now, finish_reason=finish_reason, streams=streams))

    def expect(self, request: PodRequest, *, finish_reason: str, streams: bool) -> Ticket:
        """Take a request whose KV is on its way here; the model gets it with `begin`.

        Raises RefusalError when the engine is dead.
        """
        if self.failure is not None:
            raise internal(self.failure)
        return self._admit(Ticket(request, arrived=self._live(), finish_reason=finish_reason, streams=streams))

    def begin(self, ticket: Ticket, kv: ReceivedKv | None) -> None:
        """Give an expected request to the model, with the KV that came for it; None: its prompt is computed.

        What the model refuses fails the ticket.
        """
        now = self._live()
        if ticket.done:
            return
        ticket.pulling = None
        if kv is not None:
            ticket.request = structs.replace(ticket.request, kv=kv)
        try:
            self._engine.submit(ticket.request, now)
        except PodError as error:
            del self._tickets[ticket.request.id]
            ticket.fail(internal(str(error)))
        self._wake.set()

    @property
    def broken_reservations(self) -> int:
        """Times that a reserved adapter had to leave memory."""
        return self._reservations.broken

    @property
    def awaited_evictions(self) -> int:
        """Times that an adapter left its slot while a request that others prefill waited here for its KV, or a seat."""
        return self._reservations.left

    @contextmanager
    def reserved(self, name: AdapterName) -> Iterator[None]:
        """Bring an adapter in and keep it, for the length of a block; where nobody does, watch whether it leaves."""
        if name not in self.registered:
            yield
            return
        now = self._live()  # what left until now was not reserved yet
        with self._reservations.reserved(name) as wait:
            if self._reserves:
                with suppress(PodError):
                    self._engine.load(name, now)
                    self._wake.set()
            before = _WAIT.set(wait)
            try:
                yield
            finally:
                _WAIT.reset(before)
            self._live()

    def cached_tokens(self, request: PodRequest) -> Tokens:
        """Prompt tokens whose KV is here already."""
        return self._engine.cached_tokens(request, self._live())

    def held_kv(self, request_id: RequestId) -> HeldKv | None:
        """A prefilled request's KV that waits for another pod; None: there is none (any more)."""
        return self._engine.held_kv(request_id, self._live())

    def release_kv(self, request_id: RequestId) -> bool:
        """Let go of a prefilled request's KV; False: it has gone."""
        released = self._engine.release_kv(request_id, self._live())
        self._wake.set()
        return released

    def _admit(self, ticket: Ticket) -> Ticket:
        ticket.wait = _WAIT.get()
        self._tickets[ticket.request.id] = ticket
        self._wake.set()
        return ticket

    def release(self, ticket: Ticket) -> None:
        """The handler is gone: abort the request unless it is done."""
        if ticket.pulling is not None:
            ticket.pulling.cancel()
        now = self._live()
        if self._tickets.pop(ticket.request.id, None) is None:
            return
        self._engine.abort(ticket.request.id, now)
        self.records.left(ticket, now)
        self._wake.set()

    async def load(self, adapter: AdapterSpec) -> str | None:
        """Bring an adapter into a slot and register it; returns why that failed, or None.

        Raises what `PodEngine.load` raises.
        """
        now = self._live()
        self._engine.load(adapter, now)
        self._specs[adapter.name] = adapter
        if adapter.name in self._engine.stats(now).on_gpu:
            self._engine.register(adapter)
            return None
        ended: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._loads.setdefault(adapter.name, []).append(ended)
        self._wake.set()
        return await ended

    def fetch(self, adapter: AdapterSpec) -> None:
        """Register an adapter and bring it into host memory, as SGLang does. Raises what `PodEngine.fetch` raises."""
        self._engine.fetch(adapter, self._live())
        self._specs[adapter.name] = adapter
        self._wake.set()

    def know(self, adapter: AdapterSpec) -> None:
        """Register an adapter and load nothing, as TensorRT-LLM until a request; raises as `PodEngine.register`."""
        self._live()
        self._engine.register(adapter)
        self._specs[adapter.name] = adapter

    def unload(self, name: AdapterName) -> None:
        """Forget a name, as vLLM does: memory keeps the weights. Raises UnknownAdapter."""
        self._engine.unload(name, self._live())

    async def unload_freeing(self, name: AdapterName) -> None:
        """Forget a name, as SGLang does: return when its last request has ended and its weights are gone.

        Raises UnknownAdapter. Only for pods whose configuration says that an unload frees.
        """
        self._engine.unload(name, self._live())
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unloads.setdefault(name, []).append(ended)
        self._wake.set()
        await ended

    def restart(self) -> None:
        """Die and come back at once: requests in flight fail, memory is empty, counters begin anew."""
        now = self._live()
        self._engine.restart(now)
        self.records = PodRecords(self._clock, self._config.max_model_len)
        self._loaded_from.clear()
        self.started_wall = self._clock.wall(now)
        if self.publisher is not None:
            self.publisher.restarted()
        for told in self.restarted:
            told()
        self._fail_all("the emulated pod restarted")
        self._wake.set()

    async def run(self) -> None:
        """Drive the model until cancelled. A fault in the model fails all requests, now and later."""
        try:
            while True:
                self._wake.clear()
                await self._sleep(self._next_look(self._live()))
        except Exception as error:
            logger.exception("the pod model failed")
            self.failure = f"EngineCore encountered an issue: {error!r}"
            self._fail_all(self.failure)

    def _live(self) -> Seconds:
        """Read the clock and hand out everything that happened up to now; returns that now.

        Every entry begins here, so that the records see events in the order of their times.
        """
        now = self._clock.now()
        for event in self._engine.advance(now):
            self._hand_out(event)
        return now

    def _next_look(self, now: Seconds) -> Seconds | None:
        """Tell streams of their new tokens; returns the model time at which to look again."""
        due = self._engine.next_change()
        for request_id, ticket in self._tickets.items():
            if not ticket.streams or ticket.first_token_at is None:
                continue
            tokens = self._engine.tokens_out(request_id, now)
            if tokens > ticket.tokens:
                ticket.tokens = tokens
                ticket.tell()
            token_due = self._engine.next_token_at(request_id, now)
            if token_due is not None and (due is None or token_due < due):
                due = token_due
        return due

    async def _sleep(self, due: Seconds | None) -> None:
        if due is None:
            await self._wake.wait()
            return
        delay = max(_SHORTEST_SLEEP, self._clock.real(due - self._clock.now()))
        timer = asyncio.get_running_loop().call_later(delay, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    def _hand_out(self, event: PodEvent) -> None:
        if isinstance(event, SwapStarted):
            self._loaded_from[event.adapter] = event.tier_from.word
        elif isinstance(event, SwapEnded):
            self._settle_load(event.adapter, None)
        elif isinstance(event, SwapFailed):
            self._settle_load(event.adapter, event.why)
        elif isinstance(event, AdapterEvicted):
            self._reservations.evicted(event.adapter, leaves_for=event.tier)
        elif isinstance(event, AdapterUnloaded):
            self._settle_unload(event.adapter)
        elif isinstance(event, KvExpired):
            self.kv_expired(event.request_id)
        elif isinstance(event, RequestStarted | FirstToken | RequestFinished | RequestFailed):
            ticket = self._tickets.get(event.request_id)
            if ticket is not None:
                self._move_on(ticket, event)

    def _move_on(self, ticket: Ticket, event: RequestStarted | FirstToken | RequestFinished | RequestFailed) -> None:
        if isinstance(event, RequestStarted):
            # A preempted request starts again; its first start is the one that counts.
            if ticket.started_at is None:
                self._start(ticket, event)
        elif isinstance(event, FirstToken):
            if ticket.first_token_at is None:
                self.records.first_token(ticket, event.t)
                ticket.first_token_at = event.t
                if self.publisher is not None:
                    self.publisher.stored(ticket, wall=self._clock.wall(event.t))
        elif isinstance(event, RequestFinished):
            del self._tickets[event.request_id]
            ticket.cached_tokens = event.cached_tokens
            ticket.tokens = event.output_tokens
            self.records.ended(ticket, event.t, ticket.finish_reason)
            ticket.done = True
            ticket.tell()
        else:
            del self._tickets[event.request_id]
            self.records.ended(ticket, event.t, "error")
            ticket.fail(internal(event.why))

    def _start(self, ticket: Ticket, event: RequestStarted) -> None:
        if ticket.wait is not None:
            self._reservations.seated(ticket.wait)
        ticket.started_at = event.t
        ticket.cached_tokens = event.cached_tokens
        adapter = ticket.request.adapter
        if adapter is not None:
            ticket.tier = "hit" if event.hit else self._loaded_from.get(adapter)

    def _settle_load(self, adapter: AdapterName, why: str | None) -> None:
        for ended in self._loads.pop(adapter, ()):
            if not ended.done():
                ended.set_result(why)

    def _settle_unload(self, adapter: AdapterName) -> None:
        for ended in self._unloads.pop(adapter, ()):
            if not ended.done():
                ended.set_result(None)

    def _fail_all(self, why: str) -> None:
        refusal: RefusalError = internal(why)
        for ticket in self._tickets.values():
            ticket.fail(refusal)
        self._tickets.clear()
        for adapter in list(self._loads):
            self._settle_load(adapter, why)
        for adapter in list(self._unloads):
            self._settle_unload(adapter)
