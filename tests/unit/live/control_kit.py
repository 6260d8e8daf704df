"""What tests of commands to pods share: the driver's door, a control that runs, a pod that answers as it is told."""

import asyncio
import contextlib

from aiohttp import web

from lorapick.live.control import PodControl, Timeouts
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
    made = PodControl(submit=told.submit, find=lambda _: pod, **parts)
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
