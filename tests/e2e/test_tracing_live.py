"""Traces through a real Envoy: the pod continues the caller's, and a collector gets the picker's part of it."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from envoy_kit import bench

from lorapick.live.extproc_server import ExtProcServer
from lorapick.live.processes import becomes_true
from lorapick.model.settings import ServerSettings, Settings
from lorapick.testing import extproc as gateway
from lorapick.testing.stack import Stack
from lorapick.wire.traceparent import read, write

pytestmark = pytest.mark.e2e
TRACE, CALLER = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
SAMPLED = write(TRACE, CALLER)


@pytest.mark.parametrize("body", ["buffered", "full_duplex_streamed"])
async def test_the_pod_is_told_the_pickers_span_or_what_the_client_sent(body: str) -> None:
    ours = write(TRACE, 5)
    picker = gateway.ScriptedPicker()
    async with bench() as this:
        server = ExtProcServer(picker, Settings(server=ServerSettings(body=body)), address=this.picker_address())
        server.traceparent = lambda request_id: ours if request_id == "traced" else None
        await server.start()
        await this.start_envoy(body=body)
        picker.endpoint = this.pods[0].address
        for request_id, expected in (("traced", ours), ("other", SAMPLED)):
            picker.answer = gateway.dispatch(this.pods[0].address, request_id=request_id)
            headers = {"traceparent": SAMPLED, "tracestate": "vendor=1"}
            _, answer, _ = await this.post(headers=headers)
            seen = {key.lower(): value for key, value in answer["headers"].items()}
            assert (seen["traceparent"], seen["tracestate"]) == (expected, "vendor=1")
        await this.envoy.stop()
        await server.stop()


class Collector:
    """An OTLP receiver."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, int, int, int]] = []
        """Name, trace, span and parent of each."""

    async def take(self, request: web.Request) -> web.Response:
        for resource in (await request.json())["resourceSpans"]:
            for span in resource["scopeSpans"][0]["spans"]:
                ids = (span["traceId"], span["spanId"], span.get("parentSpanId", "0"))
                self.spans.append((span["name"], *(int(each, 16) for each in ids)))
        return web.json_response({})


@pytest_asyncio.fixture
async def collector() -> AsyncIterator[tuple[Collector, str]]:
    receiver, app = Collector(), web.Application()
    app.router.add_post("/v1/traces", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield receiver, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_a_collector_gets_the_callers_trace(collector: tuple[Collector, str]) -> None:
    receiver, address = collector
    tracing = {"enabled": True, "endpoint": address, "sample": 0}
    async with Stack(pods=1, adapters=("legal",), configuration={"tracing": tracing}) as stack:
        async with aiohttp.ClientSession() as session:
            url, body = stack.endpoint + "/v1/completions", {"model": "legal", "prompt": "x", "max_tokens": 2}
            for headers in ({"traceparent": SAMPLED}, {"traceparent": "00-broken"}, {}):
                async with session.post(url, json=body, headers=headers) as answer:
                    assert answer.status == 200
    await becomes_true(lambda: asyncio.sleep(0, len(receiver.spans) >= 3), within=10)
    assert sorted(name for name, *_ in receiver.spans) == ["gateway.request", "lorapick.load_wait", "lorapick.pick"]
    (whole,) = [ids for name, *ids in receiver.spans if name == "gateway.request"]
    assert whole[0] == TRACE == read(SAMPLED).trace_id
    assert whole[2] == CALLER
    assert {parent for name, _, _, parent in receiver.spans if name != "gateway.request"} == {whole[1]}
