"""Following KV events: of messages, and of an emulated pod's real socket."""

import asyncio
import logging
from collections.abc import Callable

import aiohttp
import msgspec
import pytest

from lorapick.live.driver import Driver
from lorapick.live.kv_events import KvEvents, PodFeed
from lorapick.live.podserver import PodServerOptions, numbered_adapters, serving
from lorapick.live.transport_counts import TransportCounts
from lorapick.model.events import Event, KvCleared, KvStored, PodAppeared, PodChanged, PodGone
from lorapick.model.pods import Pod
from lorapick.model.settings import Settings
from lorapick.wire.kv_events import Stored, encode


def ran(sequence: int, *adapters: str | None) -> tuple[bytes, bytes, bytes]:
    """A message of one step."""
    events = [
        Stored(
            block_hashes=[1], parent_block_hash=None, token_ids=[], block_size=16, lora_id=None, medium="GPU",
            lora_name=name, extra_keys=[None],
        )
        for name in adapters
    ]  # fmt: skip
    return encode(sequence, events, topic="kv", wall=1.0)


def cleared(sequence: int) -> tuple[bytes, bytes, bytes]:
    topic, number, _ = ran(sequence)
    return topic, number, msgspec.msgpack.encode([1.0, [{"type": "AllBlocksCleared"}], 0])


class Heard:
    """A feed and what it submitted, in short."""

    def __init__(self) -> None:
        self.counts = TransportCounts()
        self.told: list[str] = []
        self.feed = PodFeed("p", submit=self._submit, counts=self.counts)

    def _submit(self, make: Callable[[float, int], Event]) -> None:
        event = make(0.0, 0)
        assert isinstance(event, KvStored | KvCleared)
        self.told.append(event.adapter or "base" if isinstance(event, KvStored) else "cleared")

    def take(self, *messages: tuple[bytes, ...]) -> list[str]:
        for each in messages:
            self.feed.take(each)
        self.feed.pass_on()
        told, self.told = self.told, []
        return told


def test_what_came_since_the_last_look_is_told_once_the_last_one_last() -> None:
    heard = Heard()
    assert heard.take(ran(0, "a", None, "b"), ran(1, "a")) == ["b", "a"]
    assert heard.take() == []


def test_missed_messages_are_counted() -> None:
    heard = Heard()
    heard.take(ran(5, "a"), ran(6, "a"), ran(10, "a"))
    assert (heard.counts.kv_events_missed, heard.counts.faults()["kv_events_missed"]) == (3, 3)


def test_numbers_that_begin_anew_are_another_process_with_an_empty_cache() -> None:
    heard = Heard()
    heard.take(ran(5, "a"))
    assert heard.take(ran(0, "b")) == ["cleared", "b"]
    assert heard.take(cleared(1)) == ["cleared"]
    assert heard.counts.kv_events_missed == 0


def test_nonsense_is_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()
    with caplog.at_level(logging.WARNING):
        assert heard.take((b"x",), (b"",), ran(0, "a")) == ["a"]
    assert heard.counts.kv_events_malformed == 2
    assert [record.message[:9] for record in caplog.records] == ["pod p: 1 "]


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


async def test_an_emulated_pods_events_say_what_is_on_its_gpu() -> None:
    options = PodServerOptions(port=0, kv_events_port=0, adapters=numbered_adapters(3), speed=10.0)
    async with serving(options) as served, aiohttp.ClientSession(served.url) as client:
        async with client.get("/emulator/state") as response:
            endpoint = (await response.json())["kv_events"]
        driver = Driver(Settings(), seed=0)
        events = KvEvents(submit=driver.submit, counts=TransportCounts())
        driver.observers.append(events)
        pod = Pod(name="p", address=served.address, kv_events=endpoint)
        driver.submit(lambda t, i: PodAppeared(t=t, id=i, pod=pod))
        running = asyncio.create_task(events.run())
        number = 0

        async def ask(adapter: str) -> None:
            nonlocal number
            number += 1  # another prompt each time: what is cached is not stored again
            body = {"model": adapter, "prompt": f"{number:04d}" + "x" * 200, "max_tokens": 1}
            async with client.post("/v1/completions", json=body) as response:
                assert response.status == 200

        def tiers() -> dict[str, str]:
            state = driver.fleet.state
            return {belief.adapter: belief.tier.word for belief in state.residency.beliefs() if belief.evidence}

        async with asyncio.timeout(20.0):  # a subscriber hears nothing before it is connected
            while "adapter-000" not in tiers():
                await ask("adapter-000")
                await asyncio.sleep(0.05)
        await ask("adapter-001")
        await until(lambda: "adapter-001" in tiers())
        kinds = {belief.evidence for belief in driver.fleet.state.residency.beliefs()}
        assert kinds == {"kv_event"}
        driver.submit(lambda t, i: PodChanged(t=t, id=i, pod=msgspec.structs.replace(pod, kv_events=None)))
        assert events._tasks == {}
        driver.submit(lambda t, i: PodChanged(t=t, id=i, pod=pod))
        assert [*events._tasks] == ["p"]
        driver.submit(lambda t, i: PodGone(t=t, id=i, pod="p"))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_an_endpoint_that_is_none_is_an_error_in_the_log_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = KvEvents(submit=lambda _: None, counts=TransportCounts())
    events.observe(PodAppeared(t=0.0, id=0, pod=Pod(name="p", address="127.0.0.1:1", kv_events="tcp://nowhere")), [])
    running = asyncio.create_task(events.run())
    await until(lambda: bool(caplog.records))
    assert "no KV events from tcp://nowhere" in caplog.text
    assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
