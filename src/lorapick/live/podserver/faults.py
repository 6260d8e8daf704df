"""Faults that can be switched on in a running pod: silent, slow, failing, or talking nonsense, without killing it.

In: POST /emulator/faults. Out: what the routes do before they do anything else.
Not here: load failures (they are the pod model's, see `PodConfig.load_failure_share`).
"""

import asyncio
from typing import Literal

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

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

    async def suffer(self, kind: str, delay: Seconds) -> str:
        """Wait as the fault of `kind` says; returns its state once it does not (or no longer) hang."""
        await asyncio.sleep(delay)
        while getattr(self.faults, kind) == "hang":
            await self._changed.wait()
        state: str = getattr(self.faults, kind)
        return state


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
        faults = self._switch.faults
        delay = {"metrics": faults.metrics_delay, "requests": faults.requests_delay}.get(kind, 0.0)
        state = await self._switch.suffer(kind, delay)
        answer = _FAULTY.get((kind, state), self._app)
        await answer(scope, receive, send)


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
