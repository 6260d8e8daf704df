"""Unloads and loads by HTTP: what each answer of a pod means, and that exactly one event follows."""

import asyncio

import aiohttp
import msgspec
import pytest
from aiohttp import web
from control_kit import answering, control

from lorapick.live.podserver import PodServerOptions, numbered_adapters, serving
from lorapick.model.effects import Load, Unload
from lorapick.model.events import By
from lorapick.model.pods import Engine
from lorapick.pod.values import PodConfig

UNLOAD = Unload(cause=1, pod="a", adapter="adapter-000", why="pressure_hard")
LOAD = Load(cause=2, pod="a", adapters=("adapter-000",), why="pressure_over")


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
        event = await told.next()  # it has it, and nobody needs to know from where
        assert (type(event).__name__, event.seconds) == ("LoadSucceeded", None)
        made.perform(msgspec.structs.replace(LOAD, adapters=("adapter-001", "other")))
        assert type(await told.next()).__name__ == "LoadSucceeded"
        event = await told.next()
        assert event.lasting and "nobody said where other is loaded from" in event.why


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

    event, _ = await after_an_unload(load, within=0.5)
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

    async with answering(answer) as address, control(address, within=0.2) as (made, told):
        made.perform(UNLOAD)
        assert (await told.next()).why == "no answer within 0.2 s"


async def test_one_at_a_time_for_each_pod_in_order():
    begun, go, under_way, seen = asyncio.Event(), asyncio.Event(), [], []

    async def answer(request):
        under_way.append((await request.json())["lora_name"])
        seen.append(list(under_way))
        begun.set()
        await go.wait()
        under_way.pop()
        return web.json_response({"success": True})

    names = [f"adapter-{number}" for number in range(5)]
    listed = {"data": [{"id": name, "root": "/w", "parent": "base"} for name in names]}
    async with answering(answer, listed=listed) as address, control(address) as (made, told):
        for name in names:
            made.perform(Unload(cause=1, pod="a", adapter=name, why="pressure_hard"))
        await begun.wait()
        assert (made.counts().waiting, made.counts().under_way) == (4, 1)
        go.set()
        assert [(await told.next()).adapter for _ in names] == names
        assert seen == [[name] for name in names]


async def test_a_pod_that_is_away_or_gone_fails_at_once():
    async with control("127.0.0.1:9") as (made, told):
        made.perform(UNLOAD)
        assert "ClientConnectorError" in (await told.next()).why
    async with control(None) as (made, told):
        made.perform(UNLOAD)
        assert (await told.next()).why == "the pod is gone"


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
        assert [(type(event).__name__, event.why) for event in told.events] == [
            ("UnloadFailed", "the picker is ending")
        ]
