"""Placement through the driver: problems, demand and the time of day, to and from whoever takes them."""

import asyncio
import logging
import time

import pytest

from lorapick.live.driver import Driver
from lorapick.live.metrics import Metrics
from lorapick.live.published import PublishedViews
from lorapick.model import events
from lorapick.model.adapters import Adapter, PinSpec
from lorapick.model.effects import LOAD_REFUSED, Load, Note
from lorapick.model.placement import DemandBin
from lorapick.model.pods import PodReport
from lorapick.model.requests import Request
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.clock import ManualClock
from lorapick.testing.playbook import plain_pod

LEGAL = Adapter(name="legal", source="/adapters/legal")
BIN = 300.0


def drive(placement, *, clock=None, adapters=(LEGAL,), observers=()):
    driver = Driver(
        Settings(adapters=adapters, placement=placement), seed=1, clock=clock or ManualClock(), observers=observers
    )
    for name in ("a", "b"):
        driver.submit(lambda t, i, name=name: events.PodAppeared(t=t, id=i, pod=plain_pod(name)))
        driver.submit(lambda t, i, name=name: events.PodReported(t=t, id=i, pod=name, report=PodReport()))
    return driver


def call(driver, number):
    driver.ask(Request(id=f"r{number}", model="legal"))


async def test_problems_go_to_whoever_solves_them_and_plans_come_back():
    clock, asked = ManualClock(), []
    driver = drive(PlacementSettings(replicas="auto", solve_every=1.0), clock=clock)
    driver.on_problem = asked.append
    for number in range(5):
        call(driver, number)
    clock.now += 5.0
    driver.tell_time()
    (problem,) = asked
    assert [each.adapter for each in problem.adapters] == ["legal"]
    driver.submit(lambda t, i: events.PlacementComputed(t=t, id=i, plan={"legal": ("b",)}, version=problem.version))
    assert PublishedViews(driver).fleet().placement.plan_version == problem.version


async def test_without_a_solver_that_is_said_once(caplog):
    clock = ManualClock()
    driver = drive(PlacementSettings(replicas="auto", solve_every=1.0), clock=clock)
    for number in range(3):
        call(driver, number)
        clock.now += 5.0
        driver.tell_time()
    assert [record.levelno for record in caplog.records if "solves" in record.message] == [logging.ERROR]


@pytest.mark.parametrize("kept", [True, False])
async def test_bins_that_are_over_are_kept_if_anybody_keeps_them(monkeypatch, kept):
    wall, clock, bins = 1_000 * BIN, ManualClock(), []
    driver = drive(PlacementSettings(history="demand.sqlite"), clock=clock)
    driver.on_demand = bins.extend if kept else None
    monkeypatch.setattr(time, "time", lambda: wall + clock.now)
    driver.tell_time()
    call(driver, 1)
    call(driver, 2)
    clock.now += BIN
    driver.tell_time()
    assert bins == ([DemandBin(start=wall, adapter="legal", count=2)] if kept else [])


async def test_a_clock_that_was_set_is_noticed_when_the_time_is_told(monkeypatch):
    driver = drive(PlacementSettings())
    for wall in (1000.0, 5000.0, 2000.0):
        monkeypatch.setattr(time, "time", lambda wall=wall: wall)
        driver.tell_time()
        assert driver.fleet.state.placement.wall(driver.now()) == wall


async def test_what_the_guard_refuses_is_counted_by_its_reason():
    metrics, notes = Metrics(), []

    class Notes:
        def observe(self, event, effects):
            notes.extend(each for each in effects if isinstance(each, Note) and each.kind == LOAD_REFUSED)

    unknown = Adapter(name="unknown")
    driver = drive(PlacementSettings(), adapters=(LEGAL, unknown), observers=[metrics, Notes()])
    driver.submit(lambda t, i: events.PodReported(t=t, id=i, pod="a", report=PodReport(registered=("legal",))))
    driver.submit(lambda t, i: events.PinSet(t=t, id=i, adapter="unknown", pin=PinSpec(pods=("a",))))
    assert [each.facts["reason"] for each in notes] == ["unregistered"]
    page, _ = await metrics.page()
    assert b'lorapick_placement_refusals_total{reason="unregistered"} 1.0' in page


async def test_pins_and_commands_are_shown():
    clock = ManualClock()
    driver = drive(PlacementSettings(), clock=clock)
    told = []

    class Controls:
        perform = staticmethod(told.append)

    driver.control = Controls()
    driver.submit(lambda t, i: events.PinSet(t=t, id=i, adapter="legal", pin=PinSpec(pods=("a",))))
    views = PublishedViews(driver)
    assert [type(each) for each in told] == [Load]
    now = views.fleet().placement
    assert (now.given, now.pins_wanted, now.pins_missing) == ({"load": {"pin": 1}}, 1, 1)
    clock.now += 2.0
    by = events.By.CONTROLLER
    driver.submit(lambda t, i: events.LoadSucceeded(t=t, id=i, pod="a", adapter="legal", by=by))
    now = views.fleet().placement
    assert (now.pins_missing, now.pin_missing_longest) == (0, 2.0)


@pytest.mark.looptime
async def test_the_controller_ticks_by_the_drivers_clock():
    seen = []

    class Seen:
        def observe(self, event, effects):
            seen.append(type(event).__name__)

    driver = drive(PlacementSettings(tick=2.0), clock=asyncio.get_running_loop().time)
    driver.submit(lambda t, i: events.PinSet(t=t, id=i, adapter="legal", pin=PinSpec(pods=("a",))))
    driver.observers.append(Seen())
    await asyncio.sleep(7.0)
    assert seen == ["Ticked"] * 3
