"""A small HTTP server for our own pages, inside the picker's event loop.

In: an ASGI application and a `host:port`. Out: a server that runs until its block is left, and the address it got.
Not here: what is served (see `live.admin`, `live.metrics`), signals (the command handles them), certificates (see
`live.tls`).
"""

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

MAX_CONNECTIONS = 256
"""Connections at once, streams included; more are answered 503."""
GRACE_S = 1
"""Seconds that answers in progress get when the server stops."""


class BindError(Exception):
    """An address cannot be listened on; the message names it, the reason and the remedy."""


def split_bind(bind: str, *, setting: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[v6]:port`. Raises BindError when it is neither."""
    host, colon, port = bind.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise BindError(f"{setting}: {bind!r} is no address; write host:port, for example 127.0.0.1:9091")
    return host, int(port)


def listen(bind: str, *, what: str, setting: str) -> socket.socket:
    """A listening TCP socket at `bind`; port 0 takes a free one. Raises BindError."""
    host, port = split_bind(bind, setting=setting)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise BindError(_why_not(error, bind, what=what, setting=setting)) from error
    return listener


def _why_not(error: OSError, bind: str, *, what: str, setting: str) -> str:
    if error.errno == errno.EADDRINUSE:
        port = bind.rpartition(":")[2]
        return f"{what}: port {port} of {bind} is in use; stop the process that has it, or set {setting} to another"
    return f"{what}: cannot listen on {bind} ({error.strerror or error}); set {setting} to an address of this machine"


def address_of(listener: socket.socket) -> str:
    """`host:port` of a listening socket, IPv6 hosts in brackets."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_of(header: str) -> str:
    """Host part of a Host header or of an origin's authority, in lower case, without brackets and port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def is_ip(host: str) -> bool:
    """Whether `host` is an IP address rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to the command."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(
    app: ASGIApp,
    bind: str,
    *,
    what: str,
    setting: str,
    on_stop: Callable[[], None] = lambda: None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    """Serve `app` while the block runs; gives the address, with the port that was taken when `bind` says 0.

    `on_stop` is called before connections are closed, so that endless answers can end. Without `tls`: plain HTTP.
    Raises BindError.
    """
    # The socket listens before the server runs, so whoever gets the address can connect at once.
    listener = listen(bind, what=what, setting=setting)
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        log_level="warning",
        limit_concurrency=MAX_CONNECTIONS,
        access_log=False,
        server_header=False,
        ws="none",
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_S,
        ssl_context_factory=None if tls is None else lambda *_: tls,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name=f"serve {what}")
    try:
        yield address_of(listener)
    finally:
        on_stop()
        server.should_exit = True
        await task
