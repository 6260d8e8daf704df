"""Calls from one emulated pod to another: one client for the sidecar and for KV.

In: an address, a path, a body. Out: the whole answer; `PodCallError` when there is none.
Not here: what is asked (see `sidecar`, `pulling`), and whom it may be asked of.
"""

from collections.abc import Mapping

import aiohttp
import msgspec

from lorapick.model.units import Bytes, Seconds

_LONGEST_ANSWER: Bytes = 4 * 1024 * 1024
_CONNECT: Seconds = 5.0
_KEEP_ALIVE: Seconds = 2.0
"""Shorter than the 5 s of the other side's uvicorn, so that no call is sent into a connection that is being closed."""


class PodCallError(Exception):
    """The pod did not answer, or not to the end."""


class PodTimeoutError(PodCallError):
    """It did not answer in time."""


class LongAnswerError(PodCallError):
    """It answers with more than anybody reads."""


class PodAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class PodCalls:
    """Calls of one pod."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self, method: str, url: str, *, headers: Mapping[str, str], within: Seconds, body: bytes | None = None
    ) -> PodAnswer:
        """Call, and read the whole answer; redirects are not followed.

        Raises:
            PodTimeoutError: no answer within so many real seconds.
            LongAnswerError: the answer is too long.
            PodCallError: no connection, or a broken one.
        """
        limit = aiohttp.ClientTimeout(total=within, sock_connect=min(within, _CONNECT))
        try:
            async with self._open().request(
                method, url, data=body, headers=headers, timeout=limit, allow_redirects=False
            ) as response:
                data = await _read(response)
                return PodAnswer(status=response.status, headers=response.headers, body=data)
        except aiohttp.ServerTimeoutError as error:  # to connect took too long: as good as refused
            raise PodCallError(f"{url}: {error}") from None
        except TimeoutError:
            raise PodTimeoutError(f"{url} did not answer within {within:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise PodCallError(f"{url}: {error}") from None

    async def close(self) -> None:
        """End all connections."""
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)
        return self._session


async def _read(response: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > _LONGEST_ANSWER:
            raise LongAnswerError(f"{response.url} answers with more than {_LONGEST_ANSWER} bytes")
    return bytes(data)
