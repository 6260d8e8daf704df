"""What SGLang's own words mean: those of versions 0.4.9 to 0.5.23 that the answers of an emulated pod do not cover."""

import pytest
from aiohttp import web
from control_kit import Stub, answering, came_of, control

from lorapick.model.effects import Load, Touch, Unload
from lorapick.model.placement import Why
from lorapick.model.pods import Engine, Pod

LOAD = Load(cause=1, pod="a", adapters=("ad",), why=Why.PIN)
TOUCH = Touch(cause=1, pod="a", adapter="ad")
UNLOAD = Unload(cause=1, pod="a", adapter="ad", why=Why.OPERATOR)


def name_of(event):
    return type(event).__name__


class Sglang(Stub):
    """A pod that answers as SGLang's paths are told."""

    def __init__(self, *, load=Stub.NO_ROUTE, unload=Stub.NO_ROUTE, info=Stub.NO_ROUTE, old_info=Stub.NO_ROUTE, **rest):
        super().__init__(**rest)
        self.says |= {
            "/load_lora_adapter": load,
            "/unload_lora_adapter": unload,
            "/server_info": info,
            "/get_server_info": old_info,
        }


def said(message, *, loaded=None):
    return (400, {"success": False, "error_message": message, "loaded_adapters": loaded})


@pytest.mark.parametrize(
    ("answer", "event"),
    [
        (said("LoRA with name ad does not exist. Loaded LoRAs: odict_keys([])"), "Unloaded"),
        (said("LoRA adapter ad is not loaded.", loaded={}), "Unloaded"),
        (said("LoRA is not enabled. Please set `--enable-lora`"), "UnloadFailed"),
        (said("ad does not exist", loaded={"ad": "/w"}), "UnloadFailed"),
    ],
)
async def test_an_unload_of_who_is_gone(answer, event):
    assert name_of(await came_of(Sglang(unload=answer), UNLOAD, engine=Engine.SGLANG)) == event


@pytest.mark.parametrize(
    "message",
    [
        "LoRA is not enabled. Please set `--enable-lora` to enable LoRA.",
        "LoRA adapter ad with rank 128 is incompatible with the current LoRA memory pool configuration",
        "Failed to load LoRA adapter ad as a pinned adapter.",
    ],
)
async def test_a_load_that_would_be_refused_again(message):
    event = await came_of(Sglang(load=said(message)), LOAD, engine=Engine.SGLANG)
    assert name_of(event) == "LoadFailed" and event.lasting and message[:20] in event.why


async def test_a_load_of_who_is_there_already():
    answer = said("LoRA with name ad already exists. Loaded LoRAs: odict_keys(['ad'])")
    event = await came_of(Sglang(load=answer), LOAD, engine=Engine.SGLANG)
    assert (name_of(event), event.seconds) == ("LoadSucceeded", None)


TWO = (200, {"dp_size": 2, "enable_dp_attention": False})


@pytest.mark.parametrize(
    ("parts", "lasting"),
    [
        ({"info": TWO}, True),
        ({"old_info": TWO}, True),
        ({"info": (200, {"dp_size": 2, "enable_dp_attention": True})}, False),
        ({"info": (200, {"dp_size": 1})}, False),
        ({"info": (200, b"no json")}, False),
        ({}, False),
    ],
)
async def test_a_500_without_a_word_is_looked_up(parts, lasting):
    stub = Sglang(load=(500, b"Internal Server Error"), **parts)
    event = await came_of(stub, LOAD, engine=Engine.SGLANG)
    assert name_of(event) == "LoadFailed" and event.lasting is lasting
    assert ("dp_size 2 takes no adapters while it runs" in event.why) is lasting


async def test_an_unload_that_fails_so_is_looked_up_too():
    event = await came_of(Sglang(unload=(500, b"Internal Server Error"), info=TWO), UNLOAD, engine=Engine.SGLANG)
    assert name_of(event) == "UnloadFailed" and "--lora-paths" in event.why


@pytest.mark.parametrize("path", ["__tensor__", "__distributed__"])
async def test_what_came_as_tensors_is_not_unloaded_for_memory(path):
    async def unload(_):
        return web.json_response({"success": True})

    listed = {"data": [{"id": "base"}, {"id": "ad", "root": path, "parent": "base"}]}
    async with answering(unload, listed=listed) as address, control(address) as (made, told):
        made.perform(Unload(cause=1, pod="a", adapter="ad", why="pressure_hard"))
        event = await told.next()
    assert name_of(event) == "UnloadFailed" and "came as tensors" in event.why


async def test_a_touch_of_who_was_never_loaded():
    answer = (400, {"object": "error", "message": "Got LoRA adapter that has never been loaded: ad", "code": 400})
    event = await came_of(Sglang(touch=answer), TOUCH, engine=Engine.SGLANG)
    assert name_of(event) == "TouchFailed" and "does not serve the adapter" in event.why


async def test_names_that_it_cannot_tell_apart_are_not_asked_for():
    stub = Sglang()
    async with stub.serving() as address:
        pod = Pod(name="a", address=address, engine=Engine.SGLANG, base_model="qwen:7b")
        async with control(address, find=lambda _: pod) as (made, told):
            made.perform(Touch(cause=1, pod="a", adapter="team:ad"))
            event = await told.next()
    assert name_of(event) == "TouchFailed" and "--served-model-name" in event.why and stub.asked == []
