"""Unloads and loads by HTTP: what each answer of a pod means, and that exactly one event follows."""

import asyncio
import contextlib

import aiohttp
import pytest
from aiohttp import web

from lorapick.live.control import PodControl
from lorapick.live.podserver import PodServerOptions, numbered_adapters, serving
from lorapick.model.effects import Load, Register, Unload
from lorapick.model.events import By
from lorapick.model.pods import Engine, Pod
from lorapick.pod.values import PodConfig

UNLOAD = Unload(cause=1, pod="a", adapter="adapter-000", why="pressure_hard")
LOAD = Load(cause=2, pod="a", adapters=("adapter-000",), why="pressure_over")
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
        while not self.events:
            self._more.clear()
            await asyncio.wait_for(self._more.wait(), 20)
        return self.events.pop(0)


@contextlib.asynccontextmanager
async def control(address, *, engine=Engine.SGLANG, **parts):
    """A control that runs, of one pod at an address (None: there is no pod), and what it said."""
    told = Told()
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


async def came_of(status, document):
    """The event that an answer leads to."""

    async def answer(_):
        return web.json_response(document, status=status)

    async with answering(answer) as address, control(address) as (made, told):
        made.perform(UNLOAD)
        return await told.next()


EMULATED = PodServerOptions(
    port=0, engine=Engine.SGLANG, adapters=numbered_adapters(2), config=PodConfig(unload_frees=True)
)


async def test_an_emulated_pod_unloads_and_a_second_unload_finds_nothing_to_do():
    async with serving(EMULATED) as served, control(served.address) as (made, told):
        for _ in range(2):
            made.perform(UNLOAD)
            event = await told.next()
            assert (type(event).__name__, event.pod, event.adapter) == ("Unloaded", "a", "adapter-000")


async def listed_by(address):
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}/v1/models") as response:
        return {card["id"]: card["root"] for card in (await response.json())["data"]}


async def test_an_emulated_pod_gets_back_what_it_unloaded_from_where_it_had_it():
    async with serving(EMULATED) as served, control(served.address) as (made, told):
        before = await listed_by(served.address)
        made.perform(UNLOAD)
        assert type(await told.next()).__name__ == "Unloaded"
        assert "adapter-000" not in await listed_by(served.address)
        made.perform(LOAD)
        event = await told.next()
        assert (type(event).__name__, event.pod, event.adapter, event.by) == (
            "LoadSucceeded", "a", "adapter-000", By.CONTROLLER,
        )  # fmt: skip
        assert await listed_by(served.address) == before
        made.perform(LOAD)
        event = await told.next()
        assert (type(event).__name__, event.why) == ("LoadFailed", "nobody knows the adapter's path there")


async def after_an_unload(load, **parts):
    """What a load leads to that such a pod answers so, and what it was asked."""
    bodies = []

    async def unload(_):
        return web.json_response({"success": True})

    async def noted(request):
        bodies.append(await request.json())
        return await load(request)

    async with answering(unload, load=noted) as address, control(address, **parts) as (made, told):
        made.perform(UNLOAD)
        assert type(await told.next()).__name__ == "Unloaded"
        made.perform(LOAD)
        return await told.next(), bodies


@pytest.mark.parametrize(
    ("status", "document", "done"),
    [
        (200, {"success": True, "loaded_adapters": {"adapter-000": "/weights/0"}}, True),
        (200, {}, True),
        (200, {"success": False, "error_message": "no"}, False),
        (400, {"success": False, "loaded_adapters": {"adapter-000": "/weights/0"}}, True),
        (400, {"success": False, "error_message": "adapter-000 is already loaded"}, True),
        (400, {"success": False, "error_message": "no such file", "loaded_adapters": {}}, False),
        (404, {"detail": "Not Found"}, False),
        (500, {"success": True}, False),
    ],
)
async def test_what_an_answer_to_a_load_means(status, document, done):
    async def load(_):
        return web.json_response(document, status=status)

    event, bodies = await after_an_unload(load)
    assert bodies == [{"lora_name": "adapter-000", "lora_path": "/weights/0"}]
    assert type(event).__name__ == ("LoadSucceeded" if done else "LoadFailed")
    assert done or event.why.startswith(f"status {status}")


