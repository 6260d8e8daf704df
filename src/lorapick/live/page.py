"""Get pages from one pod over one kept connection.

In: `ip:port`, a path. Out: the body of a 200 answer, or `PageError` with the kind of failure.
Not here: what a page means (see `wire.engines`), when to ask (see `live.scrape`).

Written on an asyncio protocol and httptools: a third to a half of the CPU per 57 kB page of a general HTTP client
(measured, `python -m bench.scrape`), and scraping has a budget. Redirects are never followed: a pod is where discovery
says it is.
"""

import asyncio
import errno
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import httptools

from lorapick.model.pods import SilentWhy
from lorapick.model.units import Bytes, Seconds

MAX_BODY: Bytes = 8 * 1024 * 1024
_MAX_HEADERS: Bytes = 64 * 1024
_OK = 200


_NOBODY = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN})
"""What a system says when nobody listens at an address."""


class PageError(Exception):
    """No page; `why` is the kind of failure and the text its detail."""

    def __init__(self, why: SilentWhy, detail: str) -> None:
        """Keep both."""
        super().__init__(detail)
        self.why = why


class PageClient:
    """Serial GETs from one address. Not for concurrent use: one request at a time, by design."""

    def __init__(
        self,
        address: str,
        *,
        timeout: Seconds,
        limit: Bytes = MAX_BODY,
        meter: AbstractContextManager[object] | None = None,
    ) -> None:
        """Connect when first asked.

        Args:
            address: `ip:port`.
            timeout: seconds that one page may take, the connection included.
            limit: bytes that a body may have.
            meter: entered while received bytes are worked on.
        """
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        self._address = address
        self._timeout = timeout
        self._limit = limit
        self._meter = meter if meter is not None else nullcontext()
        self._connection: _Connection | None = None

    async def get(self, path: str) -> bytes:
        """The body at `path`.

        Raises:
            PageError: no answer in time, no connection, a status that is not 200, or no HTTP.
        """
        request = (
            f"GET {path} HTTP/1.1\r\nhost: {self._address}\r\nuser-agent: lorapick\r\n"
            "accept: text/plain;version=0.0.4, application/json;q=0.9\r\naccept-encoding: identity\r\n\r\n"
        ).encode("ascii")
        try:
            async with asyncio.timeout(self._timeout):
                return await self._exchange(request)
        except TimeoutError:
            raise PageError(SilentWhy.TIMEOUT, f"no answer to {path} within {self._timeout:g} s") from None
        except OSError as error:
            raise PageError(_why(error), error.strerror or str(error) or type(error).__name__) from None
        finally:
            # Half of an answer, or one that ends with its connection: the next request needs a new one.
            if self._connection is not None and not self._connection.reusable:
                self.close()

    def close(self) -> None:
        """Drop the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _exchange(self, request: bytes) -> bytes:
        kept = self._connection
        if kept is not None:
            try:
                return await kept.ask(request)
            except _StaleError:
                # The pod had closed the kept connection; that says nothing about the pod.
                self.close()
        loop = asyncio.get_running_loop()
        _, fresh = await loop.create_connection(lambda: _Connection(self._limit, self._meter), self._host, self._port)
        self._connection = fresh
        return await fresh.ask(request)


def _why(error: OSError) -> SilentWhy:
    """A pod whose metrics break the connection listens, and may serve: only a connection refused is REFUSED."""
    return SilentWhy.REFUSED if error.errno in _NOBODY else SilentWhy.GARBAGE


class _StaleError(ConnectionResetError):
    """The connection closed before any byte of the answer."""


class _Connection(asyncio.Protocol):
    """One connection; the callbacks `on_*` are httptools' names."""

    def __init__(self, limit: Bytes, meter: AbstractContextManager[object]) -> None:
        self._limit = limit
        self._meter = meter
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._size = 0
        self._header_size = 0
        self._location = ""
        self._delimited = False
        self.reusable = False
        """Whether an answer ended cleanly and the server keeps the connection."""

    async def ask(self, request: bytes) -> bytes:
        """Send and wait for the body."""
        if self._transport is None or self._transport.is_closing():
            raise _StaleError("closed by the pod")
        self._parser = httptools.HttpResponseParser(self)
        self._body, self._size, self._header_size = [], 0, 0
        self._location, self._delimited, self.reusable = "", False, False
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        """Close at once; nobody waits for what is under way."""
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's by behaviour, not by inheritance.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.close()  # bytes that nobody asked for
            return
        with self._meter:
            self._header_size += len(data) if not self._size else 0
            try:
                self._parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
                self._fail(SilentWhy.GARBAGE, f"not an HTTP answer: {error}")
            if self._header_size > _MAX_HEADERS and not self._size:
                self._fail(SilentWhy.GARBAGE, f"more than {_MAX_HEADERS} bytes of headers")

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        if self._answer is None or self._answer.done():
            return
        if exc is None and self._header_size and not self._delimited and self._parser.get_status_code() == _OK:
            self._answer.set_result(b"".join(self._body))  # HTTP/1.0: the body ends with the connection
        elif self._header_size:
            self._answer.set_exception(ConnectionResetError("the connection closed in the middle of the answer"))
        else:
            self._answer.set_exception(_StaleError("the connection closed before an answer"))

    # -- httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        lowered = name.lower()
        if lowered == b"location":
            self._location = value[:200].decode("latin-1")
        elif lowered in (b"content-length", b"transfer-encoding"):
            self._delimited = True

    def on_headers_complete(self) -> None:
        """Status and headers are known; only 200 is worth its body."""
        status = self._parser.get_status_code()
        if status == _OK:
            return
        detail = f"status {status}"
        if 300 <= status < 400:
            detail += f" to {self._location!r}; redirects are not followed" if self._location else ""
        self._fail(SilentWhy.STATUS, detail)

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._size += len(body)
        if self._size > self._limit:
            self._fail(SilentWhy.GARBAGE, f"the body has more than {self._limit} bytes")
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self._answer is not None and not self._answer.done():
            self.reusable = self._parser.should_keep_alive()
            self._answer.set_result(b"".join(self._body))

    def _fail(self, why: SilentWhy, detail: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(PageError(why, detail))
        self.close()
