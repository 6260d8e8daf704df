"""Listen: an emulated pod on a real socket, for the command line and for tests.

In: `PodServerOptions`. Out: a running uvicorn server (vLLM's own), until told to stop.
Not here: signals and printing (see `cli.pod`), routes (see `app`).
"""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import msgspec
import uvicorn

from lorapick.live.podserver.app import build_app
from lorapick.live.podserver.options import PodServerOptions

_BACKLOG = 2048


class CannotListenError(OSError):
    """The address cannot be listened on; the message says which and what to do."""


class PortInUseError(CannotListenError):
    """Another process listens there."""


class Served(msgspec.Struct, frozen=True):
    """Where a pod listens."""

    host: str
    port: int

    @property
    def address(self) -> str:
        """`host:port`; an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Root of the pod's routes."""
        return f"http://{self.address}"


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller and says when it accepts connections."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none: several pods may share a process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


async def serve(
    options: PodServerOptions, *, stop: asyncio.Event, ready: Callable[[Served], None] = lambda _served: None
) -> None:
    """Serve until `stop` is set; then finish what is in flight, at the longest `drain_timeout`.

    `ready` is called once, when connections are accepted.

    Raises:
        BadPodConfig: the configuration describes no pod.
        PortInUseError: another process listens on the port.
        CannotListenError: the host is not an address of this machine.
    """
    listener = _bind(options.host, options.port)
    try:
        app = build_app(options)
    except OSError as error:
        listener.close()
        raise CannotListenError(
            f"cannot publish KV events: {error.strerror}; give a free port with --kv-events-port, or 0"
        ) from None
    except BaseException:
        listener.close()
        raise
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(
        app,
        http="httptools",
        lifespan="on",
        access_log=False,
        log_config=None,
        log_level="warning",
        backlog=_BACKLOG,
        timeout_graceful_shutdown=max(1, round(options.drain_timeout)),
    )
    server = _Server(config, lambda: ready(Served(host, port)))

    async def until_stopped() -> None:
        await stop.wait()
        server.should_exit = True

    stopping = asyncio.create_task(until_stopped(), name="stop pod")
    try:
        await server.serve(sockets=[listener])
    finally:
        stopping.cancel()
        listener.close()


@asynccontextmanager
async def serving(options: PodServerOptions) -> AsyncIterator[Served]:
    """A pod in this process for the length of a block; `port=0` gives it a free port.

    Raises:
        PortInUseError: another process listens on the port.
    """
    stop = asyncio.Event()
    started: asyncio.Future[Served] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(serve(options, stop=stop, ready=started.set_result), name=f"serve {options.name}")
    await asyncio.wait((running, started), return_when=asyncio.FIRST_COMPLETED)
    if not started.done():
        started.cancel()
        await running
    try:
        yield started.result()
    finally:
        stop.set()
        await running


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's delay off only for sockets that say they are TCP; with it on,
    # an answer's headers and body, two writes, are 40 ms apart.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # Listening at once makes a second pod on the port fail here, and not later inside the server.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            remedy = "stop what listens there, or choose another with --port"
            raise PortInUseError(f"port {port} on {host} is in use: {remedy}") from None
        remedy = "give an address of this machine, and a port that this user may have"
        raise CannotListenError(f"cannot listen on {host}:{port}: {error.strerror}; {remedy}") from None
    except UnicodeError:
        listener.close()
        raise CannotListenError(f"cannot listen on {host}: it is no name of a host; give an address") from None
    listener.setblocking(False)
    return listener
