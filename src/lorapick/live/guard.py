"""The door of the admin API: keeps foreign web pages out, and who may only look from changing anything.

In: ASGI calls. Out: the inner application's answer, or an RFC 9457 problem.
Not here: routes (see `live.admin`), who may change what, and look from elsewhere (see `live.admin_token`), or
protection of what is only looked at against other processes of this machine: there is none.

A page from elsewhere, open in a browser on this machine, can reach 127.0.0.1. Two things stop it: a Host that is
not ours is refused (a name that was rebound to 127.0.0.1 still says its own name), and so is a foreign Origin
(a form that posts here says where it came from). No CORS header is ever sent.
"""

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lorapick.live.admin_token import CHANGING, Changers
from lorapick.live.problems import problem
from lorapick.live.web import host_of, is_ip
from lorapick.wire.api import ApiReason

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SAFE = {
    b"content-security-policy": b"default-src 'self'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}


def _authority(origin: str) -> str:
    """Host and port of an origin; empty, which is nobody's, when it is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


class Guard:
    """ASGI middleware: lets calls to our own name in, refuses the rest, adds safe headers to every answer."""

    def __init__(self, app: ASGIApp, *, bind_host: str, changers: Changers | None = None) -> None:
        """`changers`: who may change anything; None: the application has nothing to change."""
        self._app = app
        self._changers = changers
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

        headers = Headers(scope=scope)
        answer: ASGIApp = self._refusal(scope["method"], headers) or self._no_changer(scope, headers) or self._app
        await answer(scope, receive, send_safe)

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if not self._ours(host):
            ours = ", ".join(sorted(self._names))
            detail = f"Host {host!r} is not served here; call it as one of {ours}"
            return problem(421, ApiReason.HOST_REFUSED, detail=detail)
        origin = headers.get("origin")
        # Who may look may be any page of this machine; who may change anything is the page of this very port.
        same = origin is not None and _authority(origin).lower() == host.lower()
        if origin is not None and not (same or (method not in CHANGING and self._ours(_authority(origin)))):
            detail = f"calls from pages of {origin!r} are refused; call the admin API from no page, or from its own"
            return problem(403, ApiReason.ORIGIN_REFUSED, detail=detail)
        return None

    def _no_changer(self, scope: Scope, headers: Headers) -> Response | None:
        return None if self._changers is None else self._changers.refusal(scope, headers)

    def _ours(self, authority: str) -> bool:
        host = host_of(authority)
        return host in self._names or (self._any_ip and is_ip(host))
