"""The driver in virtual time: tickets move exactly when the pure pod model says."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lorapick.live.podserver.clock import ModelClock
from lorapick.live.podserver.driver import PodDriver
from lorapick.live.podserver.refusals import RefusalError
from lorapick.live.podserver.ticket import Ticket
from lorapick.model.pods import PodLimits
from lorapick.pod.engine import PodEngine
from lorapick.pod.errors import UnknownAdapter
from lorapick.pod.values import AdapterSpec, FirstToken, PodConfig, PodRequest, RequestFinished

pytestmark = pytest.mark.looptime

ADAPTERS = tuple(AdapterSpec(name=f"ad{number}") for number in range(4))
CONFIG = PodConfig(limits=PodLimits(max_loras=2, max_cpu_loras=3))


class LoopClock(ModelClock):
    """Model time that follows the event loop's, which looptime makes virtual."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__(speed)
        self._loop = asyncio.get_running_loop()

    def now(self) -> float:
        return self._loop.time() * self.speed


@asynccontextmanager
async def running(config: PodConfig = CONFIG, *, speed: float = 1.0, draw=None) -> AsyncIterator[PodDriver]:
    driver = PodDriver(config, ADAPTERS, LoopClock(speed), draw=draw)
    task = asyncio.create_task(driver.run())
    try:
        yield driver
    finally:
        task.cancel()
        await asyncio.wait((task,))


def request(number: int, adapter: str | None = "ad0", *, output: int = 10) -> PodRequest:
    return PodRequest(id=f"r{number}", adapter=adapter, prompt_tokens=100, output_tokens=output)


def submit(driver: PodDriver, wanted: PodRequest, *, streams: bool = False) -> Ticket:
    return driver.submit(wanted, finish_reason="length", streams=streams)


async def test_ends_when_the_model_says_so() -> None:
    engine = PodEngine(CONFIG, ADAPTERS, now=0.0)
    engine.submit(request(1), 0.0)
    events = engine.advance(100.0)
    first = next(event.t for event in events if isinstance(event, FirstToken))
    finished = next(event.t for event in events if isinstance(event, RequestFinished))
    async with running() as driver:
        ticket = submit(driver, request(1))
        assert await ticket.all_tokens() == 10
        assert ticket.first_token_at == pytest.approx(first)
        assert asyncio.get_running_loop().time() == pytest.approx(finished, abs=0.002)


async def test_speed_divides_real_time_and_what_the_page_says() -> None:
    spans = []
    for speed in (1.0, 10.0):
        async with running(speed=speed) as driver:
            began = asyncio.get_running_loop().time()
            await submit(driver, request(1, output=100)).all_tokens()
            spans.append(asyncio.get_running_loop().time() - began)
            assert driver.records.histograms["e2e_request_latency_seconds"].total == pytest.approx(spans[-1], abs=0.002)
    assert spans[0] == pytest.approx(10 * spans[1], rel=0.02)


async def test_a_stream_gets_its_tokens_one_by_one() -> None:
    async with running() as driver:
        ticket = submit(driver, request(1, output=5), streams=True)
        seen = [0]
        while seen[-1] < 5:
            seen.append(await ticket.tokens_after(seen[-1]))
        assert seen == [0, 1, 2, 3, 4, 5]


async def test_a_late_look_hands_out_several_tokens_at_once() -> None:
    async with running(speed=10_000.0) as driver:
        ticket = submit(driver, request(1, output=1000), streams=True)
        seen = [0]
        while seen[-1] < 1000:
            seen.append(await ticket.tokens_after(seen[-1]))
        assert len(seen) < 500


async def test_tiers_tell_a_hit_from_each_kind_of_load() -> None:
    async with running() as driver:
        tiers = []
        # Two slots and three host places: ad0 leaves the GPU with ad2, and the host level with ad3.
        for number, adapter in enumerate(("ad0", "ad0", "ad1", "ad2", "ad0", "ad3", "ad1")):
            ticket = submit(driver, request(number, adapter))
            await ticket.all_tokens()
            tiers.append(ticket.tier)
        base = submit(driver, request(99, None))
        await base.all_tokens()
        assert tiers == ["disk", "hit", "disk", "disk", "cpu", "disk", "disk"]
        assert base.tier is None


