"""What tests of commands to pods share: the driver's door, a control that runs, a pod that answers as it is told."""

import asyncio
import contextlib

from aiohttp import web

from lorapick.live.control import AllowedSources, PodControl, Timeouts
from lorapick.model.pods import Engine, Pod

LISTED = {"data": [{"id": "base"}, {"id": "adapter-000", "root": "/weights/0", "parent": "base"}]}


class Told:
    """The driver's door."""

    def __init__(self):
        self.events = []
        self._more = asyncio.Event()

    def submit(self, make):
        self.events.append(make(0.0, len(self.events) + 1))
        self._more.set()

    async def next(self):
        """The next event but for those that say that a load begins."""
        while True:
            while not self.events:
                self._more.clear()
                await asyncio.wait_for(self._more.wait(), 20)
            event = self.events.pop(0)
            if type(event).__name__ != "LoadStarted":
                return event


@contextlib.asynccontextmanager
async def control(address, *, engine=Engine.SGLANG, within=None, **parts):
    """A control that runs, of one pod at an address (None: there is no pod), and what it said."""
    told = Told()
    if within is not None:
        parts["timeouts"] = Timeouts(pod=within, touch=within, source=within)
    pod = Pod(name="a", address=address, engine=engine) if address is not None else None
    made = PodControl(submit=told.submit, **{"find": lambda _: pod, **parts})
    running = asyncio.create_task(made.run())
    await asyncio.sleep(0)
    try:
        yield made, told
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@contextlib.asynccontextmanager
async def answering(handler, *, load=None, listed=LISTED):
    """A pod that answers unloads so, and loads, and what it serves; its address."""

    async def models(_):
        return web.json_response(listed) if isinstance(listed, dict) else web.Response(status=listed)

    app = web.Application()
    app.router.add_get("/v1/models", models)
    app.router.add_post("/unload_lora_adapter", handler)
    if load is not None:
        app.router.add_post("/load_lora_adapter", load)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class Stub:
    """A pod that answers as vLLM's paths are told: status and body (a dict is JSON), or a coroutine function."""

    NO_ROUTE = (404, {"error": {"message": "Not Found", "type": "Not Found", "param": None, "code": 404}})
    LOADED = (200, "Success: LoRA adapter 'ad' added successfully.")
    TAKEN = (400, {"error": {"message": "The lora adapter 'ad' has already been loaded. If you want", "code": 400}})
    TOUCHED = (200, {"id": "cmpl-1", "model": "ad", "choices": [{"text": "x"}]})
    UNKNOWN = (404, {"error": {"message": "The model `ad` does not exist. Valid aliases: base.", "code": 404}})

    def __init__(self, *, load=NO_ROUTE, touch=UNKNOWN, unload=NO_ROUTE, listed=()):
        cards = [{"id": name, "root": "/w", "parent": "base"} for name in listed]
        self.says = {
            "/v1/load_lora_adapter": load,
            "/v1/completions": touch,
            "/v1/unload_lora_adapter": unload,
            "/v1/models": (200, {"data": [{"id": "base"}, *cards]}),
        }
        self.asked = []
        self.bodies = []
        self.headers = []

    async def answer(self, request):
        self.asked.append(request.path.rpartition("/")[2])
        self.headers.append(request.headers)
        if request.method == "POST":
            self.bodies.append(await request.json())
        says = self.says.get(request.path, self.NO_ROUTE)
        if callable(says):
            return await says(request)
        status, body = says
        return (
            web.json_response(body, status=status) if isinstance(body, dict) else web.Response(status=status, body=body)
        )

    @contextlib.asynccontextmanager
    async def serving(self):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def weights(adapter, pod):
    """Every adapter is at `/w`."""
    del pod
    return f"/w/{adapter}"


async def came_of(stub, command, *, engine=Engine.VLLM, sources=weights, **parts):
    """The event that a command leads to at a stub; it is the only one, but for one that says that a load begins."""
    parts = {"allowed": AllowedSources(prefixes=["/w"]), **parts}
    async with stub.serving() as address, control(address, engine=engine, sources=sources, **parts) as (made, told):
        made.perform(command)
        event = await told.next()
    assert told.events == []
    return event
