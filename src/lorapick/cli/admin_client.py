"""Ask a running picker's admin API, for commands that show what it says.

In: the API's URL and a path. Out: the body of a 200, or an error that says what to do.
Not here: what the answers mean (see `wire.api`, `live.publish`).
"""

import http.client
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

AdminOption = Annotated[str, typer.Option(envvar="LORAPICK_ADMIN", help="URL of the picker's admin API.")]
AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)


class AdminError(Exception):
    """No usable answer; the message says why and what to do."""


class RefusedError(AdminError):
    """The API answered with a problem document."""

    def __init__(self, problem: Problem) -> None:
        near = f"; nearest: {', '.join(problem.nearest)}" if problem.nearest else ""
        super().__init__(f"{problem.detail} ({problem.reason}){near}")
        self.problem = problem


def get(admin: str, path: str) -> bytes:
    """Body of `GET path`. Raises AdminError."""
    try:
        parts = urlsplit(admin if "//" in admin else f"http://{admin}")
        host, port = parts.hostname if parts.scheme == "http" else None, parts.port or 80
        (host or "").encode("idna")  # as connecting does: an empty or very long part of a name is an error
    except ValueError:
        host, port = None, 0
    if not host:
        raise AdminError(f"--admin {admin!r} is no address of an admin API; give one like {DEFAULT}")
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(_MAX_ANSWER)
    except (OSError, http.client.HTTPException) as error:
        raise AdminError(
            f"no picker answers at {admin} ({_short(error)}); start one with `lorapick up`, or name its admin API "
            "with --admin"
        ) from None
    finally:
        connection.close()
    if answer.status != 200:
        raise _refused(admin, answer.status, body)
    return body


def decode(body: bytes, kind: type[AnswerT], admin: str) -> AnswerT:
    """The answer as a value. Raises AdminError when it is of another kind: another program, or another version."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise AdminError(f"{admin} does not answer like lorapick's admin API ({error}); check --admin") from None


@contextmanager
def told(command: str) -> Iterator[None]:
    """End the program with status 2 and the message, when there is no usable answer."""
    try:
        yield
    except AdminError as error:
        print(f"lorapick {command}: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


def console() -> Console:
    """Where answers are shown. A pipe has no width of its own; 80 columns would fold every line."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def _short(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


def _refused(admin: str, status: int, body: bytes) -> AdminError:
    try:
        return RefusedError(msgspec.json.decode(body, type=Problem))
    except msgspec.DecodeError:
        return AdminError(f"{admin} answered {status} and not as lorapick's admin API does; check --admin")
