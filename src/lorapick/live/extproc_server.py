"""The ext_proc server: gRPC on one side, sessions and the picker on the other.

In: streams of a gateway. Out: answers; calls of the picker. One `_Stream` per HTTP request: it reads messages, hands
them to the session (`wire.extproc`) and performs the commands that come back.
Not here: the protocol (the session knows it), how a pod is chosen (the picker), HTTP.
"""

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import grpc
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingResponse
from envoy.service.ext_proc.v3.external_processor_pb2_grpc import (
    ExternalProcessorServicer,
    add_ExternalProcessorServicer_to_server,
)

from lorapick.live.grpc_listen import GrpcListener
from lorapick.live.health import add_health
from lorapick.live.ports import Picker
from lorapick.live.transport_counts import TransportCounts
from lorapick.model.effects import Answer, Dispatch, PassOn, Reject
from lorapick.model.requests import Request
from lorapick.model.settings import Settings
from lorapick.model.units import RequestId, Seconds
from lorapick.wire.extproc.commands import (
    AnyCommand,
    BodyStarted,
    Decide,
    Dispatched,
    Ended,
    Finish,
    Passed,
    Prefilled,
    Refused,
    Send,
    Started,
    Withdraw,
)
from lorapick.wire.extproc.session import Session, SessionOptions

log = logging.getLogger(__name__)

_DECIDE_SLACK: Final[Seconds] = 5.0
"""On top of the longest hold: a picker that has not answered by then is not going to."""
_SWEEP_EVERY: Final[Seconds] = 1.0
_LONGEST_ID: Final = 128


