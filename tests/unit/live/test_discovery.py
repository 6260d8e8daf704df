import asyncio
import contextlib
import itertools
import logging
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lorapick.live.discovery import FileDiscovery, PodSet
from lorapick.model.events import Event, PodAppeared, PodChanged, PodGone
from lorapick.model.pods import Pod
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError

A, B = '- {name: a, address: "10.0.0.1:8000"}\n', '- {name: b, address: "10.0.0.2:8000"}\n'


class Door:
    """A driver's door that keeps what comes through."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._ids = itertools.count(1)

    def __call__(self, make: Callable[[float, int], Event]) -> None:
        self.events.append(make(0.0, next(self._ids)))

    def took(self) -> list[tuple[str, str]]:
        """Kind and pod of what came since the last call."""
        taken, self.events = self.events, []
        return [(type(event).__name__, getattr(event.pod, "name", event.pod)) for event in taken]  # type: ignore[attr-defined]


def start(path: Path) -> tuple[FileDiscovery, Door]:
    door = Door()
    discovery = FileDiscovery(path, Settings(base_model="m"), submit=door)
    discovery.load()
    return discovery, door


async def settle(discovery: FileDiscovery) -> None:
    """A change counts at the second look."""
    await discovery.look()
    await discovery.look()


def test_events_are_made_with_the_drivers_time_and_id() -> None:
    door = Door()
    pods = PodSet(door)
    pod, other = Pod(name="a", address="1.1.1.1:1"), Pod(name="a", address="1.1.1.1:2")
    pods.replace([pod])
    pods.replace([other])
    pods.replace([])
    assert door.events == [
        PodAppeared(t=0.0, id=1, pod=pod),
        PodChanged(t=0.0, id=2, pod=other),
        PodGone(t=0.0, id=3, pod="a"),
    ]
    assert pods.pods == ()


def test_pods_that_left_go_before_those_that_take_their_address() -> None:
    door = Door()
    pods = PodSet(door)
    pods.replace([Pod(name="old", address="1.1.1.1:1"), Pod(name="stays", address="1.1.1.1:2")])
    door.took()
    pods.replace([Pod(name="new", address="1.1.1.1:1"), Pod(name="stays", address="1.1.1.1:2")])
    assert door.took() == [("PodGone", "old"), ("PodAppeared", "new")]


def test_a_pod_that_drains_is_told_once_and_may_stay_after_all() -> None:
    door = Door()
    pods = PodSet(door)
    stays, leaves = Pod(name="a", address="1.1.1.1:1"), Pod(name="a", address="1.1.1.1:1", draining=True)
    pods.replace([stays])
    pods.replace([leaves])
    pods.replace([leaves])
    assert door.took() == [("PodAppeared", "a"), ("PodChanged", "a"), ("PodDraining", "a")]
    pods.replace([msgspec.structs.replace(leaves, zone="west")])
    assert door.took() == [("PodChanged", "a")]
    pods.replace([stays])
    assert door.took() == [("PodAppeared", "a")]
    pods.replace([leaves, Pod(name="b", address="1.1.1.1:2", draining=True)])
    assert door.took() == [("PodChanged", "a"), ("PodDraining", "a"), ("PodAppeared", "b"), ("PodDraining", "b")]


def test_the_first_file_must_be_good(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"pods\.yaml: cannot be read: No such file or directory"):
        start(tmp_path / "pods.yaml")
    (tmp_path / "pods.yaml").write_text("- {name: a}\n")
    with pytest.raises(ConfigError, match='the key "address" is missing'):
        start(tmp_path / "pods.yaml")


async def test_changes_of_the_file_become_events(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(A)
    discovery, door = start(path)
    assert door.took() == [("PodAppeared", "a")]
    assert discovery.pods[0].base_model == "m"
    path.write_text(A + B)
    await settle(discovery)
    assert door.took() == [("PodAppeared", "b")]
    path.write_text(A.replace("8000", "8001"))
    await settle(discovery)
    assert door.took() == [("PodGone", "b"), ("PodChanged", "a")]
    await settle(discovery)
    assert door.took() == []


async def test_a_file_that_is_being_written_waits_until_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(A + B)
    discovery, door = start(path)
    door.took()
    path.write_text(A)  # the first half of a new file
    await discovery.look()
    path.write_text(A + B + B.replace("b", "c").replace("0.2", "0.3"))
    await discovery.look()
    assert door.took() == []
    await discovery.look()
    assert door.took() == [("PodAppeared", "c")]


async def test_the_same_pods_in_other_words_are_no_news(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(A + B)
    discovery, door = start(path)
    door.took()
    path.write_text("# reordered\n" + B + A)
    await settle(discovery)
    assert door.took() == []
    assert [pod.name for pod in discovery.pods] == ["b", "a"]


async def test_a_broken_file_keeps_the_last_good_pods_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(A)
    discovery, door = start(path)
    door.took()
    path.write_text("- {name: a\n")
    for _ in range(4):
        await discovery.look()
    assert door.took() == []
    assert [pod.name for pod in discovery.pods] == ["a"]
    assert discovery.problem is not None and "not YAML" in discovery.problem
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert str(path) in caplog.text
    path.write_text(B)
    with caplog.at_level(logging.INFO):
        await settle(discovery)
    assert door.took() == [("PodGone", "a"), ("PodAppeared", "b")]
    assert discovery.problem is None
    assert "is good again" in caplog.text


async def test_a_file_that_vanishes_and_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, aside = tmp_path / "pods.yaml", tmp_path / "aside"
    path.write_text(A)
    discovery, door = start(path)
    door.took()
    path.rename(aside)
    for _ in range(3):
        await discovery.look()
    assert discovery.problem is not None and "No such file" in discovery.problem
    assert len(caplog.records) == 1
    aside.rename(path)
    await settle(discovery)
    assert discovery.problem is None
    assert door.took() == []


async def test_a_new_file_of_the_same_size_and_time_is_noticed(tmp_path: Path) -> None:
    path, other = tmp_path / "pods.yaml", tmp_path / "other"
    path.write_text(A)
    discovery, door = start(path)
    door.took()
    other.write_text(B)
    stat = path.stat()
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(path)
    await settle(discovery)
    assert door.took() == [("PodGone", "a"), ("PodAppeared", "b")]


async def test_it_follows_the_file_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lorapick.live.discovery.PERIOD", 0.01)
    path = tmp_path / "pods.yaml"
    path.write_text(A)
    discovery, door = start(path)
    door.took()
    changed = asyncio.Event()
    monkeypatch.setattr(discovery._set, "_submit", lambda make: (door(make), changed.set()))
    task = asyncio.create_task(discovery.run())
    path.write_text(B)
    async with asyncio.timeout(5):
        await changed.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert door.took() == [("PodGone", "a"), ("PodAppeared", "b")]
