"""Commands to TensorRT-LLM and Triton: one-token requests, what their answers mean, and what cannot be commanded."""

import asyncio

import pytest
from control_kit import Stub, came_of, control

from lorapick.live.control import AllowedSources
from lorapick.live.ports import NoSourceError
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.placement import Why
from lorapick.model.pods import Engine
from lorapick.wire.asking import task_id

LOAD = Load(cause=1, pod="a", adapters=("ad",), why=Why.PIN)
REGISTER = Register(cause=1, pod="a", adapter="ad")
TOUCH = Touch(cause=1, pod="a", adapter="ad")
UNLOAD = Unload(cause=1, pod="a", adapter="ad", why=Why.OPERATOR)
ANSWERED = (200, {"id": "cmpl-1", "model": "base", "choices": [{"text": "x"}]})
ASKED = {
    "model": "base",
    "prompt": "x",
    "max_tokens": 1,
    "lora_request": {"lora_name": "ad", "lora_int_id": task_id("ad", "/w/ad"), "lora_path": "/w/ad"},
}


def name_of(event):
    return type(event).__name__


def said(message, status=400):
    return (status, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": status})


@pytest.mark.parametrize(("command", "event"), [(LOAD, "LoadSucceeded"), (TOUCH, "Touched")])
async def test_trtllm_is_asked_for_one_token_and_told_where_it_is(command, event):
    stub = Stub(touch=ANSWERED)
    found = await came_of(stub, command, engine=Engine.TRTLLM)
    assert (name_of(found), getattr(found, "seconds", None)) == (event, None)
    assert (stub.asked, stub.bodies) == (["completions"], [ASKED])
    assert stub.headers[0]["x-lorapick-touch"] == "1"


async def test_trtllm_answers_under_a_name_of_its_own():
    stub = Stub(touch=(200, {"model": "Llama-3.1-8B-Instruct", "choices": [{"text": "x"}]}))
    assert name_of(await came_of(stub, TOUCH, engine=Engine.TRTLLM)) == "Touched"


@pytest.mark.parametrize(("command", "event"), [(LOAD, "LoadSucceeded"), (TOUCH, "Touched")])
async def test_triton_is_asked_by_one_name(command, event):
    stub = Stub(touch=(200, {"id": "cmpl-1", "model": "base_lora_ad", "choices": [{"text": "x"}]}))
    assert name_of(await came_of(stub, command, engine=Engine.TRITON)) == event
    assert stub.bodies == [{"model": "base_lora_ad", "prompt": "x", "max_tokens": 1}]


async def test_names_need_not_be_told_to_trtllm_and_cannot_be_told_to_triton():
    stub = Stub()
    event = await came_of(stub, REGISTER, engine=Engine.TRTLLM)
    assert (name_of(event), event.known_before) == ("Registered", True)
    event = await came_of(stub, REGISTER, engine=Engine.TRITON)
    assert name_of(event) == "RegisterFailed" and event.lasting and "multi_lora.json" in event.why
    assert stub.asked == []


@pytest.mark.parametrize("engine", [Engine.TRTLLM, Engine.TRITON])
async def test_nothing_can_be_unloaded(engine):
    stub = Stub()
    event = await came_of(stub, UNLOAD, engine=engine)
    assert name_of(event) == "UnloadFailed" and "has no path to unload" in event.why and stub.asked == []


async def nobody_knows(adapter, pod):
    raise NoSourceError(f"nobody said where {adapter} is")


@pytest.mark.parametrize("command", [LOAD, REGISTER, TOUCH])
async def test_trtllm_is_told_nothing_without_a_path(command):
    stub = Stub(touch=ANSWERED)
    event = await came_of(stub, command, engine=Engine.TRTLLM, sources=nobody_knows)
    assert name_of(event).endswith("Failed") and "nobody knows where ad is" in event.why and stub.asked == []


async def test_trtllm_is_told_no_path_that_is_not_allowed():
    stub = Stub(touch=ANSWERED)
    event = await came_of(stub, TOUCH, engine=Engine.TRTLLM, allowed=AllowedSources(prefixes=["/other"]))
    assert name_of(event) == "TouchFailed" and "placement.sources" in event.why and stub.asked == []


@pytest.mark.parametrize(
    ("engine", "answer", "why", "lasting"),
    [
        (Engine.TRTLLM, said("lora_path (/w/ad) does not exist."), "nothing is at that path", True),
        (Engine.TRTLLM, said("Cache is full. There are no done tasks to evict", 500), "no room now", False),
        (Engine.TRTLLM, said("LoRA task 7 not found in cache. Please send", 500), "no room now", False),
        (Engine.TRTLLM, said("LoRA is not enabled", 500), "status 500", True),
        (Engine.TRTLLM, said("rank 64 exceeds max_lora_rank 16", 500), "status 500", True),
        (Engine.TRTLLM, said("worker died", 500), "status 500", False),
        (Engine.TRTLLM, (422, {"detail": [{"type": "extra_forbidden"}]}), "status 422", True),
        (Engine.TRTLLM, (404, {"detail": "Not Found"}), "serve it through its OpenAI server", True),
        (Engine.TRTLLM, (200, {"no": "completion"}), "no completion", False),
        (Engine.TRITON, (200, {"choices": [], "model": "else"}), "another model answered", False),
        (Engine.TRITON, (400, {"detail": "Unknown LoRA: ad; for model: base_lora_ad"}), "does not serve", True),
        (Engine.TRITON, (400, {"detail": "Unknown model: base_lora_ad"}), "does not serve", True),
        (Engine.TRITON, (503, b"<html>"), "status 503", False),
    ],
)
async def test_what_answers_mean(engine, answer, why, lasting):
    event = await came_of(Stub(touch=answer), LOAD, engine=engine)
    assert name_of(event) == "LoadFailed" and why in event.why, event
    assert event.lasting is lasting


async def test_a_name_that_triton_does_not_serve_has_its_list_read_again():
    missing = []
    stub = Stub(touch=(400, {"detail": "Unknown LoRA: ad; for model: base_lora_ad"}))
    await came_of(stub, TOUCH, engine=Engine.TRITON, on_missing=missing.append)
    assert missing == ["a"]


async def test_one_that_does_not_answer_is_given_up():
    async def hang(_):
        await asyncio.sleep(60)

    stub = Stub(touch=hang)
    async with stub.serving() as address, control(address, engine=Engine.TRITON, within=0.3) as (made, told):
        made.perform(LOAD)
        event = await told.next()
    assert (name_of(event), event.why) == ("LoadFailed", "no answer within 0.3 s")