class ExtProcServer(ExternalProcessorServicer):  # type: ignore[misc]  # the stubs carry no types
    """Serves `Process` and health on one address."""

    def __init__(
        self,
        picker: Picker,
        settings: Settings,
        *,
        address: str | None = None,
        ready: Callable[[], bool] | None = None,
        counts: TransportCounts | None = None,
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        """Bind.

        Args:
            picker: decides, and is told what became of its requests.
            settings: `server` and `admission` parts count here.
            address: in place of `server.extproc`.
            ready: whether requests can be answered, for health checks; None: always.
            counts: where to count what the picker does not hear of; None: `counts` of this server's own.
            credentials: of TLS; None: plain gRPC.

        Raises:
            BindError: the address cannot be had; the message names it.
        """
        self.counts = TransportCounts() if counts is None else counts
        self.picker = picker
        self.options = SessionOptions.of(settings, created=int(time.time()))
        self.traceparent: Callable[[RequestId], str | None] = lambda _: None
        """Gives the `traceparent` that a request goes on with; None: as it came."""
        self.deciding: dict[_Stream, Seconds] = {}
        """Streams that wait for the picker, and since when on the loop's clock."""
        self._decide_within: Seconds = settings.admission.max_wait + _DECIDE_SLACK
        self._sweeper: asyncio.TimerHandle | None = None
        self._drain_timeout = settings.server.drain_timeout
        self._stopping = False
        self._listener = GrpcListener(
            settings.server.extproc if address is None else address,
            setting="server.extproc",
            options=_message_limits(self.options.max_body),
            credentials=credentials,
        )
        self.address = self._listener.address
        add_ExternalProcessorServicer_to_server(self, self._listener.server)
        add_health(self._listener.server, lambda: not self._stopping and (ready is None or ready()))

    async def start(self) -> None:
        """Begin to answer."""
        await self._listener.server.start()
        self._sweep()

    async def stop(self) -> None:
        """Take no new streams, let those that run end for up to `server.drain_timeout`, then cut them off."""
        self._stopping = True
        await self._listener.server.stop(self._drain_timeout)
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._listener.release()

    def _sweep(self) -> None:
        """Give up on decisions that are overdue. One timer for all: one per request would cost more than the rest."""
        loop = asyncio.get_running_loop()
        overdue_since = loop.time() - self._decide_within
        for stream in [stream for stream, since in self.deciding.items() if since < overdue_since]:
            stream.give_up()
        self._sweeper = loop.call_later(_SWEEP_EVERY, self._sweep)

    async def Process(self, _: Any, context: Any) -> None:  # noqa: N802 - gRPC's name
        """One HTTP request's stream."""
        await _Stream(self, context).run()


_MOST_IN_A_MESSAGE = 2**31 - 1
"""gRPC keeps the limit in a signed 32-bit number."""


def _message_limits(max_body: int) -> list[tuple[str, int]]:
    # Room above the limit, so that a body somewhat too large gets our 413 and not a broken stream.
    limit = min(2 * max_body + 1024 * 1024, _MOST_IN_A_MESSAGE)
    return [("grpc.max_receive_message_length", limit), ("grpc.max_send_message_length", limit)]


def identify(given: str | None) -> RequestId:
    """The client's own id, cut to a length that logs can bear, or a new one."""
    return given[:_LONGEST_ID] if given is not None else uuid.uuid4().hex


class _Stream:
    """One stream. The handler reads; when a held request is decided meanwhile, a second task writes the answer."""

    __slots__ = (
        "_context",
        "_counts",
        "_deciding",
        "_finished",
        "_handler",
        "_outbox",
        "_overdue",
        "_reading",
        "_server",
        "_session",
        "_waking",
        "_writing",
    )

    def __init__(self, server: ExtProcServer, context: Any) -> None:
        self._server = server
        self._context = context
        self._counts = server.counts
        self._session = Session(server.picker, server.options, now=server.picker.now(), identify=identify)
        self._outbox: deque[ProcessingResponse] = deque()
        self._handler = asyncio.current_task()
        self._deciding: asyncio.Future[Answer] | None = None
        self._waking: asyncio.Task[None] | None = None
        self._reading = self._writing = self._finished = self._overdue = False

    async def run(self) -> None:
        """Read, answer, until one side has ended."""
        try:
            while not self._finished:
                self._perform(await self._next())
                await self._flush()
        except asyncio.CancelledError:
            if not self._finished:  # else `_go_on` woke us to leave
                raise
        except Exception:  # noqa: BLE001 - `_fault` logs it; one stream must not cost others
            self._fault()
        finally:
            self._leave()

    def _fault(self) -> None:
        """A fault of ours ends the stream gracefully: the gateway goes on without us where its mode allows it."""
        self._counts.stream_errors += 1
        self._finished = True
        log.exception("a stream ended by a fault of ours")

    async def _next(self) -> list[AnyCommand]:
        self._reading = True
        message = await self._context.read()
        self._reading = False
        if message is grpc.aio.EOF:
            return self._session.closed()
        return self._session.receive(message)

    def _leave(self) -> None:
        """Whatever ended the stream, the picker hears of it once, and nothing of ours runs on."""
        try:
            self._perform(self._session.cancelled())
        except Exception:  # noqa: BLE001 - `_fault` logs it; gRPC must not see it
            self._fault()
        if self._deciding is not None:
            self._deciding.cancel()

    def _ask(self, request: Request) -> list[AnyCommand]:
        """Ask the picker; an answer that comes at once, as almost all do, goes straight back."""
        try:
            answer = self._server.picker.ask(request)
            if isinstance(answer, Dispatch | Reject | PassOn):
                return self._decided(answer)
            if not isinstance(answer, asyncio.Future):
                raise TypeError(f"{answer!r} is neither Dispatch nor PassOn nor Reject nor a future")
        except Exception:
            log.exception("no decision for request %s (model %s): any ready pod serves it", request.id, request.model)
            self._counts.decide_failures += 1
            return self._session.undecided()
        self._deciding = answer
        self._server.deciding[self] = asyncio.get_running_loop().time()
        answer.add_done_callback(self._on_answer)
        return []

    def _decided(self, answer: Answer) -> list[AnyCommand]:
        return self._session.decided(answer, traceparent=self._server.traceparent(answer.request_id))

    def _on_answer(self, done: "asyncio.Future[Answer]") -> None:
        """A held request was decided, given up, or abandoned."""
        del self._server.deciding[self]
        if not done.cancelled() and done.exception() is None:
            commands = self._decided(done.result())
        elif self._overdue or not done.cancelled():
            log.error("no decision for request %s: any ready pod serves it", self._session.request_id)
            self._counts.decide_failures += 1
            commands = self._session.undecided()
        else:
            return  # withdrawn: nobody waits for it
        self._waking = asyncio.get_running_loop().create_task(self._go_on(commands))

    async def _go_on(self, commands: list[AnyCommand]) -> None:
        try:
            self._perform(commands)
            await self._flush()
        except Exception:  # noqa: BLE001 - `_fault` logs it; one stream must not cost others
            self._fault()
        if self._finished and self._reading and self._handler is not None:
            self._handler.cancel()  # it waits for a message that need not come

    def give_up(self) -> None:
        """The picker has had its time."""
        self._overdue = True
        if self._deciding is not None:
            self._deciding.cancel()

    async def _flush(self) -> None:
        if self._writing:
            return  # who writes now takes these along: gRPC allows one write at a time
        self._writing = True
        try:
            while self._outbox:
                await self._context.write(self._outbox.popleft())
        except grpc.aio.BaseError:
            self._finished = True  # the gateway is gone
        self._writing = False

    def _perform(self, commands: list[AnyCommand]) -> None:
        """Perform commands; sending is queued, so that telling the picker cannot be cut off half way."""
        picker = self._server.picker
        for command in commands:
            match command:
                case Send():
                    self._outbox.append(command.message)
                case Decide():
                    self._perform(self._ask(command.request))
                case Dispatched():
                    picker.dispatched(command.request_id, command.address)
                case Started():
                    picker.response_started(command.request_id, command.status)
                case BodyStarted():
                    picker.body_started(command.request_id)
                case Ended():
                    picker.ended(command.request_id, command.outcome, command.status, command.usage)
                case _:
                    self._perform_rare(command)

    def _perform_rare(self, command: Withdraw | Prefilled | Refused | Passed | Finish) -> None:
        match command:
            case Prefilled():
                self._server.picker.prefill_ended(command.request_id, ok=command.ok, why=command.why)
            case Withdraw():
                if self._deciding is not None:
                    self._deciding.cancel()
            case Refused():
                self._counts.refused[command.reason.value] += 1
                self._server.picker.refused(command.reason, command.status)
            case Passed():
                self._counts.passed[command.why] += 1
            case Finish():
                self._finished = True
                if command.error is not None:
                    self._counts.protocol_errors += 1
                    log.warning("stream ended, the gateway sent %s", command.error)