async def test_release_takes_a_request_out_of_the_pod_and_counts_nowhere() -> None:
    async with running() as driver:
        ticket = submit(driver, request(1, output=1000), streams=True)
        await ticket.tokens_after(0)
        assert driver.stats().running == 1
        driver.release(ticket)
        driver.release(ticket)
        await asyncio.sleep(1.0)
        stats = driver.stats()
        assert (stats.running, stats.waiting, driver.in_flight) == (0, 0, 0)
        assert sum(driver.records.finished.values()) == 0


async def test_release_while_waiting_lets_followers_go() -> None:
    config = PodConfig(limits=PodLimits(max_loras=1, max_cpu_loras=1, max_num_seqs=1))
    async with running(config) as driver:
        first = submit(driver, request(1, output=1000))
        second = submit(driver, request(2, output=1000))
        third = submit(driver, request(3, output=5))
        driver.release(second)
        driver.release(first)
        assert await third.all_tokens() == 5


async def test_unknown_adapter_is_refused_and_not_kept() -> None:
    async with running() as driver:
        with pytest.raises(UnknownAdapter):
            submit(driver, request(1, "nope"))
        assert driver.in_flight == 0


async def test_a_load_ends_with_its_swap_and_registers_the_name() -> None:
    async with running() as driver:
        assert "new" not in driver.registered
        assert await driver.load(AdapterSpec(name="new")) is None
        assert "new" in driver.registered
        assert driver.stats().on_gpu == ("new",)
        assert driver.stats().swaps == 0, "nobody waited for it"


async def test_a_load_of_a_resident_adapter_under_a_forgotten_name_ends_at_once() -> None:
    async with running() as driver:
        await driver.load(ADAPTERS[0])
        driver.unload("ad0")
        assert "ad0" not in driver.registered
        assert await driver.load(ADAPTERS[0]) is None
        assert "ad0" in driver.registered
        assert driver.stats().loads == 1


async def test_a_failed_load_says_why_and_fails_those_who_wait() -> None:
    config = PodConfig(load_failure_share=1.0)
    async with running(config, draw=lambda: 0.0) as driver:
        assert await driver.load(AdapterSpec(name="new"))
        ticket = submit(driver, request(1))
        with pytest.raises(RefusalError) as refused:
            await ticket.all_tokens()
        assert refused.value.status == 500
        assert driver.records.finished["error"] == 1


async def test_a_restart_fails_what_is_in_flight_and_begins_anew() -> None:
    async with running() as driver:
        await submit(driver, request(1)).all_tokens()
        began = driver.started_wall
        await asyncio.sleep(1.0)
        ticket = submit(driver, request(2, output=1000))
        load = asyncio.create_task(driver.load(AdapterSpec(name="new")))
        await asyncio.sleep(0.001)
        driver.restart()
        with pytest.raises(RefusalError):
            await ticket.all_tokens()
        assert await load
        stats = driver.stats()
        assert (stats.running, stats.finished, stats.on_gpu) == (0, 0, ())
        assert driver.records.lora_requests.series == {}
        assert driver.started_wall > began
        assert await submit(driver, request(3)).all_tokens() == 10


async def test_a_fault_in_the_model_fails_requests_instead_of_hanging(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as driver:
        ticket = submit(driver, request(1, output=1000))
        await asyncio.sleep(0.01)
        monkeypatch.setattr(PodEngine, "next_change", lambda _engine: 1 / 0)
        with caplog.at_level(logging.CRITICAL), pytest.raises(RefusalError, match="EngineCore"):
            await ticket.all_tokens()
        assert driver.failure is not None
        with pytest.raises(RefusalError):
            submit(driver, request(2))
