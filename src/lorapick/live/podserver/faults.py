"""Faults that can be switched on in a running pod: silent, slow, failing, or talking nonsense, without killing it.

In: POST /emulator/faults. Out: what the routes do before they do anything else.
Not here: load failures (they are the pod model's, see `PodConfig.load_failure_share`).
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Literal

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lorapick.live.podserver.json_response import MsgspecResponse
from lorapick.live.podserver.refusals import internal
from lorapick.model.units import Seconds

Fault = Literal["ok", "hang", "error"]
GARBAGE = b'vllm:num_requests_running{engine="0",model_name= 3.\x00\xff\n<html><body>502 Bad Gateway</body></html>\n'


class Faults(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The state of all switches; a POST names those to change."""

    metrics: Literal["ok", "hang", "error", "garbage"] = "ok"
    """`/metrics`: `hang` never answers, `error` answers 503, `garbage` answers 200 with a page that is none."""
    metrics_delay: Seconds = 0.0
    """Real seconds before `/metrics` answers."""
    metrics_lag: Seconds = 0.0
    """Oldest age, in real seconds, of the statistics on the page."""
    requests: Fault = "ok"
    """The routes that serve models: `error` answers 500."""
    requests_delay: Seconds = 0.0
    """Real seconds before such a route begins."""
    health: Fault = "ok"
    """`/health` and `/ping`: `error` answers 503."""

    def merged(self, changes: bytes) -> "Faults":
        """These switches with those of a JSON object changed.

        Raises:
            msgspec.ValidationError: an unknown switch or value, named in the message.
            msgspec.DecodeError: not JSON.
        """
        wanted = msgspec.json.decode(changes, type=dict[str, object])
        faults = msgspec.convert({**msgspec.structs.asdict(self), **wanted}, Faults)
        for name in ("metrics_delay", "metrics_lag", "requests_delay"):
            if getattr(faults, name) < 0:
                raise msgspec.ValidationError(f"{name} is {getattr(faults, name)} s; it must be 0 or more")
        return faults


class FaultSwitch:
    """Holds the current faults and wakes whoever hangs when they change."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._changed = asyncio.Event()

    def set(self, faults: Faults) -> None:
        """Take new faults; requests that hang look again."""
        self.faults = faults
        self._changed.set()
        self._changed = asyncio.Event()

    def state(self, kind: str) -> str:
        """State of the fault of `kind`: `metrics`, `requests` or `health`."""
        state: str = getattr(self.faults, kind)
        return state

    def waits(self, kind: str) -> bool:
        """Whether something of `kind` has to wait."""
        return self.state(kind) == "hang" or self._delay(kind) > 0

    async def suffer(self, kind: str) -> None:
        """Wait as the fault of `kind` says, until it does not hang any more."""
        await asyncio.sleep(self._delay(kind))
        while self.state(kind) == "hang":
            await self._changed.wait()

    def _delay(self, kind: str) -> Seconds:
        return {"metrics": self.faults.metrics_delay, "requests": self.faults.requests_delay}.get(kind, 0.0)


class FaultyRoutes:
    """ASGI wrapper that lets the routes below suffer the faults."""

    def __init__(self, app: ASGIApp, switch: FaultSwitch) -> None:
        self._app = app
        self._switch = switch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one exchange."""
        kind = _kind(scope["path"]) if scope["type"] == "http" else None
        if kind is None:
            await self._app(scope, receive, send)
            return
        if self._switch.waits(kind):
            receive = _Held(receive)
            if not await receive.wait_for(self._switch.suffer(kind)):
                return
        answer = _FAULTY.get((kind, self._switch.state(kind)), self._app)
        await answer(scope, receive, send)


class _Held:
    """A `receive` that keeps the messages which come while the request is held back, and notices the client leave."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept: deque[Message] = deque()

    async def __call__(self) -> Message:
        """The next message, kept ones first."""
        return self._kept.popleft() if self._kept else await self._receive()

    async def wait_for(self, work: Coroutine[None, None, None]) -> bool:
        """Whether `work` ended before the client went away."""
        doing = asyncio.create_task(work)
        leaving = asyncio.create_task(self._until_gone())
        try:
            await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
            return doing.done()
        finally:
            doing.cancel()
            leaving.cancel()

    async def _until_gone(self) -> None:
        message: Message = {"type": ""}
        while message["type"] != "http.disconnect":
            message = await self._receive()
            self._kept.append(message)


def _kind(path: str) -> str | None:
    """Which fault concerns a path; None: no fault does."""
    if path.startswith("/metrics"):
        return "metrics"
    if path in ("/health", "/ping"):
        return "health"
    return None if path.startswith("/emulator") else "requests"


def _garbage() -> ASGIApp:
    response = MsgspecResponse(None, media_type="text/plain; version=0.0.4; charset=utf-8")
    response.body = GARBAGE
    response.headers["content-length"] = str(len(GARBAGE))
    return response


_FAULTY: dict[tuple[str, str], ASGIApp] = {
    ("metrics", "error"): MsgspecResponse(None, status_code=503),
    ("metrics", "garbage"): _garbage(),
    ("health", "error"): MsgspecResponse(None, status_code=503),
    ("requests", "error"): MsgspecResponse(internal("EngineCore encountered an issue.").body(), status_code=500),
}
