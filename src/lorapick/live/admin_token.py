"""Who may change anything through the admin API.

In: the admin address, the environment variable that the settings name, a call's headers. Out: None, or the refusal.
Not here: who may look (see `live.guard`), TLS: a token on an address other than loopback crosses the network as it is.
"""

import hmac
import ipaddress
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.responses import Response

from lorapick.live.problems import problem
from lorapick.live.web import BindError, is_ip
from lorapick.wire.api import ApiReason

SETTING = "server.admin_token"
CHANGING = ("POST", "PUT", "PATCH", "DELETE")


class TokenError(BindError):
    """The environment does not hold the token that the settings name; the message says which variable."""


def token_from(variable: str | None, environment: Mapping[str, str]) -> str | None:
    """The token; None: the settings name no variable.

    Raises:
        TokenError: it is not set, is empty, or is nothing that a header can carry.
    """
    if variable is None:
        return None
    token = environment.get(variable, "").strip()
    if not token:
        raise TokenError(f"{SETTING}: the environment variable {variable} is not set, or is empty; put the token in it")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise TokenError(f"{SETTING}: the token in {variable} has blanks or letters beyond ASCII; use another")
    return token


class Changers:
    """Decides whether a call may change anything."""

    def __init__(self, *, bind_host: str, token: str | None) -> None:
        """With a token it is asked for; without one changes are taken on loopback only."""
        self._token = None if token is None else token.encode()
        self._loopback = is_loopback(bind_host)
        self._bind_host = bind_host

    def refusal(self, method: str, headers: Headers) -> Response | None:
        """The answer to a call that may not; None: it may."""
        if method not in CHANGING:
            return None
        if self._token is None:
            return None if self._loopback else self._refused()
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Bytes: compare_digest takes no text beyond ASCII.
        right = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._token)
        return None if right and scheme.lower() == "bearer" else _unauthorised(given=bool(given))

    def _refused(self) -> Response:
        detail = (
            f"changes through {self._bind_host} need a token, and none is configured; set {SETTING} to the name of an "
            "environment variable that holds one, or server.admin to an address of 127.0.0.1"
        )
        return problem(403, ApiReason.CHANGES_REFUSED, detail=detail)


def _unauthorised(*, given: bool) -> Response:
    what = "the token is another one" if given else "changes need a token"
    detail = f"{what}; send the one of {SETTING} as `Authorization: Bearer TOKEN`"
    return problem(
        401, ApiReason.TOKEN_REQUIRED, detail=detail, headers={"www-authenticate": 'Bearer realm="lorapick"'}
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host.lower() == "localhost" or (is_ip(host) and ipaddress.ip_address(host).is_loopback)
