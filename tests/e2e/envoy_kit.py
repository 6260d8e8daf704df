"""A real Envoy with a recording picker and stub pods, for tests of what Envoy does with our configuration."""

import asyncio
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

import aiohttp
from aiohttp import web

from lorapick.live.addresses import free_ports
from lorapick.live.envoy.config import EnvoySettings
from lorapick.live.envoy.counters import admin_get
from lorapick.live.envoy.process import EnvoyProcess
from lorapick.live.processes import Child, ChildSpec, becomes_true

BODY = {"model": "ad0", "prompt": "hello"}


class StubPod:
    """An upstream in this process: says who it is and what it got."""

    def __init__(self, port=None):
        self.port = port
        self.requests = []
        self.aborted = 0
        self.healthy = True
        self._runner = None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    async def start(self, port=0):
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/health", self._health)
        app.router.add_post("/stream", self._stream)
        app.router.add_route("*", "/{path:.*}", self._echo)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port or self.port or 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def stop(self):
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _health(self, request):
        return web.Response(status=200 if self.healthy else 503)

    async def _echo(self, request):
        body = await request.read()
        self.requests.append(dict(request.headers))
        status = int(request.headers.get("answer-status", "200"))
        return web.json_response(
            {"port": self.port, "bytes": len(body), "headers": dict(request.headers)}, status=status
        )

    async def _stream(self, request):
        await request.read()
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            for number in range(5):
                await response.write(f"data: {number}\n\n".encode())
                await asyncio.sleep(0.1)
        except ConnectionError:
            self.aborted += 1
            return response
        await response.write_eof()
        return response


class Bench:
    """Envoy, one or two recording pickers, stub pods."""

    def __init__(self, directory):
        self.directory = directory
        self.pods = []
        self.pickers = []
        self.envoy = None
        self.session = None
        self.duplex = False
        self._told = 0
        self._journals = {}

    @property
    def url(self):
        return f"http://{self.envoy.settings.listen}"

    def journal(self, number=0):
        path = self._journals.get(number)
        if path is None or not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().splitlines()]

    async def journal_has(self, check, number=0):
        async def found():
            return any(check(line) for line in self.journal(number))

        assert await becomes_true(found, within=5.0), self.journal(number)
        return next(line for line in self.journal(number) if check(line))

    def picker_address(self, number=0):
        return f"unix:{self.directory}/picker-{number}.sock"

    def tell_picker(self, number=0, **options):
        """From the next request on the picker behaves so; its journal begins anew."""
        self._told += 1
        self.duplex = bool(options.get("duplex"))
        journal = self._journals[number] = self.directory / f"journal-{number}-{self._told}.jsonl"
        (self.directory / f"options-{number}.json").write_text(json.dumps({"journal": str(journal), **options}))

    async def renew(self, *, destination=(), **options):
        """Make a bench that another test used as good as new; the destination is one pod's number, or several."""
        numbers = [destination] if isinstance(destination, int) else destination
        for pod in self.pods:
            await pod.stop()
            pod.__init__(pod.port)
            await pod.start()
        self.envoy.set_endpoints([pod.address for pod in self.pods])
        addresses = ",".join(self.pods[number].address for number in numbers)
        self.tell_picker(destination=addresses, **options)

        async def all_healthy():
            lines = [await self.clusters(pod.address) for pod in self.pods]
            return all("health_flags::healthy" in line for line in lines)

        assert await becomes_true(all_healthy, within=10.0)
        return self

    async def start_picker(self, number=0, **options):
        self.tell_picker(number, **options)
        child = Child(
            ChildSpec(
                name=f"picker-{number}",
                argv=(
                    sys.executable,
                    str(Path(__file__).with_name("recording_extproc.py")),
                    self.picker_address(number),
                    str(self.directory / f"options-{number}.json"),
                ),
                log=self.directory / f"picker-{number}.log",
                restart_after=None,
            )
        )
        await child.start()
        self.pickers.append(child)
        socket = self.picker_address(number).removeprefix("unix:")

        async def listens():
            try:
                _, writer = await asyncio.open_unix_connection(socket)
            except OSError:
                return False
            writer.close()
            return True

        assert await becomes_true(listens, within=20.0), child.log_tail()
        return child

    async def start_envoy(self, *, pickers=1, addresses=None, **changes):
        (port,) = free_ports(1)
        settings = EnvoySettings(
            listen=f"127.0.0.1:{port}",
            extproc=changes.pop("extproc", None) or tuple(self.picker_address(number) for number in range(pickers)),
            endpoints_file=str(self.directory / "eds" / "pods.json"),
            admin=f"unix:{self.directory}/admin.sock",
            access_log=str(self.directory / "access.log"),
            **changes,
        )
        self.envoy = EnvoyProcess(settings, directory=self.directory)
        await self.envoy.start(addresses if addresses is not None else [pod.address for pod in self.pods])

    async def served_by(self, **request):
        """Post; the pod that answered 200."""
        status, body, _ = await self.post(**request)
        assert status == 200, body
        return next(pod for pod in self.pods if pod.port == body["port"])

    async def clusters(self, address):
        """What Envoy's admin page says of one endpoint."""
        _, page = await admin_get(self.envoy.settings.admin, "/clusters")
        return "\n".join(line for line in page.decode().splitlines() if address in line)

    async def post(self, path="/v1/completions", *, headers=None, data=None):
        payload = io.BytesIO(data) if data is not None else json.dumps(BODY).encode()
        async with self.session.post(self.url + path, data=payload, headers=headers) as response:
            text = await response.read()
            try:
                parsed = json.loads(text)
            except ValueError:
                parsed = text
            return response.status, parsed, response.headers


@contextlib.asynccontextmanager
async def bench(pods=2):
    """Start stub pods; give a `Bench` whose pickers and Envoy the test starts; end all of it."""
    with tempfile.TemporaryDirectory(prefix="lorapick-", dir=os.environ.get("TMPDIR", "/tmp")) as name:
        this = Bench(Path(name))
        try:
            for _ in range(pods):
                this.pods.append(await StubPod().start())
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
                this.session = session
                yield this
        finally:
            if this.envoy is not None:
                await this.envoy.stop()
            for picker in this.pickers:
                await picker.stop(grace=0.5)
            for pod in this.pods:
                await pod.stop()
