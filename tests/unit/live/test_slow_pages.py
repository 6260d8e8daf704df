"""Pages that are asked for seldom, from a real server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import pytest
from aiohttp import web

from lorapick.live.page import PageClient, PageError
from lorapick.live.slow_pages import SlowPages
from lorapick.model.pods import Engine, LoadedAdapter, PodReport
from lorapick.wire.engines import DIALECTS

MODELS = {"data": [{"id": "base"}, {"id": "legal", "parent": "base"}]}
SETTINGS = {"max_loras_per_batch": 4, "max_loaded_loras": 8, "lora_paths": [{"lora_name": "legal", "pinned": True}]}


@asynccontextmanager
async def engine(pages: dict[str, object]) -> AsyncIterator[tuple[SlowPages, list[str]]]:
    """An SGLang that has these pages, and the paths that it was asked for."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        if request.path not in pages:
            return web.Response(status=404)
        return web.json_response(pages[request.path])

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    client = PageClient(f"{host}:{port}", timeout=5.0)
    try:
        yield SlowPages(client, DIALECTS[Engine.SGLANG], every=100.0, meter=nullcontext()), asked
    finally:
        client.close()
        await runner.cleanup()


async def test_each_is_asked_in_its_turn_and_settings_once_for_each_process() -> None:
    async with engine({"/v1/models": MODELS, "/get_server_info": SETTINGS}) as (slow, asked):
        report = await slow.add_to(PodReport())
        assert report.loaded == (LoadedAdapter(name="legal", on_gpu=None, pinned=True),)
        assert (report.max_loras, report.max_cpu_loras, report.doubts) == (3, 8, ())
        assert asked == ["/v1/models", "/server_info", "/get_server_info"], "the name of newer versions first"
        assert await slow.add_to(PodReport()) == PodReport(), "not its turn"
        slow.due = 0.0
        await slow.add_to(PodReport())
        assert asked[3:] == ["/v1/models"]
        slow.new_process()
        await slow.add_to(PodReport())
        assert asked[4:] == ["/v1/models", "/server_info", "/get_server_info"]


async def test_what_cannot_be_had_is_a_doubt_and_the_metrics_are_taken() -> None:
    async with engine({"/v1/models": [1]}) as (slow, asked):
        report = await slow.add_to(PodReport(waiting=3, doubts=("x",)))
        assert (report.waiting, report.loaded, report.registered) == (3, None, None)
        first, models, settings = report.doubts
        assert first == "x" and models.startswith("/v1/models: not a list of models")
        assert settings == "/server_info and /get_server_info: status 404"
        slow.due = 0.0
        assert (await slow.add_to(PodReport())).doubts == (models, settings), "asked again"
        assert len(asked) == 6


async def test_a_pod_that_is_not_there_raises() -> None:
    client = PageClient("127.0.0.1:9", timeout=1.0)
    slow = SlowPages(client, DIALECTS[Engine.VLLM], every=1.0, meter=nullcontext())
    with pytest.raises(PageError):
        await slow.add_to(PodReport())


async def test_an_engine_without_lists_is_never_asked() -> None:
    async with engine({}) as (slow, asked):
        lorax = SlowPages(slow._client, DIALECTS[Engine.LORAX], every=1.0, meter=nullcontext())
        assert await lorax.add_to(PodReport()) == PodReport()
        assert asked == []


async def test_trtllm_lists_its_model_and_says_nothing_of_adapters() -> None:
    async with engine({"/v1/models": {"data": [{"id": "base"}]}}) as (slow, asked):
        trtllm = SlowPages(slow._client, DIALECTS[Engine.TRTLLM], every=1.0, meter=nullcontext())
        report = await trtllm.add_to(PodReport())
        # None: what is not in the list is served all the same.
        assert (report.base_models, report.registered, report.loaded) == (("base",), None, None)
        assert asked == ["/v1/models"]


async def test_triton_lists_adapters_under_names_with_their_model() -> None:
    async with engine({"/v1/models": {"data": [{"id": "base"}, {"id": "base_lora_ad"}]}}) as (slow, _):
        triton = SlowPages(slow._client, DIALECTS[Engine.TRITON], every=1.0, meter=nullcontext())
        report = await triton.add_to(PodReport())
        assert (report.base_models, report.registered, report.loaded) == (("base",), ("ad",), None)
