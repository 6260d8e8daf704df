"""Placement's parts together: commands carry sources, plans come from a process, the end is an end."""

import asyncio
import time

import pytest

from lorapick.live.driver import Driver
from lorapick.live.history import HistoryStore
from lorapick.live.placing import Placing
from lorapick.live.podserver import PodServerOptions, serving
from lorapick.live.processes import becomes_true
from lorapick.model import events
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.pods import Pod, PodReport
from lorapick.model.requests import Request
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.pod.values import PodConfig
from lorapick.testing.peft_files import write_adapter
from lorapick.testing.playbook import plain_pod

PINNED = Adapter(name="legal", source="adapters/legal", declared=True, pin=PinSpec(replicas=1))


def appear(driver, pod, **report):
    driver.submit(lambda t, i: events.PodAppeared(t=t, id=i, pod=pod))
    driver.submit(lambda t, i: events.PodReported(t=t, id=i, pod=pod.name, report=PodReport(**report)))


def make(tmp_path, *adapters, **placement):
    settings = Settings(adapters=adapters, placement=PlacementSettings(**placement))
    driver = Driver(settings, seed=1)
    placing = Placing(settings, driver, beside=tmp_path)
    driver.tell_time()
    return driver, placing


async def stop(task):
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_pod_is_told_the_path_that_the_catalogue_found(tmp_path):
    write_adapter(tmp_path / "adapters" / "legal")
    driver, placing = make(tmp_path, PINNED)
    task = asyncio.create_task(placing.run())
    async with serving(PodServerOptions(name="a", port=0, config=PodConfig())) as served:
        appear(driver, Pod(name="a", address=served.address), registered=())

        async def done():
            return placing.counts().ended == {("load", "done"): 1}

        assert await becomes_true(done, within=10.0), placing.counts()
        assert driver.fleet.state.adapters["legal"].rank == 8, "as its files say"
    await stop(task)


async def test_files_that_cannot_be_used_are_refused_and_nobody_is_asked(tmp_path):
    (tmp_path / "adapters").mkdir()
    driver, placing = make(tmp_path, PINNED)
    task = asyncio.create_task(placing.run())
    appear(driver, plain_pod("a"), registered=())

    async def refused():
        return "no such folder" in driver.fleet.state.placement.problems.get("legal", "")

    assert await becomes_true(refused, within=10.0)
    assert ("load", "done") not in placing.counts().ended
    await stop(task)


@pytest.mark.parametrize("solver", ["flow", "rendezvous"])
async def test_plans_come_from_a_process_that_ends_with_the_picker(tmp_path, solver):
    driver, placing = make(tmp_path, Adapter(name="legal"), replicas="auto", solver=solver, solve_every=0.1, tick=0.05)
    task = asyncio.create_task(placing.run())
    for name in ("a", "b"):
        appear(driver, plain_pod(name))
    assert placing.solver_pid is None, "nobody is asked for"
    for number in range(30):
        driver.ask(Request(id=f"r{number}", model="legal"))
    placement = driver.fleet.state.placement

    async def planned():
        return placement.plan.get("legal") is not None

    assert await becomes_true(planned, within=15.0)
    pid = placing.solver_pid
    assert pid is not None and alive(pid)
    await stop(task)
    assert not alive(pid)
    # Streams may go on for a while, and so does the core.
    driver.on_problem(None)
    assert placing.solver_pid is None


async def test_the_time_of_day_is_told_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr("lorapick.live.placing.TELL_TIME_EVERY", 0.01)
    driver, placing = make(tmp_path)
    task = asyncio.create_task(placing.run())
    monkeypatch.setattr(time, "time", lambda: 1234.0)

    async def noticed():
        return abs(driver.fleet.state.placement.wall(driver.now()) - 1234.0) < 1

    assert await becomes_true(noticed, within=10.0)
    await stop(task)


async def test_demand_is_kept_at_the_end_beside_the_configuration(tmp_path):
    driver, placing = make(tmp_path, Adapter(name="legal"), history="state/demand.sqlite")
    appear(driver, plain_pod("a"))
    task = asyncio.create_task(placing.run())
    await asyncio.sleep(0)
    driver.ask(Request(id="r1", model="legal"))
    await stop(task)
    assert [each.adapter for each in HistoryStore(tmp_path / "state" / "demand.sqlite").load()] == ["legal"]


async def test_a_part_that_fails_leaves_the_others_alone(tmp_path, monkeypatch, caplog):
    _, placing = make(tmp_path)

    async def look(_):
        raise KeyError("a mistake")

    monkeypatch.setattr("lorapick.live.catalogue.Catalogue.look", look)
    task = asyncio.create_task(placing.run())
    await asyncio.sleep(0.05)
    assert not task.done()
    assert "requests are served without it" in caplog.text
    await stop(task)
