"""Pods whose memory is short: idle adapters leave where that frees it, and come back; at 95 % the client hears so."""

import asyncio
import contextlib

import aiohttp
import pytest
from aiohttp import web

from lorapick.live.podserver import PodServerOptions, numbered_adapters, serving
from lorapick.live.processes import becomes_true
from lorapick.model.pods import Engine, Pod, PodLimits
from lorapick.pod.values import PodConfig, SwapMode
from lorapick.testing.stack import Stack

pytestmark = pytest.mark.e2e
LIMITS = PodLimits(max_loras=1, max_cpu_loras=4)
NAMES = tuple(adapter.name for adapter in numbered_adapters(2))
LONG = {"model": "base", "prompt": [7] * 920, "max_tokens": 90}
"""Takes 920 to 1,010 of 1,024 tokens of KV: 96 to 99 % of memory with the slot in use, 83 to 87 % without: `soft`."""


def emulated(name):
    config = PodConfig(
        limits=LIMITS, mode=SwapMode.DRAIN, kv_blocks=64, block_size=16, max_model_len=1024, unload_frees=True
    )
    return PodServerOptions(
        name=name, port=0, engine=Engine.SGLANG, adapters=numbered_adapters(2), config=config, speed=0.5
    )


async def ask(session, stack, body):
    async with session.post(stack.endpoint + "/v1/completions", json=body) as response:
        return response.status, await response.json(), response.headers


async def held(session, address):
    async with session.get(f"http://{address}/emulator/state") as response:
        state = await response.json()
    return state["stats"]["on_gpu"], state["registered"]


async def test_idle_adapters_leave_a_pod_whose_memory_is_short():
    async with contextlib.AsyncExitStack() as parts:
        served = [await parts.enter_async_context(serving(emulated(f"pod-{number}"))) for number in range(2)]
        pods = tuple(
            Pod(name=f"pod-{number}", address=each.address, engine=Engine.SGLANG, limits=LIMITS)
            for number, each in enumerate(served)
        )
        stack = await parts.enter_async_context(Stack(pods=0, external=pods, adapters=NAMES))
        session = await parts.enter_async_context(aiohttp.ClientSession())
        for name in NAMES * 2:
            assert (await ask(session, stack, {"model": name, "prompt": "x", "max_tokens": 2}))[0] == 200
        (before, _), first = await held(session, served[0].address), served[0]
        assert len(before) == 1
        # Straight to the pod: whoever fills its memory is not the picker's client.
        long = asyncio.create_task(post(session, first))

        async def unloaded():
            there, registered = await held(session, first.address)
            return not there and before[0] not in registered

        assert await becomes_true(unloaded, within=20.0), await fleet(session, stack)
        # Whatever one pod no longer takes, another serves.
        for name in NAMES:
            status, body, _ = await ask(session, stack, {"model": name, "prompt": "x", "max_tokens": 2})
            assert status == 200, body
        assert await long == 200

        async def back():
            there, registered = await held(session, first.address)
            return not there and before[0] in registered and await believed(session, stack, before[0]) == "cpu"

        # Memory is there again, so the name comes back, with the weights in host memory.
        assert await becomes_true(back, within=20.0), await fleet(session, stack)
        assert await post(session, first, {"model": before[0], "prompt": "x", "max_tokens": 2}) == 200


async def post(session, served, body=LONG):
    async with session.post(served.url + "/v1/completions", json=body) as response:
        return response.status


async def believed(session, stack, name):
    """Where the picker believes an adapter to be on the first pod."""
    async with session.get(f"{stack.admin}/v1/residency?pod=pod-0&adapter={name}") as response:
        (row,) = (await response.json())["cells"]
    return row["tier"]


async def fleet(session, stack):
    async with session.get(stack.admin + "/v1/fleet") as response:
        return await response.text()


class Claims:
    """A pod that only says how short its memory is."""

    def __init__(self):
        self.pressure = 0.5

    async def page(self, _):
        text = "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n"
        return web.Response(text=f"{text}lorapick_pod_memory_pressure {self.pressure}\n")

    async def models(self, _):
        return web.json_response({"object": "list", "data": [{"id": "base", "object": "model"}]})

    async def answer(self, request):
        await request.read()
        return web.json_response({"choices": []})

    async def health(self, _):
        return web.Response()


async def test_at_95_percent_clients_are_told_to_come_back():
    claims = Claims()
    app = web.Application()
    app.router.add_get("/metrics", claims.page)
    app.router.add_get("/v1/models", claims.models)
    app.router.add_get("/health", claims.health)
    app.router.add_post("/v1/completions", claims.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    body = {"model": "base", "prompt": "x", "max_tokens": 2}
    try:
        pods = (Pod(name="a", address=f"127.0.0.1:{runner.addresses[0][1]}"),)
        async with Stack(pods=0, external=pods, adapters=()) as stack, aiohttp.ClientSession() as session:
            claims.pressure = 0.96

            async def refused():
                return (await ask(session, stack, body))[0] == 503

            assert await becomes_true(refused, within=10.0)
            status, answer, headers = await ask(session, stack, body)
            assert (status, headers["x-lorapick-reason"], headers["retry-after"]) == (503, "pressure_critical", "1")
            assert headers["x-llm-d-request-dropped-reason"] == "rejected-saturated"
            assert (answer["error"]["type"], answer["error"]["code"]) == ("ServiceUnavailableError", 503)
            # The tier is left two points below where it begins.
            claims.pressure = 0.92

            async def served():
                return (await ask(session, stack, body))[0] == 200

            assert await becomes_true(served, within=10.0)
    finally:
        await runner.cleanup()
