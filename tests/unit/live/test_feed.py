"""The feed of the status page, under a virtual clock."""

import asyncio
import time

import msgspec
import pytest
from starlette.testclient import TestClient

from lorapick.live.admin import admin_app
from lorapick.live.admin_views import Frame
from lorapick.live.feed import Feed
from lorapick.live.publish import FleetSnapshot
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


def decoded(event: bytes) -> Frame:
    assert event.startswith(b"data: ") and event.endswith(b"\n\n")
    assert event.count(b"\n") == 2
    return msgspec.json.decode(event[6:-2], type=Frame)


async def frames_of(feed: Feed, *, start: float, seconds: float, slow: float = 0.0) -> list[Frame]:
    """What a watcher gets that comes at `start`, and takes `slow` seconds for each frame."""
    await asyncio.sleep(start)
    found = []
    try:
        async with asyncio.timeout(seconds):
            async for event in feed.watch():
                if event.startswith(b"data"):
                    found.append(decoded(event))
                    await asyncio.sleep(slow)
    except TimeoutError:
        pass
    return found


async def test_one_look_a_second_however_many_watch() -> None:
    published = counting()
    feed = Feed(published)
    async with asyncio.TaskGroup() as group:
        watchers = [group.create_task(frames_of(feed, start=start, seconds=99)) for start in (0.0, 0.25, 0.5)]
        await asyncio.sleep(9.9)
        feed.close()
    assert [len(task.result()) for task in watchers] == [10, 10, 10]
    assert published.reads == 10
    assert feed.watchers == 0


async def test_nobody_is_looked_for_when_nobody_watches() -> None:
    published = counting()
    feed = Feed(published)
    await frames_of(feed, start=0.0, seconds=2.5)
    read = published.reads
    await asyncio.sleep(100)
    assert published.reads == read


async def test_first_frame_is_whole_and_the_next_ones_follow_it() -> None:
    feed = Feed(small_fleet())
    early, late = await asyncio.gather(frames_of(feed, start=0.0, seconds=6.0), frames_of(feed, start=2.5, seconds=3.0))
    assert [frame.whole for frame in early] == [True] + [False] * 5
    assert [frame.seq for frame in early] == [1, 2, 3, 4, 5, 6]
    assert [frame.whole for frame in late] == [True, False, False, False]
    assert [frame.seq for frame in late] == [3, 4, 5, 6]
    assert (late[0].pods, late[0].cells, late[0].names) == (early[0].pods, early[0].cells, early[0].names)


async def test_who_is_too_slow_for_a_frame_gets_a_whole_one() -> None:
    feed = Feed(small_fleet())
    slow, other = await asyncio.gather(
        frames_of(feed, start=0.0, seconds=9.0, slow=2.5), frames_of(feed, start=0.0, seconds=9.0)
    )
    assert all(frame.whole for frame in slow)
    assert [frame.seq for frame in slow] == sorted({frame.seq for frame in slow})
    assert [frame.whole for frame in other] == [True] + [False] * (len(other) - 1)


async def test_who_comes_back_after_a_pause_without_watchers_gets_a_whole_frame() -> None:
    feed = Feed(small_fleet())
    await frames_of(feed, start=0.0, seconds=3.0)
    (first, *_) = await frames_of(feed, start=50.0, seconds=3.0)
    assert first.whole and len(first.pods) == 3


class Costly(Counting):
    """Takes a tenth of a second of a core to look at."""

    def fleet(self) -> FleetSnapshot:
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass
        return super().fleet()


async def test_frames_that_cost_much_come_more_seldom() -> None:
    published = Costly(**{name: getattr(small_fleet(), name) for name in ValuesPublished.__dataclass_fields__})
    found = await frames_of(Feed(published), start=0.0, seconds=12.5)
    assert 4 <= len(found) <= 8
    assert [frame.whole for frame in found] == [True] + [False] * (len(found) - 1)
    assert published.reads == len(found)


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
