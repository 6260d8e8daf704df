"""Commands to emulated pods over HTTP, in each dialect, with their faults; the pods say themselves what came of it."""

import asyncio
import random

import aiohttp
import pytest
from control_kit import control

from lorapick.live.control import AllowedSources
from lorapick.live.podserver import PodServerOptions, numbered_adapters, serving
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.placement import Why
from lorapick.model.pods import Engine, Pod, PodLimits
from lorapick.pod.values import PodConfig

ALLOWED = AllowedSources(prefixes=["/adapters"])
A, B, C, D = (f"adapter-{number:03d}" for number in range(4))


async def on_disk(adapter, pod):
    del pod
    return f"/adapters/{adapter}"


def options(engine=Engine.VLLM, *, registered=0, **parts):
    config = {"limits": PodLimits(max_loras=2, max_cpu_loras=4), "unload_frees": engine is Engine.SGLANG}
    config |= {name: parts.pop(name) for name in ("load_failure_share",) if name in parts}
    return PodServerOptions(
        port=0,
        engine=engine,
        adapters=numbered_adapters(registered),
        catalogue=numbered_adapters(8)[registered:],
        config=PodConfig(**config),
        speed=50.0,
        **parts,
    )


def commanding(served, engine=Engine.VLLM, **parts):
    return control(served.address, engine=engine, **{"sources": on_disk, "allowed": ALLOWED, **parts})


def load(*adapters):
    return Load(cause=1, pod="a", adapters=adapters, why=Why.PIN)


def register(adapter):
    return Register(cause=1, pod="a", adapter=adapter)


def touch(adapter):
    return Touch(cause=1, pod="a", adapter=adapter)


def unload(adapter, why=Why.OPERATOR):
    return Unload(cause=1, pod="a", adapter=adapter, why=why)


async def ask(served, path):
    async with aiohttp.ClientSession() as session, session.get(served.url + path) as response:
        return await response.json()


async def set_faults(served, **faults):
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{served.url}/emulator/faults", json=faults) as response,
    ):
        assert response.status == 200


async def memory(served):
    """Who is in a slot and who in host memory, by the pod's own word."""
    stats = (await ask(served, "/emulator/state"))["stats"]
    return set(stats["on_gpu"]), set(stats["on_cpu"])


async def came_of(made, told, command):
    made.perform(command)
    event = await told.next()
    return type(event).__name__, getattr(event, "why", "")


async def test_a_vllm_pod_brings_new_and_known_names_into_its_slots():
    async with serving(options(registered=1)) as served, commanding(served) as (made, told):
        for adapter in (A, B, C, A):
            assert await came_of(made, told, load(adapter)) == ("LoadSucceeded", "")
            on_gpu, _ = await memory(served)
            assert adapter in on_gpu
        on_gpu, on_cpu = await memory(served)
        assert on_gpu == {C, A} and B in on_cpu
        assert {B, C} <= set((await ask(served, "/emulator/state"))["registered"])


async def test_a_touch_keeps_an_adapter_in_its_slot():
    async with serving(options()) as served, commanding(served) as (made, told):
        for adapter in (A, B):
            await came_of(made, told, load(adapter))
        assert await came_of(made, told, touch(A)) == ("Touched", "")
        await came_of(made, told, load(C))
        assert (await memory(served))[0] == {A, C}
        name, why = await came_of(made, told, touch(D))
        assert name == "TouchFailed" and "does not serve the adapter" in why


async def test_a_vllm_pod_learns_and_forgets_names_and_keeps_the_weights():
    async with serving(options()) as served, commanding(served) as (made, told):
        made.perform(register(A))
        assert not (await told.next()).known_before
        made.perform(register(A))
        assert (await told.next()).known_before
        for _ in range(2):
            assert await came_of(made, told, unload(A)) == ("Unloaded", "")
            assert A in (await memory(served))[0]
            assert A not in (await ask(served, "/emulator/state"))["registered"]
        assert await came_of(made, told, unload(A, "pressure_hard")) == (
            "UnloadFailed", "an unload frees nothing on vllm",
        )  # fmt: skip


async def test_a_vllm_pod_without_loading_at_run_time_still_touches_what_it_serves():
    async with serving(options(registered=1, runtime_lora=False)) as served, commanding(served) as (made, told):
        assert await came_of(made, told, load(A)) == ("LoadSucceeded", "")
        assert A in (await memory(served))[0]
        name, why = await came_of(made, told, load(B))
        assert name == "LoadFailed" and "VLLM_ALLOW_RUNTIME_LORA_UPDATING" in why


async def test_a_sglang_pod_loads_to_host_memory_and_a_touch_does_the_rest():
    async with serving(options(Engine.SGLANG)) as served, commanding(served, Engine.SGLANG) as (made, told):
        for command in (load(A), load(A), register(A)):
            assert (await came_of(made, told, command))[0] in ("LoadSucceeded", "Registered")
        on_gpu, on_cpu = await memory(served)
        assert A not in on_gpu and A in on_cpu
        assert await came_of(made, told, touch(A)) == ("Touched", "")
        assert A in (await memory(served))[0]
        assert await came_of(made, told, unload(A)) == ("Unloaded", "")
        assert not any(A in level for level in await memory(served))
        assert await came_of(made, told, unload(A)) == ("Unloaded", "")


