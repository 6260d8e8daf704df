"""The page client against a server that says exactly the bytes of each case."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lorapick.live.page import PageClient, PageError
from lorapick.model.pods import SilentWhy

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """A server whose connections `handler` answers; its address."""

    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await handler(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            tasks.discard(task)

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await asyncio.sleep(0.01)  # connections that were accepted in the last moment get their task
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def saying(*answers: bytes, keep: bool = True) -> Handler:
    """One answer per request on each connection."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        if keep:
            await reader.read()

    return handler


def ok(body: bytes, *headers: str) -> bytes:
    head = "".join(f"{header}\r\n" for header in (f"content-length: {len(body)}", *headers))
    return f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + body


async def refusal(handler: Handler, *, patience: float = 2.0) -> tuple[SilentWhy, str]:
    async with serving(handler) as address:
        client = PageClient(address, timeout=patience, limit=1000)
        with pytest.raises(PageError) as caught:
            await client.get("/metrics")
        client.close()
    return caught.value.why, str(caught.value)


async def test_pages_come_over_one_kept_connection() -> None:
    connections = 0
    requests: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(ok(b"page %d" % len(requests)))

    async with serving(handler) as address:
        client = PageClient(address, timeout=2.0)
        assert [await client.get("/metrics"), await client.get("/v1/models")] == [b"page 1", b"page 2"]
        client.close()
    assert connections == 1
    assert requests[0].startswith(b"GET /metrics HTTP/1.1\r\nhost: " + address.encode() + b"\r\n")
    assert b"accept-encoding: identity\r\n" in requests[0]


async def test_chunks_and_an_answer_in_many_pieces() -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for position in range(len(answer)):
            writer.write(answer[position : position + 1])
            await asyncio.sleep(0)
        await reader.read()

    async with serving(handler) as address:
        client = PageClient(address, timeout=2.0)
        assert await client.get("/") == b"hello world"
        client.close()


@pytest.mark.parametrize("headers", [(), ("connection: close",)])
async def test_a_connection_that_the_pod_closes_is_made_again(headers: tuple[str, ...]) -> None:
    async with serving(saying(ok(b"page", *headers), keep=False)) as address:
        client = PageClient(address, timeout=2.0)
        for _ in range(3):
            assert await client.get("/") == b"page"
            await asyncio.sleep(0.01)
        client.close()


async def test_a_connection_that_closes_under_the_request_is_made_again() -> None:
    served = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal served
        await reader.readuntil(b"\r\n\r\n")
        served += 1
        writer.write(ok(b"page"))
        await reader.readuntil(b"\r\n\r\n")  # the second request of this connection gets no answer

    async with serving(handler) as address:
        client = PageClient(address, timeout=2.0)
        assert [await client.get("/"), await client.get("/")] == [b"page", b"page"]
        client.close()
    assert served == 2


async def test_a_body_that_ends_with_its_connection() -> None:
    async with serving(saying(b"HTTP/1.0 200 OK\r\n\r\nold page", keep=False)) as address:
        client = PageClient(address, timeout=2.0)
        assert await client.get("/") == b"old page"


@pytest.mark.parametrize(
    ("answer", "why", "detail"),
    [
        (b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", SilentWhy.STATUS, "status 503"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n", SilentWhy.STATUS,
         "status 302 to 'http://x/'; redirects are not followed"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", SilentWhy.STATUS, "status 204"),
        (ok(b"x" * 1001), SilentWhy.GARBAGE, "the body has more than 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, SilentWhy.GARBAGE, "more than 65536 bytes of headers"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", SilentWhy.GARBAGE, "not an HTTP answer: Expected HTTP/, RTSP/ or ICE/"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", SilentWhy.GARBAGE,
         "the connection closed in the middle of the answer"),
        (b"", SilentWhy.GARBAGE, "the connection closed before an answer"),
    ],
)  # fmt: skip
async def test_failures_have_a_kind_and_a_detail(answer: bytes, why: SilentWhy, detail: str) -> None:
    assert await refusal(saying(answer, keep=False)) == (why, detail)


async def test_nobody_listens() -> None:
    async with serving(saying()) as address:
        pass
    with pytest.raises(PageError) as caught:
        await PageClient(address, timeout=2.0).get("/")
    assert caught.value.why is SilentWhy.REFUSED


async def test_a_connection_that_is_reset_is_no_refusal() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()

    why, detail = await refusal(reset)
    assert (why, bool(detail)) == (SilentWhy.GARBAGE, True)


async def test_a_pod_that_hangs_or_drips_runs_out_of_time() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    expected = (SilentWhy.TIMEOUT, "no answer to /metrics within 0.1 s")
    assert await refusal(saying(), patience=0.1) == expected
    assert await refusal(drip, patience=0.1) == expected


async def test_after_a_timeout_the_late_answer_is_not_taken_for_the_next_one() -> None:
    first = True

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal first
        await reader.readuntil(b"\r\n\r\n")
        if first:
            first = False
            await asyncio.sleep(0.15)
            writer.write(ok(b"late"))
        else:
            writer.write(ok(b"new"))
        await reader.read()

    async with serving(handler) as address:
        client = PageClient(address, timeout=0.1)
        with pytest.raises(PageError):
            await client.get("/")
        await asyncio.sleep(0.1)
        assert await client.get("/") == b"new"
        client.close()


async def test_bytes_that_nobody_asked_for_close_the_connection() -> None:
    connections = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await saying(ok(b"page") + b"more", ok(b"never"))(reader, writer)

    async with serving(handler) as address:
        client = PageClient(address, timeout=2.0)
        assert [await client.get("/"), await client.get("/")] == [b"page", b"page"]
    assert connections == 2


async def test_work_on_received_bytes_is_metered() -> None:
    class Meter:
        entered = left = 0

        def __enter__(self) -> None:
            self.entered += 1

        def __exit__(self, *_: object) -> None:
            self.left += 1

    meter = Meter()
    async with serving(saying(ok(b"page"))) as address:
        client = PageClient(address, timeout=2.0, meter=meter)  # type: ignore[arg-type]
        await client.get("/")
        client.close()
    assert meter.entered == meter.left >= 1


@hypothesis_settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.one_of(st.binary(max_size=20), st.sampled_from([b"HTTP/1.1 200 OK\r\n", b"\r\n", b"content-length: 3\r\n"]))
    )
)
def test_any_answer_is_a_page_or_the_typed_error(pieces: list[bytes]) -> None:
    async def main() -> None:
        async with serving(saying(b"".join(pieces), keep=False)) as address:
            client = PageClient(address, timeout=0.5)
            with contextlib.suppress(PageError):
                await client.get("/")
            client.close()

    asyncio.run(main())
