"""Refusals of the admin API: problem documents, and a door that keeps foreign web pages out.

In: ASGI calls. Out: the inner application's answer, or an RFC 9457 problem.
Not here: routes (see `live.admin`), or protection against other processes of this machine: there is none.

A page from elsewhere, open in a browser on this machine, can reach 127.0.0.1. Two things stop it: a Host that is
not ours is refused (a name that was rebound to 127.0.0.1 still says its own name), and so is a foreign Origin
(a form that posts here says where it came from). No CORS header is ever sent.
"""

import difflib
import ipaddress
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lorapick.live.web import host_of, is_ip
from lorapick.wire.api import ApiReason, Problem

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NEAREST_OF = 2000
"""Most names that a miss is compared with: comparing takes some 20 µs a name, and the picker waits."""
_SAFE = {
    b"content-security-policy": b"default-src 'self'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}


def nearest(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """At most three of `names` that look like `name`, best first."""
    return tuple(difflib.get_close_matches(name, names[:_NEAREST_OF], n=3, cutoff=0.5))


def problem(
    status: int,
    reason: ApiReason,
    detail: str,
    *,
    near: tuple[str, ...] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An RFC 9457 answer."""
    title = reason.replace("_", " ")
    body = Problem(
        type=f"urn:lorapick:problem:{reason}", title=title, status=status, detail=detail, reason=reason, nearest=near
    )
    return Response(msgspec.json.encode(body), status, dict(headers or {}), media_type="application/problem+json")


def _authority(origin: str) -> str:
    """Host and port of an origin; empty, which is nobody's, when it is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


class Guard:
    """ASGI middleware: lets calls to our own name in, refuses the rest, adds safe headers to every answer."""

    def __init__(self, app: ASGIApp, *, bind_host: str) -> None:
        self._app = app
        self._names = frozenset((*LOOPBACK, bind_host.lower()))
        self._any_ip = is_ip(bind_host) and ipaddress.ip_address(bind_host).is_unspecified
        """Bound to every address: any IP literal is ours, since only names can be rebound."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        if scope["type"] != "http":
            return

        async def send_safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_SAFE.items()]
            await send(message)

        answer: ASGIApp = self._refusal(Headers(scope=scope)) or self._app
        await answer(scope, receive, send_safe)

    def _refusal(self, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if not self._ours(host):
            ours = ", ".join(sorted(self._names))
            return problem(421, ApiReason.HOST_REFUSED, f"Host {host!r} is not served here; call it as one of {ours}")
        origin = headers.get("origin")
        if origin is not None and not self._ours(_authority(origin)):
            detail = f"calls from pages of {origin!r} are refused; call the admin API from no page, or from its own"
            return problem(403, ApiReason.ORIGIN_REFUSED, detail)
        return None

    def _ours(self, authority: str) -> bool:
        host = host_of(authority)
        return host in self._names or (self._any_ip and is_ip(host))