@pytest.mark.parametrize("engine", [Engine.TRTLLM, Engine.TRITON])
async def test_pods_that_load_by_requests_are_asked_for_a_token(engine):
    registered = 8 if engine is Engine.TRITON else 0
    async with serving(options(engine, registered=registered)) as served, commanding(served, engine) as (made, told):
        assert await came_of(made, told, load(A)) == ("LoadSucceeded", "")
        assert await came_of(made, told, load(B)) == ("LoadSucceeded", "")
        assert await came_of(made, told, touch(A)) == ("Touched", "")
        assert await came_of(made, told, load(C)) == ("LoadSucceeded", "")
        assert await memory(served) == ({A, C}, {A, B, C})  # two slots; the touch kept A
        name, why = await came_of(made, told, unload(A))
        assert name == "UnloadFailed" and "has no path to unload" in why
        assert A in (await memory(served))[0]
        name, _ = await came_of(made, told, register(D))
        assert name == ("Registered" if engine is Engine.TRTLLM else "RegisterFailed")


async def test_a_triton_pod_does_not_know_other_names_than_those_of_its_start():
    async with serving(options(Engine.TRITON, registered=1)) as served:
        async with commanding(served, Engine.TRITON) as (made, told):
            for command in (load(B), touch(B)):
                name, why = await came_of(made, told, command)
                assert name.endswith("Failed") and "Unknown LoRA" in why


async def test_trtllm_pods_that_fail_or_hang():
    engine = Engine.TRTLLM
    async with serving(options(engine)) as served, commanding(served, engine, within=0.3) as (made, told):
        for faults, words in (({"requests": "error"}, "status 500"), ({"requests": "hang"}, "no answer within 0.3 s")):
            await set_faults(served, **faults)
            for command in (load(A), touch(A)):
                name, why = await came_of(made, told, command)
                assert name.endswith("Failed") and words in why, why
        await set_faults(served, requests="ok")
        assert (await came_of(made, told, load(A)))[0] == "LoadSucceeded"


@pytest.mark.parametrize("engine", [Engine.VLLM, Engine.SGLANG, Engine.TRTLLM])
async def test_a_path_where_nothing_is(engine):
    async def elsewhere(adapter, pod):
        return f"/adapters/nothing/{adapter}"

    async with serving(options(engine)) as served, commanding(served, engine, sources=elsewhere) as (made, told):
        # Who is told with each request hears of it then.
        for command in (load(A), *([register(A)] if engine is not Engine.TRTLLM else [])):
            made.perform(command)
            event = await told.next()
            assert type(event).__name__.endswith("Failed") and event.lasting, event


@pytest.mark.parametrize("engine", [Engine.VLLM, Engine.SGLANG])
async def test_a_pod_that_fails_or_hangs_and_then_does_not(engine):
    async with serving(options(engine)) as served, commanding(served, engine, within=0.3) as (made, told):
        for faults, words in (({"requests": "error"}, "status 500"), ({"requests": "hang"}, "no answer within 0.3 s")):
            await set_faults(served, **faults)
            for command in (load(A), register(A), touch(A), unload(A)):
                name, why = await came_of(made, told, command)
                assert name.endswith("Failed") and words in why, why
        await set_faults(served, requests="ok")
        # What hung was given up by us, and the pod may still have done it: neither way hurts.
        for command in (load(A), touch(A), unload(A)):
            assert not (await came_of(made, told, command))[0].endswith("Failed")


async def test_a_restart_while_a_load_is_under_way():
    async with serving(options(registered=1)) as served, commanding(served) as (made, told):
        await set_faults(served, requests_delay=0.1)
        made.perform(load(B, C))
        async with aiohttp.ClientSession() as session:
            await session.post(f"{served.url}/emulator/restart")
        assert [(await told.next()).adapter for _ in range(2)] == [B, C]


async def test_a_pod_that_goes_away_and_one_that_nobody_is():
    async with serving(options()) as served:
        pass
    async with commanding(served) as (made, told):
        name, why = await came_of(made, told, load(A))
        assert name == "LoadFailed" and "Connect" in why


@pytest.mark.parametrize("engine", [Engine.VLLM, Engine.SGLANG])
async def test_with_loads_that_fail_and_a_pod_that_forgets_what_is_wanted_is_reached_by_asking_again(engine):
    """Level-based: as long as something is missing it is asked for again; three of ten loads fail."""
    parts = {"load_failure_share": 0.3} if engine is Engine.VLLM else {}
    wanted, chance, rounds = {A, B}, random.Random(7), 0
    async with serving(options(engine, **parts)) as served, commanding(served, engine) as (made, told):
        missing = set(wanted)
        while missing or rounds < 6:
            rounds += 1
            assert rounds < 60
            asked = [load(*sorted(missing))] if missing else []
            asked += [touch(adapter) for adapter in sorted(wanted - missing)]
            for command in asked:
                made.perform(command)
                made.perform(command)  # twice: nothing breaks
            events = [await told.next() for _ in range(2 * len(wanted))]
            assert {event.adapter for event in events} == wanted and not told.events
            if rounds < 6 and chance.random() < 0.5:
                async with aiohttp.ClientSession() as session:
                    await session.post(f"{served.url}/emulator/restart")
            missing = wanted - (await memory(served))[0 if engine is Engine.VLLM else 1]
    assert not missing


async def test_commands_of_different_pods_do_not_wait_for_each_other():
    async with serving(options()) as slow, serving(options()) as quick:
        await set_faults(slow, requests="hang")
        pods = {name: Pod(name=name, address=served.address) for name, served in (("s", slow), ("q", quick))}
        async with control(None, find=pods.get, sources=on_disk, allowed=ALLOWED) as (made, told):
            made.perform(Load(cause=1, pod="s", adapters=(A,), why="pin"))
            made.perform(Load(cause=1, pod="q", adapters=(A,), why="pin"))
            event = await told.next()
            assert (type(event).__name__, event.pod) == ("LoadSucceeded", "q")
            await set_faults(slow, requests="ok")
            assert (await told.next()).pod == "s"
            await asyncio.sleep(0)
            assert made.counts().under_way == 0
