"""vLLM's statuses and bodies, as 0.21 and 0.32 word them, and what each means to a command."""

import asyncio

import msgspec
import pytest
from aiohttp import web
from control_kit import Stub, came_of, control, weights

from lorapick.live.control import AllowedSources, StaticSources
from lorapick.live.ports import NoSourceError, SourceError
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.events import By
from lorapick.model.placement import Why
from lorapick.model.pods import Engine

LOAD = Load(cause=1, pod="a", adapters=("ad",), why=Why.PIN)
REGISTER = Register(cause=1, pod="a", adapter="ad")
UNLOAD = Unload(cause=1, pod="a", adapter="ad", why=Why.RETIRED)
TOUCH = Touch(cause=1, pod="a", adapter="ad")


def error(message, status=500):
    return status, {"error": {"message": message, "type": "InternalServerError", "param": None, "code": status}}


NO_PATH = error("Loading lora ad failed: No adapter found for /w/ad", 404)
RANK = error("Call to add_lora method failed: LoRA rank 64 is greater than max_lora_rank 16.")
NO_MEMORY = error("Call to add_lora method failed: CUDA out of memory")


async def nowhere(adapter, pod):
    raise NoSourceError("nobody said where")


def name_of(event):
    return type(event).__name__


async def test_a_load_of_a_new_name_is_one_call():
    stub = Stub(load=Stub.LOADED)
    event = await came_of(stub, LOAD)
    assert (name_of(event), event.pod, event.adapter, event.by) == ("LoadSucceeded", "a", "ad", By.CONTROLLER)
    assert event.seconds > 0
    assert stub.asked == ["load_lora_adapter"] and stub.bodies == [{"lora_name": "ad", "lora_path": "/w/ad"}]


async def test_a_load_of_a_known_name_is_a_touch_which_alone_brings_it_into_a_slot():
    stub = Stub(load=Stub.TAKEN, touch=Stub.TOUCHED)
    event = await came_of(stub, LOAD)
    assert (name_of(event), event.seconds) == ("LoadSucceeded", None)
    assert stub.asked == ["load_lora_adapter", "completions"]
    assert stub.bodies[1] == {"model": "ad", "prompt": "x", "max_tokens": 1}


@pytest.mark.parametrize("touch", [Stub.UNKNOWN, error("EngineCore encountered an issue."), (200, {"choices": 7})])
async def test_a_load_whose_touch_fails_has_failed(touch):
    event = await came_of(Stub(load=Stub.TAKEN, touch=touch), LOAD)
    assert name_of(event) == "LoadFailed" and not event.lasting


@pytest.mark.parametrize(
    ("load", "lasting", "why"),
    [
        (NO_PATH, True, "No adapter found for /w/ad"),
        (RANK, True, "max_lora_rank"),
        (NO_MEMORY, False, "out of memory"),
        (error("expected target modules in {'q_proj'} but received ['x']"), True, "target modules"),
        (error("The lora adapter 'ad' conflicts with a served base model.", 400), True, "conflicts"),
        (error("1 validation error:", 400), True, "validation"),
        ((500, "Internal Server Error"), False, "Internal Server Error"),
        ((503, b""), False, "status 503"),
        ((429, b"later"), False, "later"),
        ((401, {"error": "Unauthorized"}), True, "no credentials"),
        ((302, b""), True, "a redirect, which is not followed"),
        ((404, b"<html>no such site"), True, "status 404"),
        ((418, b"\xff\xfe\x00"), True, "status 418"),
    ],
)
async def test_what_else_is_answered_is_a_failure_that_may_last(load, lasting, why):
    for command, name in ((LOAD, "LoadFailed"), (REGISTER, "RegisterFailed")):
        stub = Stub(load=load)
        event = await came_of(stub, command)
        assert (name_of(event), event.lasting) == (name, lasting) and why in event.why
        assert stub.asked == ["load_lora_adapter"]


@pytest.mark.parametrize(
    "missing", [Stub.NO_ROUTE, (404, {"detail": "Not Found"}), (405, {"detail": "Method Not Allowed"})]
)
async def test_without_loading_at_run_time_only_what_the_pod_knows_can_be_had(missing):
    event = await came_of(Stub(load=missing), LOAD)
    assert event.lasting and "VLLM_ALLOW_RUNTIME_LORA_UPDATING" in event.why
    event = await came_of(Stub(load=missing), REGISTER)
    assert event.lasting and "VLLM_ALLOW_RUNTIME_LORA_UPDATING" in event.why
    event = await came_of(Stub(unload=missing), UNLOAD)
    assert "VLLM_ALLOW_RUNTIME_LORA_UPDATING" in event.why
    assert name_of(await came_of(Stub(load=missing, touch=Stub.TOUCHED), LOAD)) == "LoadSucceeded"
    event = await came_of(Stub(load=missing, listed=["ad"]), REGISTER)
    assert (name_of(event), event.known_before) == ("Registered", True)


