"""Ask a running picker's admin API, for commands that show what it says.

In: the API's URL and a path. Out: the body of a 200, or an error that says what to do.
Not here: what the answers mean (see `wire.api`, `live.publish`).
"""

import http.client
from urllib.parse import urlsplit

import msgspec

from lorapick.wire.api import Problem

DEFAULT = "http://127.0.0.1:9091"
TIMEOUT_S = 5.0
_MAX_ANSWER = 64 * 1024 * 1024


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


def decode(body: bytes, kind: type[msgspec.Struct], admin: str) -> msgspec.Struct:
    """The answer as a value. Raises AdminError when it is of another kind: another program, or another version."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise AdminError(f"{admin} does not answer like lorapick's admin API ({error}); check --admin") from None


def _short(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__


def _refused(admin: str, status: int, body: bytes) -> AdminError:
    try:
        return RefusedError(msgspec.json.decode(body, type=Problem))
    except msgspec.DecodeError:
        return AdminError(f"{admin} answered {status} and not as lorapick's admin API does; check --admin")
