"""Pairs of emulated pods, and prefillers that do as a test says."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace

import aiohttp
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from lorapick.live.podserver import PodServerOptions, numbered_adapters, serving
from lorapick.live.podserver.options import HandoverOptions
from lorapick.model.pods import Role

PROMPT = "tell me of the sea and of all that lives in it " * 20
HEADER = "x-prefiller-host-port"
HELD = {"do_remote_prefill": True, "remote_engine_id": "e", "remote_request_id": "r", "remote_block_ids": [[1]]}


COUNTED = {
    "lorapick_pod_prefill_requests_total": "result",
    "lorapick_pod_kv_transfers_total": "result",
    "lorapick_pod_local_prefills_total": "reason",
    "lorapick_pod_kv_releases_total": "result",
}
_numbers = itertools.count()


class Pod:
    """A client of one pod, which knows what was counted before a test."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self.session = session
        self.address = address
        self.prompt = PROMPT
        self._counts: dict[tuple[str, str], float] = {}
        self._prefill = 0.0

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
            whole.setdefault("prompt", self.prompt)
        headers = {} if prefiller is None else {HEADER: prefiller}
        return await self.send("POST", path, json=whole, headers=headers)

    async def stats(self) -> dict:
        return (await self.send("GET", "/emulator/state")).json["stats"]

    async def waiting(self) -> int:
        """Requests in flight."""
        return (await self.send("GET", "/load")).json["server_load"]

    async def mark(self, prompt: str) -> None:
        """A test begins, with a prompt of its own: nothing of it is cached."""
        self.prompt = prompt
        self._counts = await self._count()
        self._prefill = (await self.stats())["time"]["prefill"]

    async def prefilled(self) -> float:
        """Seconds of prefill since the test began."""
        return (await self.stats())["time"]["prefill"] - self._prefill

    async def counted(self, family: str) -> dict[str, float]:
        """What was counted since the test began, by label; what did not come up is left out."""
        now = await self._count()
        return {
            label: value - self._counts.get((name, label), 0)
            for (name, label), value in now.items()
            if name == f"lorapick_pod_{family}_total" and value > self._counts.get((name, label), 0)
        }

    async def value(self, name: str, **labels: str) -> float:
        """Sum of a family's samples with these labels."""
        samples = await self.samples(name)
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

    async def samples(self, *names: str) -> list[Sample]:
        query = "&".join(f"name[]={name}" for name in names)
        page = (await self.send("GET", f"/metrics?{query}")).text
        return [s for family in text_string_to_metric_families(page) for s in family.samples if s.name in names]

    async def _count(self) -> dict[tuple[str, str], float]:
        return {(each.name, each.labels[COUNTED[each.name]]): each.value for each in await self.samples(*COUNTED)}


def fresh_prompt() -> str:
    """A prompt that no other test has."""
    return f"{next(_numbers)} {PROMPT}"


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