async def test_what_nobody_said_the_source_of_can_be_had_where_it_is_known():
    stub = Stub(load=Stub.LOADED, touch=Stub.TOUCHED)
    assert name_of(await came_of(stub, LOAD, sources=nowhere)) == "LoadSucceeded" and stub.asked == ["completions"]
    event = await came_of(Stub(load=Stub.LOADED), LOAD, sources=nowhere)
    assert event.lasting and event.why == "nobody said where, and the pod does not know the name"
    stub = Stub(load=Stub.LOADED, listed=["ad"])
    event = await came_of(stub, REGISTER, sources=nowhere)
    assert event.known_before and stub.asked == ["models"]
    assert "does not know the name" in (await came_of(Stub(), REGISTER, sources=nowhere)).why


async def test_a_registration():
    event = await came_of(Stub(load=Stub.LOADED), REGISTER)
    assert (name_of(event), event.pod, event.adapter, event.known_before) == ("Registered", "a", "ad", False)
    stub = Stub(load=Stub.TAKEN)
    event = await came_of(stub, REGISTER)
    assert (name_of(event), event.known_before, stub.asked) == ("Registered", True, ["load_lora_adapter"])


@pytest.mark.parametrize("body", [b"<html>welcome</html>", b"", b"\xff", b"{}"])
async def test_a_200_that_says_nothing_is_borne_out_by_the_list_of_models(body):
    assert name_of(await came_of(Stub(load=(200, body), listed=["ad"]), LOAD)) == "LoadSucceeded"
    event = await came_of(Stub(load=(200, body)), LOAD)
    assert (name_of(event), event.lasting) == ("LoadFailed", False) and "does not bear out" in event.why
    assert name_of(await came_of(Stub(unload=(200, body)), UNLOAD)) == "Unloaded"
    assert name_of(await came_of(Stub(unload=(200, body), listed=["ad"]), UNLOAD)) == "UnloadFailed"


@pytest.mark.parametrize(
    ("unload", "done"),
    [
        ((200, "Success: LoRA adapter 'ad' removed successfully."), True),
        (error("The lora adapter 'ad' cannot be found.", 404), True),
        (error("something else", 404), False),
        (error("boom"), False),
        ((200, {"data": 1}), True),
    ],
)
async def test_an_unload_that_is_wanted_for_itself(unload, done):
    for why in (Why.RETIRED, Why.OPERATOR):
        stub = Stub(unload=unload)
        event = await came_of(stub, msgspec.structs.replace(UNLOAD, why=why))
        assert name_of(event) == ("Unloaded" if done else "UnloadFailed")
        assert stub.bodies == [{"lora_name": "ad"}]


@pytest.mark.parametrize("why", ["pressure_hard", Why.REBALANCE, Why.HANDOVER, ""])
async def test_nothing_is_unloaded_for_memory_that_it_does_not_free(why):
    stub = Stub(unload=(200, "Success"))
    event = await came_of(stub, msgspec.structs.replace(UNLOAD, why=why))
    assert (name_of(event), event.why, stub.asked) == ("UnloadFailed", "an unload frees nothing on vllm", [])


async def test_a_touch_is_one_token_that_says_what_it_is():
    stub = Stub(touch=Stub.TOUCHED)
    event = await came_of(stub, TOUCH)
    assert (name_of(event), event.pod, event.adapter) == ("Touched", "a", "ad")
    assert stub.asked == ["completions"] and stub.headers[0]["x-lorapick-touch"] == "1"
    assert stub.bodies == [{"model": "ad", "prompt": "x", "max_tokens": 1}]


@pytest.mark.parametrize(
    ("touch", "why"),
    [
        (Stub.UNKNOWN, "does not serve the adapter"),
        (error("The following requested LoRA adapters are not loaded: {'ad'}", 400), "does not serve the adapter"),
        (Stub.NO_ROUTE, "it has no /v1/completions"),
        ((200, {"choices": [], "model": "base"}), "another model answered: 'base'"),
        ((200, b"<html>"), "no completion"),
        ((200, {"error": {"message": "x"}}), "no completion"),
        ((400, b"too long"), "status 400: too long"),
        ((500, b"boom"), "status 500: boom"),
        ((307, b""), "a redirect, which is not followed"),
    ],
)
async def test_what_else_comes_of_a_touch(touch, why):
    missing = []
    event = await came_of(Stub(touch=touch), TOUCH, on_missing=missing.append)
    assert name_of(event) == "TouchFailed" and why in event.why
    assert missing == (["a"] if "does not serve" in why else [])


