"""Ask a running picker's admin API, for commands that show what it says, or change what it wants.

In: the API's URL, a path, a body; from the environment the token, and the authority of a picker with TLS. Out: the
answer's body, or an error that says what to do. Exit codes: 2 when what was asked for is no good or nobody answers, 1
when the picker refuses.
Not here: what the answers mean (see `wire.api`, `wire.admin_answers`, `live.publish`).
"""

import http.client
import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

import msgspec
import typer
from rich.console import Console

from lorapick.wire.api import Problem

DEFAULT = "http://127.0.0.1:9091"
TIMEOUT_S = 5.0
_MAX_ANSWER = 64 * 1024 * 1024

VARIABLE = "LORAPICK_TOKEN"
"""Environment variable with the token for changes, and for looking from other machines."""
AUTHORITY = "LORAPICK_ADMIN_CA"
"""Environment variable with the file of the authority, or of the certificate itself, for `https://`; unset: the
system's authorities."""
_REFUSED = (401, 403, 409, 501, 503)
"""Statuses of what is well said and still not done."""

AdminOption = Annotated[
    str, typer.Option("--admin", "--url", envvar="LORAPICK_ADMIN", help="URL of the picker's admin API.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the API's answer.")]
AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)


class AdminError(Exception):
    """No usable answer; the message says why and what to do."""


class RefusedError(AdminError):
    """The API answered with a problem document."""

    def __init__(self, problem: Problem, *, hint: str = "") -> None:
        """Keep the problem; `hint` is for who uses the command line."""
        near = f"; nearest: {', '.join(problem.nearest)}" if problem.nearest else ""
        super().__init__(f"{problem.detail} ({problem.reason}){near}" + (f"; {hint}" if hint else ""))
        self.problem = problem


def get(admin: str, path: str, *, timeout: float = TIMEOUT_S) -> bytes:
    """Body of `GET path`. Raises AdminError."""
    return _ask(admin, "GET", path, body=None, headers=_token(), timeout=timeout)


def change(admin: str, method: str, *, path: str, body: object = None, timeout: float = TIMEOUT_S) -> bytes:
    """Body of the answer to a change, which has `body` as JSON. Raises AdminError."""
    headers = _token() if body is None else {"content-type": "application/json", **_token()}
    content = None if body is None else msgspec.json.encode(body)
    return _ask(admin, method, path, body=content, headers=headers, timeout=timeout)


def _token() -> dict[str, str]:
    token = os.environ.get(VARIABLE, "").strip()
    return {"authorization": f"Bearer {token}"} if token else {}


def lines(admin: str, path: str, *, timeout: float = TIMEOUT_S) -> Iterator[bytes]:
    """Lines of an answer that goes on, as they come, until the picker ends it.

    Raises:
        AdminError: there is none, it breaks off, or nothing comes for `timeout` seconds.
    """
    with _connected(admin, timeout) as connection:
        connection.request("GET", path, headers=_token())
        answer = connection.getresponse()
        if answer.status != 200:
            raise _refused(admin, answer.status, answer.read(_MAX_ANSWER))
        while line := answer.readline(_MAX_ANSWER):
            yield line


@contextmanager
def _connected(admin: str, timeout: float) -> Iterator[http.client.HTTPConnection]:
    host, port, secure = _address(admin)
    try:
        if secure:
            tls = _authority()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=timeout, context=tls
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
    except http.client.InvalidURL:
        raise _no_address(admin) from None
    try:
        yield connection
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise AdminError(
            f"no picker answers at {admin} ({_short(error)}); name the admin API of one that runs with --admin, or "
            "start one: `lorapick serve --config FILE`, or `lorapick up` for a try"
        ) from None
    finally:
        connection.close()


def _ask(admin: str, method: str, path: str, *, body: bytes | None, headers: dict[str, str], timeout: float) -> bytes:
    with _connected(admin, timeout) as connection:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read(_MAX_ANSWER)
    if answer.status not in (200, 202):
        raise _refused(admin, answer.status, content)
    return content


def _authority() -> ssl.SSLContext:
    file = os.environ.get(AUTHORITY)
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError) as error:
        raise AdminError(f"{AUTHORITY}: cannot read authorities from {file} ({_short(error)})") from None


def _address(admin: str) -> tuple[str, int, bool]:
    """Host, port, whether it is TLS."""
    secure = admin.startswith("https:")
    try:
        parts = urlsplit(admin if "//" in admin else f"http://{admin}")
        known = parts.scheme in ("http", "https")
        host, port = parts.hostname if known else None, parts.port or (443 if secure else 80)
        (host or "").encode("idna")  # as connecting does: an empty or very long part of a name is an error
    except ValueError:
        host, port = None, 0
    if not host:
        raise _no_address(admin)
    return host, port, secure


def _no_address(admin: str) -> AdminError:
    return AdminError(f"--admin {admin!r} is no address of an admin API; give one like {DEFAULT}")


def decode(body: bytes, kind: type[AnswerT], admin: str) -> AnswerT:
    """The answer as a value. Raises AdminError when it is of another kind: another program, or another version."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise AdminError(f"{admin} does not answer like lorapick's admin API ({error}); check --admin") from None


@contextmanager
def told(command: str) -> Iterator[None]:
    """End the program with the message when there is no usable answer: status 1 when it was refused, else 2."""
    try:
        yield
    except AdminError as error:
        print(f"lorapick {command}: {error}", file=sys.stderr)
        refused = isinstance(error, RefusedError) and error.problem.status in _REFUSED
        raise typer.Exit(1 if refused else 2) from None


def console() -> Console:
    """Where answers are shown. A pipe has no width of its own; 80 columns would fold every line."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def printable(text: str) -> str:
    """Text of others as a terminal may have it: names come from clients, and an escape sequence would be obeyed."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def _short(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


def _refused(admin: str, status: int, body: bytes) -> AdminError:
    try:
        hint = f"put the token in the environment variable {VARIABLE}" if status == 401 else ""
        return RefusedError(msgspec.json.decode(body, type=Problem), hint=hint)
    except msgspec.DecodeError:
        return AdminError(f"{admin} answered {status} and not as lorapick's admin API does; check --admin")
