"""Who may change anything through the admin API, and who may look from other machines.

In: the admin address, what callers must show, a call's method, path and headers. Out: None, or the refusal.
Not here: foreign web pages (see `live.guard`), where tokens come from (see `live.tls.tokens`), TLS (see `live.tls`).
"""

import ipaddress
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from lorapick.live.problems import problem
from lorapick.live.tls import tokens
from lorapick.live.tls.door import Door
from lorapick.live.web import is_ip
from lorapick.wire.api import ApiReason

SETTING = "server.admin_token"
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
OPEN = "/healthz"
"""Probes have no token; it says nothing but how many pods there are."""


def token_from(variable: str | None, environment: Mapping[str, str]) -> str | None:
    """The token; None: the settings name no variable.

    Raises:
        TokenError: it is not set, is empty, or is nothing that a header can carry.
    """
    return tokens.token_from(variable, environment, setting=SETTING)


class Changers:
    """Decides whether a call may change anything; and beyond loopback, whether it may look."""

    def __init__(self, *, bind_host: str, door: Door) -> None:
        """With a token it is asked for; without one changes are taken on loopback, or with a certificate."""
        self._token = door.token
        self._loopback = is_loopback(bind_host)
        self._known = self._loopback or door.certificate
        self._bind_host = bind_host

    def refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a call that may not; None: it may."""
        changes = scope["method"] in CHANGING
        if not changes and (self._known or self._token is None or scope["path"] == OPEN):
            return None
        if self._token is None:
            return None if self._known else self._refused()
        # A browser sends what it was once told to whoever asks: enough to look, too little to change anything.
        if tokens.shows(headers, self._token(), basic=not changes):
            return None
        return _unauthorised(given="authorization" in headers, changes=changes)

    def _refused(self) -> Response:
        detail = (
            f"changes through {self._bind_host} need a token, and none is configured; set {SETTING} to the name of an "
            "environment variable that holds one, or server.admin to an address of 127.0.0.1"
        )
        return problem(403, ApiReason.CHANGES_REFUSED, detail=detail)


def _unauthorised(*, given: bool, changes: bool) -> Response:
    what = "the token is another one" if given else f"{'changes need' if changes else 'calls need'} a token"
    detail = f"{what}; send the one of {SETTING} as `Authorization: Bearer TOKEN`"
    challenge = 'Bearer realm="lorapick"' if changes else 'Bearer realm="lorapick", Basic realm="lorapick"'
    return problem(401, ApiReason.TOKEN_REQUIRED, detail=detail, headers={"www-authenticate": challenge})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host.lower() == "localhost" or (is_ip(host) and ipaddress.ip_address(host).is_loopback)
