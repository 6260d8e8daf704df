"""The feed of the status page, under a virtual clock."""

import asyncio

import msgspec
import pytest
from starlette.testclient import TestClient

from lorapick.live.admin import admin_app
from lorapick.live.feed import MAX_ADAPTERS, MAX_DECISIONS, MAX_PODS, Feed, frame
from lorapick.live.publish import AdapterRow, DecisionRow, FleetSnapshot, PodRow
from lorapick.model.picks import Belief
from lorapick.model.tiers import Source, Tier
from lorapick.testing.published import ValuesPublished, small_fleet

pytestmark = pytest.mark.looptime


class Counting(ValuesPublished):
    """Counts how often it is read."""

    reads = 0

    def fleet(self) -> FleetSnapshot:
        self.reads += 1
        return super().fleet()


def counting() -> Counting:
    return Counting(**{name: getattr(small_fleet(), name) for name in ValuesPublished.__dataclass_fields__})


def large() -> ValuesPublished:
    published = small_fleet()
    pods = tuple(PodRow(name=f"p{i:04}", address="a", ready=True, max_queue=8, slots=4) for i in range(300))
    published.fleet_now = msgspec.structs.replace(published.fleet_now, pods=pods)
    published.beliefs = [
        Belief(pod=f"p{i:04}", adapter="a", tier=Tier.CPU, since=0.0, source=Source.INFERRED) for i in range(300)
    ]
    published.adapter_rows = [AdapterRow(name=f"a{i:03}", requests=i) for i in range(100)]
    published.decision_rows = [
        DecisionRow(request_id=str(i), t=0.0, model="m", outcome="dispatched") for i in range(99)
    ]
    return published


def test_frame_keeps_its_bounds() -> None:
    shown = frame(large())
    assert (len(shown.fleet.pods), shown.pods_total, len(shown.cells)) == (MAX_PODS, 300, MAX_PODS)
    assert (len(shown.adapters), shown.adapters_total, shown.adapters[0].name) == (MAX_ADAPTERS, 100, "a099")
    assert len(shown.decisions) == MAX_DECISIONS


def test_frame_leaves_out_what_is_only_on_disk() -> None:
    published = small_fleet()
    published.beliefs = [
        Belief(pod="pod-02", adapter=tier.word, tier=tier, since=0.0, source=Source.INFERRED) for tier in Tier
    ]
    published.adapter_rows = [AdapterRow(name="a", pods={tier.word: ("pod-02",) for tier in Tier})]
    shown = frame(published)
    memory = {"cpu", "loading", "gpu_idle", "gpu_serving"}
    assert {cell.tier for cell in shown.cells} == memory
    assert set(shown.adapters[0].pods) == memory


async def test_one_frame_a_second_however_many_watch() -> None:
    published = counting()
    feed = Feed(published)

    async def watch(start: float) -> int:
        await asyncio.sleep(start)
        return sum([1 async for event in feed.watch() if event.startswith(b"data")])

    async with asyncio.TaskGroup() as group:
        watchers = [group.create_task(watch(start)) for start in (0.0, 0.25, 0.5)]
        await asyncio.sleep(9.9)
        feed.close()
    assert [task.result() for task in watchers] == [10, 10, 10]
    assert published.reads == 10
    assert feed.watchers == 0


async def test_cancelled_watcher_gives_its_place_back() -> None:
    feed = Feed(small_fleet(), limit=1)

    async def watch() -> None:
        async for _ in feed.watch():
            pass

    task = asyncio.create_task(watch())
    await asyncio.sleep(3)
    assert feed.full()
    task.cancel()
    await asyncio.wait({task})
    assert not feed.full()


def test_watcher_too_many_is_told_when_to_come_back() -> None:
    feed = Feed(small_fleet(), limit=0)
    client = TestClient(admin_app(small_fleet(), feed=feed), base_url="http://localhost")
    response = client.get("/v1/stream")
    assert (response.status_code, response.json()["reason"]) == (503, "too_many_streams")
    assert response.headers["retry-after"] == "5"
