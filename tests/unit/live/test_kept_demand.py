"""Demand between runs: what was kept comes back, what is counted is kept, also by a picker that is killed."""

import asyncio
import time

import pytest

from lorapick.live.demand import AT_ONCE, Demand
from lorapick.live.driver import Driver
from lorapick.live.history import HistoryStore
from lorapick.live.processes import becomes_true
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.placement import DemandBin
from lorapick.model.requests import Request
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import plain_pod

BIN = 300.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "demand.sqlite"


class Seen:
    """An observer that keeps the events of recalled demand."""

    def __init__(self):
        self.parts = []

    def observe(self, event, effects):
        if isinstance(event, events.DemandRecalled):
            self.parts.append(event.bins)


def drive(observer=None):
    """A driver that knows the time of day, with one pod."""
    settings = Settings(adapters=(Adapter(name="legal"),), placement=PlacementSettings(history="demand.sqlite"))
    driver = Driver(settings, seed=1, observers=[] if observer is None else [observer])
    driver.tell_time()
    driver.submit(lambda t, i: events.PodAppeared(t=t, id=i, pod=plain_pod("a")))
    return driver


async def running(demand):
    task = asyncio.create_task(demand.run())
    await asyncio.wait_for(demand.recalled.wait(), timeout=10)
    return task


async def stop(task):
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def history(driver):
    return driver.fleet.state.placement.history


async def test_what_was_kept_comes_back_the_latest_first(path):
    bins = [DemandBin(start=BIN * number, adapter="legal", count=1 + number % 7) for number in range(2 * AT_ONCE + 5)]
    before = HistoryStore(path)
    before.keep(bins)
    before.close()
    seen = Seen()
    driver = drive(seen)
    task = await running(Demand(HistoryStore(path), driver))
    await stop(task)
    assert [len(part) for part in seen.parts] == [AT_ONCE, AT_ONCE, 5]
    assert seen.parts[0][-1] == bins[-1] and seen.parts[-1][0] == bins[0]
    assert history(driver).happened(AT_ONCE) == {"legal": 1 + AT_ONCE % 7}
    assert history(driver).first == 0


async def test_the_open_bin_is_kept_while_it_is_open(path):
    driver = drive()
    demand = Demand(HistoryStore(path), driver, every=0.01)
    task = await running(demand)
    driver.ask(Request(id="r1", model="legal"))

    async def kept():
        return bool(HistoryStore(path).load())

    assert await becomes_true(kept, within=10.0)
    assert [each.count for each in HistoryStore(path).load()] == [1], "and nobody has ended anything"
    await stop(task)


async def test_a_bin_goes_on_where_the_run_before_left_it(path):
    for count in (1, 2, 3):
        driver = drive()
        demand = Demand(HistoryStore(path), driver)
        task = await running(demand)
        driver.ask(Request(id="r", model="legal"))
        await stop(task)
        await demand.end()
        found = HistoryStore(path).load()
        assert sum(each.count for each in found) == count


async def test_bins_that_are_over_are_kept_as_they_come(path):
    driver = drive()
    demand = Demand(HistoryStore(path), driver)
    driver.on_demand = demand.keep
    driver.ask(Request(id="r1", model="legal"))
    t, wall = driver.now(), time.time() + 2 * BIN
    driver.submit(lambda _, i: events.Ticked(t=t, id=i, wall=wall))
    await demand.end()
    assert [each.count for each in HistoryStore(path).load()] == [1]


async def test_a_file_that_cannot_be_read_costs_nothing_else(tmp_path):
    (tmp_path / "taken").mkdir()
    driver = drive()
    demand = Demand(HistoryStore(tmp_path / "taken"), driver)
    task = await running(demand)
    driver.ask(Request(id="r1", model="legal"))
    await stop(task)
    await demand.end()


async def test_a_disk_that_hangs_holds_up_nobody():
    class Hanging:
        """A store that never answers."""

        def load(self):
            time.sleep(30)

        def keep(self, bins):
            pass

        def close(self, timeout):
            pass

    demand = Demand(Hanging(), drive())
    task = asyncio.create_task(demand.run())
    await asyncio.sleep(0.05)
    began = time.monotonic()
    await stop(task)
    await demand.end()
    assert time.monotonic() - began < 10, "it takes 30"
    assert not demand.recalled.is_set()


async def test_a_mistake_of_the_store_is_no_end(caplog):
    class Broken:
        """A store that raises what nobody expects."""

        def load(self):
            raise KeyError("no")

        def keep(self, bins):
            pass

    task = await running(Demand(Broken(), drive()))
    assert not task.done()
    await stop(task)
    assert "beginning without it" in caplog.text
