"""Pairs of emulated pods, and prefillers that do as a test says."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace

import aiohttp
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from lorapick.live.podserver import PodServerOptions, numbered_adapters, serving
from lorapick.live.podserver.options import HandoverOptions
from lorapick.model.pods import Role

PROMPT = "tell me of the sea and of all that lives in it " * 20
HEADER = "x-prefiller-host-port"
HELD = {"do_remote_prefill": True, "remote_engine_id": "e", "remote_request_id": "r", "remote_block_ids": [[1]]}


class Pod:
    """A client of one pod."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self.session = session
        self.address = address

    async def send(self, method: str, path: str, **kwargs: object) -> SimpleNamespace:
        async with self.session.request(method, path, **kwargs) as response:
            text = await response.text(errors="replace")
        is_json = response.headers.get("content-type", "").startswith("application/json")
        document = json.loads(text) if is_json else None
        return SimpleNamespace(status=response.status, headers=response.headers, text=text, json=document)

    async def ask(self, prefiller: str | None = None, *, path: str = "/v1/completions", **body: object):
        """A completion, prefilled at `prefiller`."""
        whole = {"model": "adapter-003", "max_tokens": 5} | body
        if path == "/v1/completions":
            whole.setdefault("prompt", PROMPT)
        headers = {} if prefiller is None else {HEADER: prefiller}
        return await self.send("POST", path, json=whole, headers=headers)

    async def stats(self) -> dict:
        return (await self.send("GET", "/emulator/state")).json["stats"]

    async def count(self, name: str, **labels: str) -> float:
        """Sum of a family's samples with these labels."""
        page = (await self.send("GET", "/metrics")).text
        samples = [s for family in text_string_to_metric_families(page) for s in family.samples if s.name == name]
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

    async def local_prefills(self) -> dict[str, float]:
        """Prompts computed here though a prefiller was named, by reason; reasons that did not come up left out."""
        return await self.by_label("lorapick_pod_local_prefills_total", "reason")

    async def by_label(self, name: str, label: str) -> dict[str, float]:
        page = (await self.send("GET", "/metrics")).text
        samples = [s for family in text_string_to_metric_families(page) for s in family.samples if s.name == name]
        return {sample.labels[label]: sample.value for sample in samples if sample.value}


@asynccontextmanager
async def pod(role: Role, handover: HandoverOptions | None = None, **options: object) -> AsyncIterator[Pod]:
    """An emulated pod of a role, 200 times faster than real ones."""
    chosen: dict[str, object] = {"port": 0, "adapters": numbered_adapters(8), "speed": 200.0, "drain_timeout": 1.0}
    async with serving(
        PodServerOptions(**(chosen | options), role=role, handover=handover or HandoverOptions())
    ) as served:
        async with aiohttp.ClientSession(served.url, timeout=aiohttp.ClientTimeout(total=20)) as session:
            yield Pod(session, served.address)


@asynccontextmanager
async def pair(handover: HandoverOptions | None = None) -> AsyncIterator[tuple[Pod, Pod]]:
    """A pod that prefills and one that decodes."""
    async with pod(Role.PREFILL) as prefill, pod(Role.DECODE, handover) as decode:
        yield prefill, decode


@asynccontextmanager
async def prefiller(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A server that answers everything with `answer`; gives its address."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"{host}:{port}"
    finally:
        await runner.cleanup()


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Wait for a condition to hold."""
    for _ in range(1000):
        if await condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"never came true: {condition}")
