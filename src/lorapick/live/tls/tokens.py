"""Bearer tokens that callers must show: from the environment, or from a file that is read again when it changes.

In: the settings' names of them, headers of calls. Out: `Token`, whether a call shows it. Not here: which calls must
(see `live.admin_token`, and `TokenDoor` for servers where all must).
"""

import base64
import binascii
import hmac
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lorapick.live.problems import problem
from lorapick.live.web import BindError
from lorapick.model.units import Seconds
from lorapick.wire.api import ApiReason

log = logging.getLogger(__name__)

LOOK_EVERY: Seconds = 1.0
"""Between two looks at a token's file, at the least."""

Token = Callable[[], str]
"""Gives the token as it is now."""


class TokenError(BindError):
    """There is no usable token where the settings say; the message says where."""


def token_from(variable: str | None, environment: Mapping[str, str], *, setting: str) -> str | None:
    """The token in a variable; None: the settings name no variable.

    Raises:
        TokenError: it is not set, is empty, or is nothing that a header can carry.
    """
    if variable is None:
        return None
    token = environment.get(variable, "").strip()
    if not token:
        raise TokenError(f"{setting}: the environment variable {variable} is not set, or is empty; put the token in it")
    return _carried(token, where=f"{setting}: the token in {variable}")


class TokenFile:
    """A token in a file; what cannot be read or used changes nothing, and is logged."""

    def __init__(self, file: Path, *, setting: str, clock: Callable[[], Seconds] = time.monotonic) -> None:
        """Read it. Raises TokenError."""
        self._file, self._setting, self._clock = file, setting, clock
        self._looked = clock()
        self._state: object = None
        self._token = self._read()

    def __call__(self) -> str:
        """The token as it is now."""
        if self._clock() - self._looked >= LOOK_EVERY:
            self._looked = self._clock()
            self._look()
        return self._token

    def _look(self) -> None:
        before = self._state
        try:
            self._token = self._read()
        except TokenError as error:
            if before != self._state:
                log.error("%s; the token from before stays", error)

    def _read(self) -> str:
        try:
            found = self._file.stat()
            state = found.st_mtime_ns, found.st_size, found.st_ino
            if state == self._state:
                return self._token
            self._state = state
            token = self._file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            self._state = str(error)
            raise TokenError(f"{self._setting}: cannot read {self._file} ({error})") from None
        if not token:
            raise TokenError(f"{self._setting}: {self._file} is empty; put the token in it")
        return _carried(token, where=f"{self._setting}: the token in {self._file}")


def token_of(
    variable: str | None, file: Path | None, *, environment: Mapping[str, str], settings: tuple[str, str]
) -> Token | None:
    """The token that one server asks for; None: none.

    Args:
        variable: environment variable.
        file: in place of it.
        environment: variables of this process.
        settings: names of the two settings, for messages.

    Raises:
        TokenError: there is none where the settings say.
    """
    if file is not None:
        return TokenFile(file, setting=settings[1])
    token = token_from(variable, environment, setting=settings[0])
    return None if token is None else lambda: token


def shows(headers: Headers, token: str, *, basic: bool) -> bool:
    """Whether a call shows the token, as `Bearer`; or, with `basic`, as the password that a browser asks for."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    shown = given.strip().encode("utf-8", "surrogateescape")
    if basic and scheme.lower() == "basic":
        try:
            shown = base64.b64decode(shown, validate=True).partition(b":")[2]
        except binascii.Error:
            return False
    elif scheme.lower() != "bearer":
        return False
    # Bytes: compare_digest takes no text beyond ASCII.
    return hmac.compare_digest(shown, token.encode())


class TokenDoor:
    """ASGI middleware: every call must show the token."""

    def __init__(self, app: ASGIApp, token: Token, *, setting: str) -> None:
        """`setting` is what the refusal names."""
        self._app, self._token, self._setting = app, token, setting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        allowed = scope["type"] != "http" or shows(Headers(scope=scope), self._token(), basic=False)
        await (self._app if allowed else self._refusal())(scope, receive, send)

    def _refusal(self) -> ASGIApp:
        detail = f"a token is needed; send the one of {self._setting} as `Authorization: Bearer TOKEN`"
        headers = {"www-authenticate": 'Bearer realm="lorapick"'}
        return problem(401, ApiReason.TOKEN_REQUIRED, detail=detail, headers=headers)


def _carried(token: str, *, where: str) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise TokenError(f"{where} has blanks or letters beyond ASCII; use another")
    return token
