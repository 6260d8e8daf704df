"""Envoy's counters as they are known now, and not known while nobody answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from lorapick.live.envoy.watch import EnvoyWatch
from lorapick.live.processes import becomes_true

NAMES = ("http.gateway.downstream_rq_total", "http.gateway.ext_proc.picker.failure_mode_allowed")


@asynccontextmanager
async def admin(where: Path, answers: list[dict[str, object]]) -> AsyncIterator[str]:
    """Envoy's admin API at a Unix socket; `answers` are given one after the other, the last again and again."""

    async def stats(request: web.Request) -> web.Response:
        assert NAMES[0].replace(".", r"\.") in request.query["filter"]
        return web.json_response(answers.pop(0) if len(answers) > 1 else answers[0])

    app = web.Application()
    app.router.add_get("/stats", stats)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, str(where / "admin.sock")).start()
    try:
        yield f"unix:{where}/admin.sock"
    finally:
        await runner.cleanup()


def page(requests: int, without: int) -> dict[str, object]:
    return {"stats": [{"name": NAMES[0], "value": requests}, {"name": NAMES[1], "value": without}]}


async def test_the_last_answer_stands_until_there_is_none(tmp_path: Path) -> None:
    async with admin(tmp_path, [page(5, 0), page(9, 2)]) as address:
        watch = EnvoyWatch(address)
        assert watch.counters is None
        await watch.look()
        assert watch.counters is not None and watch.counters.requests == 5
        await watch.look()
        assert (watch.counters.requests, watch.counters.without_picker) == (9, 2)
    await watch.look()
    assert watch.counters is None


async def test_another_server_at_that_address_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with admin(tmp_path, [{"stats": "none"}]) as address:
        watch = EnvoyWatch(address)
        await watch.look()
    assert watch.counters is None
    assert f"server.envoy_admin {address} is no admin API of Envoy" in caplog.text


async def test_it_reads_again_and_again(tmp_path: Path) -> None:
    async with admin(tmp_path, [page(n, 0) for n in range(1, 4)]) as address:
        watch = EnvoyWatch(address, every=0.001)
        task = asyncio.create_task(watch.run())

        async def third() -> bool:
            return watch.counters is not None and watch.counters.requests == 3

        assert await becomes_true(third, within=10.0)
        task.cancel()
