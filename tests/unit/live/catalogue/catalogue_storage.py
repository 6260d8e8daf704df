"""Servers of adapters on 127.0.0.1: a plain one, and one that speaks as much S3 as reading objects needs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote
from xml.sax.saxutils import escape

from aiohttp import web


class Storage:
    """Files by path, and what was asked for."""

    def __init__(self, *, s3: bool) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.key: str | None = None
        """S3: the access key that requests must be signed with; HTTP: the password; None: anyone may read."""
        self.closed = asyncio.Event()
        """Set: bodies are sent whole; clear: after half of them nothing comes."""
        self.closed.set()
        self.most_at_once = 0
        self._now = 0
        self.url = ""
        self._s3 = s3

    def put(self, folder: str, files: dict[str, bytes]) -> None:
        for name, content in files.items():
            self.files[f"/{folder}/{name}"] = content

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if self.key is not None and self.key not in request.headers.get("Authorization", ""):
            return self._refusal(403, "AccessDenied") if self._s3 else web.Response(status=401)
        content = self.files.get(request.path)
        if content is None:
            return self._refusal(404, "NoSuchKey") if self._s3 else web.Response(status=404)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            return await self._send(request, content)
        finally:
            self._now -= 1

    async def _send(self, request: web.Request, content: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"ETag": '"1"', "Last-Modified": "Mon, 30 Nov 2026 00:00:00 GMT"})
        response.content_length = len(content)
        await response.prepare(request)
        await response.write(content[: len(content) // 2])
        if not request.path.endswith(".json"):
            await self.closed.wait()
        await response.write(content[len(content) // 2 :])
        await response.write_eof()
        return response

    def _refusal(self, status: int, code: str) -> web.Response:
        text = f"<?xml version='1.0'?><Error><Code>{escape(quote(code))}</Code><Message>no</Message></Error>"
        return web.Response(status=status, text=text, content_type="application/xml")


@asynccontextmanager
async def storage(*, s3: bool = False) -> AsyncIterator[Storage]:
    """A server until the end of the block."""
    store = Storage(s3=s3)
    app = web.Application()
    app.router.add_get("/{path:.*}", store.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        store.url = f"http://{host}:{port}"
        yield store
    finally:
        store.closed.set()
        await runner.cleanup()
