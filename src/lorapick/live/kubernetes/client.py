"""Requests to the API server: read, list in pages, watch, write. JSON in and out; no kind is known here.

In: a path, parameters, bodies. Out: decoded objects; or `ApiError`, which says what the server said, or that it could
not be reached. Not here: when to ask again (see `watching`), what objects mean (see `wire.kubernetes`).

Every request has a deadline but a watch, whose silence has one: the server sends bookmarks about once a minute.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from lorapick.live.kubernetes.access import Access
from lorapick.model.units import Bytes, Seconds
from lorapick.wire.kubernetes.objects import look

TIMEOUT: Seconds = 15.0
WATCH_FOR: Seconds = 290.0
"""After so long the server ends a watch, and the next one begins where it ended."""
SILENCE: Seconds = 330.0
"""Longest silence of a watch; longer than `WATCH_FOR`, so that only a dead connection is silent for so long."""
PAGE = 500
LONGEST_LINE: Bytes = 4 * 1024 * 1024
"""etcd takes objects of 1.5 MiB; JSON is larger than what is stored."""
MERGE_PATCH = "application/merge-patch+json"
GONE = 410


class ApiError(Exception):
    """A request came to nothing."""

    def __init__(self, status: int | None, message: str) -> None:
        """Say what the server said; `status` is None when it said nothing."""
        super().__init__(message if status is None else f"{status}: {message}")
        self.status = status


class Client:
    """One connection pool. Use it as an async context manager."""

    def __init__(self, access: Access, *, timeout: Seconds = TIMEOUT) -> None:
        """Connect to nothing yet."""
        self.access = access
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the pool."""
        connector = aiohttp.TCPConnector(ssl=self.access.tls if self.access.tls is not None else True, limit=32)
        self._session = aiohttp.ClientSession(connector=connector, read_bufsize=LONGEST_LINE)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        if self._session is not None:
            await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        """One request and its whole answer.

        Raises:
            ApiError: the server refused, or could not be reached in time.
        """
        try:
            async with asyncio.timeout(self._timeout):
                async with await self._open(method, path, params=params, body=body, kind=content_type) as response:
                    return _decoded(await response.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unreachable(error) from error

    async def list(self, path: str, *, params: Mapping[str, str]) -> tuple[list[Any], str]:
        """All items, and the resource version that a watch goes on from.

        Raises:
            ApiError: as of `request`; status 410 when the list changed too much between its pages.
        """
        items: list[Any] = []
        more = ""
        while True:
            page = {**params, "limit": str(PAGE)} | ({"continue": more} if more else {})
            answer = await self.request("GET", path, params=page)
            listed = answer.get("items")
            if not isinstance(listed, list):
                raise ApiError(None, f"the list of {path} has no items")
            items += listed
            more = look(answer, "metadata", "continue") or ""
            if not more:
                return items, str(look(answer, "metadata", "resourceVersion") or "")

    @contextlib.asynccontextmanager
    async def watch(
        self, path: str, *, params: Mapping[str, str], since: str
    ) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Changes from a resource version on, until the server ends the watch; entered when the server has agreed.

        Raises:
            ApiError: as of `request`; status 410 when the version is too old.
        """
        asked = {
            **params,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": f"{WATCH_FOR:.0f}",
        }
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._open("GET", path, params=asked, body=None, kind="")
            async with response:
                yield _lines(response)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise _unreachable(error) from error

    async def _open(
        self, method: str, path: str, *, params: Mapping[str, str] | None, body: object, kind: str
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open")
        headers = {"Accept": "application/json", **await self.access.headers()}
        if body is not None:
            headers["Content-Type"] = kind
        response = await self._session.request(
            method,
            self.access.url + path,
            params=params,
            data=None if body is None else msgspec.json.encode(body),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_read=SILENCE),
        )
        if response.status >= 300:
            async with response:
                raise ApiError(response.status, _words(await response.read()))
        return response


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    while line := await response.content.readline():
        if line.strip():
            yield _decoded(line)


def _decoded(content: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(None, f"the answer is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ApiError(None, "the answer is no JSON object")
    return found


def _words(content: bytes) -> str:
    """What a `Status` says, or the start of whatever came."""
    try:
        said = look(msgspec.json.decode(content), "message")
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = None
    return str(said or content[:200].decode(errors="replace").strip() or "no reason given")[:500]


def _unreachable(error: Exception) -> ApiError:
    what = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
    return ApiError(None, f"the API server cannot be reached: {what}")