async def test_a_load_that_is_not_answered_is_given_up():
    async def load(_):
        await asyncio.sleep(60)

    event, _ = await after_an_unload(load, timeout=0.5)
    assert (type(event).__name__, event.why) == ("LoadFailed", "no answer within 0.5 s")


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ({"data": [{"id": "base"}]}, "no path for the adapter"),
        ({"data": [{"id": "adapter-000", "parent": "base"}]}, "no path for the adapter"),
        ({"data": 7}, "not a list of models"),
        (500, "/v1/models: status 500"),
    ],
)
async def test_nothing_is_unloaded_that_could_not_be_loaded_again(listed, why):
    asked = []

    async def unload(request):
        asked.append(request.path)
        return web.json_response({"success": True})

    async with answering(unload, listed=listed) as address, control(address) as (made, told):
        made.perform(UNLOAD)
        event = await told.next()
        assert (type(event).__name__, asked) == ("UnloadFailed", []) and why in event.why


async def test_each_adapter_of_a_load_has_its_event():
    async with control(None) as (made, told):
        made.perform(Load(cause=1, pod="a", adapters=("x", "y"), why="test"))
        events = [await told.next(), await told.next()]
        assert [(event.adapter, event.why) for event in events] == [("x", "the pod is gone"), ("y", "the pod is gone")]


@pytest.mark.parametrize(
    ("status", "document", "done"),
    [
        (200, {"success": True, "loaded_adapters": {"adapter-001": "/x"}}, True),
        (200, {}, True),
        (200, {"success": False, "error_message": "no"}, False),
        (400, {"success": False, "loaded_adapters": {"adapter-001": "/x"}}, True),
        (400, {"success": False, "loaded_adapters": ["adapter-000"]}, False),
        (400, {"error": {"message": "LoRA is off"}}, False),
        (404, {"detail": "Not Found"}, False),
        (404, {"loaded_adapters": []}, True),
        (500, {"success": True, "loaded_adapters": {}}, False),
        (302, {}, False),
    ],
)
async def test_what_an_answer_means(status, document, done):
    event = await came_of(status, document)
    assert type(event).__name__ == ("Unloaded" if done else "UnloadFailed")
    assert done or event.why.startswith(f"status {status}")


@pytest.mark.parametrize("text", [b"<html>", b"", b"\xff\xfe", b"[1]", b'{"success": 7}'])
async def test_an_answer_of_another_kind_is_a_failure(text):
    async def answer(_):
        return web.Response(body=text)

    async with answering(answer) as address, control(address) as (made, told):
        made.perform(UNLOAD)
        assert type(await told.next()).__name__ == "UnloadFailed"


async def test_one_that_does_not_answer_is_given_up():
    async def answer(_):
        await asyncio.sleep(60)

    async with answering(answer) as address, control(address, timeout=0.2) as (made, told):
        made.perform(UNLOAD)
        assert (await told.next()).why == "no answer within 0.2 s"


async def test_one_at_a_time_for_each_pod():
    go = asyncio.Event()

    async def answer(_):
        await go.wait()
        return web.json_response({"success": True})

    async with answering(answer) as address, control(address) as (made, told):
        made.perform(UNLOAD)
        made.perform(UNLOAD)
        assert (await told.next()).why == "another command is under way there"
        go.set()
        assert type(await told.next()).__name__ == "Unloaded"
        made.perform(UNLOAD)
        assert type(await told.next()).__name__ == "Unloaded"


async def test_a_pod_that_is_away_or_gone_fails_at_once():
    async with control("127.0.0.1:9") as (made, told):
        made.perform(UNLOAD)
        assert "ClientConnectorError" in (await told.next()).why
    async with control(None) as (made, told):
        made.perform(UNLOAD)
        assert (await told.next()).why == "the pod is gone"


async def test_engines_whose_unload_frees_nothing_are_not_asked():
    async with control("127.0.0.1:9", engine=Engine.VLLM) as (made, told):
        made.perform(UNLOAD)
        assert (await told.next()).why == "an unload frees nothing on vllm"
        made.perform(LOAD)
        assert (await told.next()).why == "nobody loads on vllm by command yet"


async def test_nothing_is_begun_before_and_after_the_run():
    async with control("127.0.0.1:9") as (made, told):
        pass
    made.perform(UNLOAD)
    assert (await told.next()).why == "the picker is ending"


async def test_what_is_under_way_ends_with_the_run():
    async def answer(_):
        await asyncio.sleep(60)

    async with answering(answer) as address:
        async with control(address) as (made, told):
            made.perform(UNLOAD)
            await asyncio.sleep(0.05)
        assert told.events == []


async def test_other_commands_are_refused(caplog):
    async with control("127.0.0.1:9") as (made, told):
        made.perform(Register(cause=1, pod="a", adapter="adapter-000"))
        await asyncio.sleep(0)
    assert "no driver for Register yet" in caplog.text and told.events == []
