"""The whole page, read as scrapers read it."""

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from lorapick.live.podserver import PodServerOptions, numbered_adapters, serving
from lorapick.live.podserver.metrics import BusyShare
from lorapick.model.events import PodReported
from lorapick.model.pods import GpuSource, LoadedAdapter, PodLimits
from lorapick.pod.values import PodConfig, SwapMode, TimeSpent
from lorapick.testing.playbook import Playbook, plain_pod
from lorapick.wire.engines import vllm

OPTIONS = PodServerOptions(
    port=0,
    adapters=numbered_adapters(4),
    config=PodConfig(limits=PodLimits(max_loras=2, max_cpu_loras=3), mode=SwapMode.DRAIN),
    speed=100.0,
    report_loaded=True,
)


async def page(client: aiohttp.ClientSession, query: str = "", accept: str = "*/*") -> str:
    headers = {"accept": accept, "accept-encoding": "identity"}
    async with client.get(f"/metrics{query}", headers=headers) as response:
        assert response.status == 200
        return await response.text()


async def test_our_own_scraper_reads_it() -> None:
    async with serving(OPTIONS) as served, aiohttp.ClientSession(served.url) as client:
        fresh = vllm.parse((await page(client)).encode())
        assert (fresh.in_flight_adapters, fresh.loaded) == (None, ())
        for number in range(4):
            body = {"model": f"adapter-00{number}", "prompt": "x", "max_tokens": 2}
            async with client.post("/v1/completions", json=body) as response:
                assert response.status == 200
        report = vllm.parse((await page(client)).encode())
    assert (report.running, report.waiting, report.deferred, report.preemptions) == (0, 0, 0, 0)
    assert (report.max_loras, report.block_size, report.gpu_blocks) == (2, 16, 18_875)
    assert report.in_flight_adapters == ()
    assert report.loaded is not None
    assert set(report.loaded) == {
        LoadedAdapter(name="adapter-001", on_gpu=False, rank=16),
        LoadedAdapter(name="adapter-002", on_gpu=True, rank=16),
        LoadedAdapter(name="adapter-003", on_gpu=True, rank=16),
    }
    assert report.gpu_source is GpuSource.POD and report.gpu_utilization is not None
    assert report.memory_pressure == pytest.approx(0.625, abs=0.01)
    assert report.doubts == ()


async def test_scrapers_may_choose_families_and_formats() -> None:
    async with serving(OPTIONS) as served, aiohttp.ClientSession(served.url) as client:
        chosen = await page(client, "?name[]=vllm:num_requests_running&name[]=lorapick_pod_swaps_total")
        families = [family.name for family in text_string_to_metric_families(chosen)]
        assert sorted(families) == ["lorapick_pod_swaps", "vllm:num_requests_running"]
        text = await page(client, accept="application/openmetrics-text; version=1.0.0")
        assert text.endswith("# EOF\n")


async def test_our_own_families_stand_last() -> None:
    async with serving(OPTIONS) as served, aiohttp.ClientSession(served.url) as client:
        async with client.get("/v1/models"):
            pass
        names = [family.name for family in text_string_to_metric_families(await page(client))]
    first = names.index("lorapick_pod_swaps")
    assert all(name.startswith("lorapick_pod_") for name in names[first:])
    assert not any(name.startswith("lorapick_pod_") for name in names[:first])


def test_utilisation_is_that_of_the_last_second_or_more() -> None:
    busy = BusyShare()
    assert busy.since_last_look(TimeSpent(), 1.0) is None
    assert busy.since_last_look(TimeSpent(idle=1.0, decode=1.0), 1.0) == pytest.approx(0.5)
    assert busy.since_last_look(TimeSpent(idle=1.0, decode=2.0), 1.0) == pytest.approx(1.0)
    assert busy.since_last_look(TimeSpent(idle=1.4, decode=2.0), 1.0) == pytest.approx(1 / 1.4)
    assert busy.since_last_look(TimeSpent(idle=9.5, decode=2.0), 1.0) == pytest.approx(0.0)


def test_utilisation_begins_anew_with_a_restart() -> None:
    busy = BusyShare()
    busy.since_last_look(TimeSpent(decode=50.0), 1.0)
    assert busy.since_last_look(TimeSpent(idle=2.0, transfer=2.0), 1.0) == pytest.approx(0.5)


async def test_after_a_restart_of_the_picker_the_first_page_says_what_is_loaded() -> None:
    limits = PodLimits(max_loras=2, max_cpu_loras=4)
    options = PodServerOptions(port=0, adapters=numbered_adapters(7), config=PodConfig(limits=limits), speed=20.0)
    async with serving(options) as served, aiohttp.ClientSession(served.url) as client:
        for number in (0, 1, 2, 3, 4, 5, 2):
            body = {"model": f"adapter-00{number}", "prompt": "x", "max_tokens": 2}
            async with client.post("/v1/completions", json=body) as response:
                assert response.status == 200
        async with client.get("/metrics") as response:
            report = vllm.parse(await response.read())
        async with client.get("/emulator/state") as response:
            stats = (await response.json())["stats"]
    assert report.loaded is None
    book = Playbook(pods=[plain_pod("p", max_loras=2, max_cpu_loras=4)], adapters=[a.name for a in options.adapters])
    book.apply(PodReported, pod="p", report=report)
    home = book.fleet.state.residency.home(0)
    assert ([*home.shadow.gpu], [*home.shadow.cpu]) == (stats["on_gpu"], stats["on_cpu"])
    assert stats["on_gpu"] == ["adapter-005", "adapter-002"]