async def test_sglang_is_told_the_adapter_beside_the_model():
    stub = Stub(touch=(200, {"id": "cmpl-1", "model": "ad", "choices": [{"text": "x"}]}))
    assert name_of(await came_of(stub, TOUCH, engine=Engine.SGLANG)) == "Touched"
    assert stub.bodies == [{"model": "ad", "prompt": "x", "max_tokens": 1, "lora_path": "ad"}]


@pytest.mark.parametrize("engine", [Engine.LORAX])
@pytest.mark.parametrize("command", [LOAD, REGISTER, UNLOAD, TOUCH])
async def test_engines_without_a_path_are_not_asked(engine, command):
    stub = Stub()
    event = await came_of(stub, command, engine=engine)
    assert name_of(event).endswith("Failed") and "has no path to load" in event.why and stub.asked == []
    assert getattr(event, "lasting", True)


# -- sources


async def refused(source, command=LOAD, **parts):
    async def at(adapter, pod):
        return source

    stub = Stub(load=Stub.LOADED)
    event = await came_of(stub, command, sources=at, **parts)
    assert name_of(event) in ("LoadFailed", "RegisterFailed") and event.lasting and stub.asked == []
    return event.why


async def test_nothing_is_sent_of_a_source_that_is_not_allowed():
    assert "under no prefix of placement.sources" in await refused("/etc/passwd")
    assert "`..`" in await refused("/w/../etc", command=REGISTER)
    assert "NUL" in await refused("/w/a\0b")
    assert "not what the configuration declares" in await refused("/w/ad", allowed=None)


async def test_a_name_with_a_comma_is_refused_before_anybody_looks_for_its_source():
    stub = Stub(load=Stub.LOADED)
    event = await came_of(stub, Load(cause=1, pod="a", adapters=("a,b",), why="pin"))
    assert "no comma" in event.why and event.lasting and stub.asked == []


async def test_the_declared_source_is_what_the_pod_is_told():
    declared = {"ad": Adapter(name="ad", source="org/ad", declared=True), "other": Adapter(name="other")}
    allowed = AllowedSources(declared=lambda name: declared[name].source)
    stub = Stub(load=Stub.LOADED)
    event = await came_of(stub, LOAD, sources=StaticSources(declared.get), allowed=allowed)
    assert name_of(event) == "LoadSucceeded" and stub.bodies == [{"lora_name": "ad", "lora_path": "org/ad"}]
    for name in ("other", "unheard"):
        event = await came_of(
            Stub(), msgspec.structs.replace(LOAD, adapters=(name,)), sources=StaticSources(declared.get)
        )
        assert f"nobody said where {name} is loaded from" in event.why


@pytest.mark.parametrize("lasting", [True, False])
async def test_who_finds_sources_says_whether_to_ask_again(lasting):
    async def away(adapter, pod):
        raise SourceError("the bucket is away", lasting=lasting)

    stub = Stub(load=Stub.LOADED)
    event = await came_of(stub, LOAD, sources=away)
    assert (event.why, event.lasting, stub.asked) == ("the bucket is away", lasting, [])


async def test_a_finder_of_sources_that_breaks_is_answered_too(caplog):
    async def broken(adapter, pod):
        raise RuntimeError("oh")

    event = await came_of(Stub(), LOAD, sources=broken)
    assert "a mistake of the picker's: RuntimeError('oh')" in event.why and "Traceback" in caplog.text


async def test_a_finder_of_sources_that_does_not_end_is_given_up():
    async def slow(adapter, pod):
        await asyncio.sleep(60)

    event = await came_of(Stub(), LOAD, sources=slow, within=0.05)
    assert (event.why, event.lasting) == ("its source was not found within 0.05 s", False)


async def test_a_load_of_several_goes_on_after_one_that_fails():
    told_of = []

    async def load(request):
        name = (await request.json())["lora_name"]
        told_of.append(name)
        return web.Response(status=500 if name == "b" else 200, text="Success" if name != "b" else "boom")

    stub, allowed = Stub(load=load), AllowedSources(prefixes=["/w"])
    async with (
        stub.serving() as address,
        control(address, engine=Engine.VLLM, sources=weights, allowed=allowed) as (made, told),
    ):
        made.perform(msgspec.structs.replace(LOAD, adapters=("a", "b", "c")))
        events = [await told.next() for _ in range(3)]
        assert [(name_of(event), event.adapter) for event in events] == [
            ("LoadSucceeded", "a"), ("LoadFailed", "b"), ("LoadSucceeded", "c"),
        ]  # fmt: skip
        assert told_of == ["a", "b", "c"]
        counts = made.counts()
        assert counts.ended == {("load", "done"): 2, ("load", "failed"): 1}
        assert (
            counts.begun == {"load": 3} and counts.seconds["load"] > 0 and (counts.waiting, counts.under_way) == (0, 0)
        )
