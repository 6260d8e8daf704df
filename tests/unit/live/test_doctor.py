"""The doctor on a picker: what its picture holds, and how what changed in the traffic is found once a minute."""

import asyncio
from itertools import cycle

import msgspec
import pytest
from admin_kit import Site

from lorapick.core.signals import shifts
from lorapick.live import doctor as doctor_module
from lorapick.live.doctor import Doctor, DoctorAnswer
from lorapick.live.driver_operations import DriverOperations
from lorapick.live.published import PublishedViews
from lorapick.model import events
from lorapick.model.pods import LoadedAdapter, PodReport
from lorapick.model.shifts import ShiftKind
from lorapick.testing.published import small_fleet

NAMES = ("legal", "acme/code@7", "medical", "support")
HALF = 1500.0


def with_split(site):
    """Half an hour of traffic, then one of the adapters gives half of its requests to another one."""
    traffic = site.driver.fleet.state.signals.traffic
    names = cycle(NAMES)
    for step in range(12_000):
        t = 0.25 * step
        name = next(names)
        traffic.arrived("f00d" if name == "legal" and t > HALF and step % 8 else name, t)
    site.clock.now = 3000.0


@pytest.fixture
async def site():
    return Site()


def doctor_of(site):
    return Doctor(PublishedViews(site.driver), DriverOperations(site.driver))


async def test_the_picture_has_what_views_and_the_core_know(site):
    report = PodReport(
        waiting=0, running=2, kv_usage=0.5, gpu_blocks=1000, block_size=16, max_loras=2,
        loaded=(LoadedAdapter(name="legal", on_gpu=True, rank=16),), registered=NAMES,
    )  # fmt: skip
    site.say(events.PodReported, pod="a", report=report)
    answer = await site.ask("GET", "/v1/doctor")
    found = msgspec.json.decode(answer.content, type=DoctorAnswer)
    first, second = found.picture.pods
    assert (first.kv_tokens, first.slots, first.max_rank, first.served_per_second) == (16_000, 2, 64, 0.0)
    assert (second.kv_tokens, second.slots) == (None, 4)
    assert (first.pinned, found.picture.loads, found.picture.refused) == (0, (), {})
    assert found.picture.stale_after == 5.0
    legal = next(each for each in found.picture.adapters if each.name == "legal")
    assert (legal.declared, legal.rank, legal.source, legal.slots) == (True, 16, "/adapters/legal", 1)
    assert [finding.check for finding in found.diagnosis.findings] == ["drift", "rank"]


async def test_with_nothing_but_views_it_answers_too():
    answer = await Doctor(small_fleet()).answer()
    assert [pod.name for pod in answer.picture.pods]
    assert answer.picture.pods[0].max_rank is None
    assert answer.picture.shifts == ()


async def test_a_split_is_found_in_the_traffic(site):
    with_split(site)
    answer = await doctor_of(site).answer()
    (shift,) = answer.picture.shifts
    assert (shift.kind, shift.new) == (ShiftKind.SPLIT, ("f00d",))
    assert [(pair.old, pair.new) for pair in shift.pairs] == [("legal", "f00d")]
    assert "split" in [finding.check for finding in answer.diagnosis.findings]


async def test_the_search_is_made_once_a_minute_however_many_ask(site, monkeypatch):
    searches = []

    def counted(table):
        searches.append(table.now)
        return shifts.find(table)

    monkeypatch.setattr(doctor_module, "find", counted)
    with_split(site)
    doctor = doctor_of(site)
    answers = await asyncio.gather(*(doctor.answer() for _ in range(5)))
    assert len({msgspec.json.encode(answer.picture.shifts) for answer in answers}) == 1
    site.clock.now += 59.0
    await doctor.answer()
    assert searches == [3000.0]
    site.clock.now += 2.0
    await doctor.answer()
    assert searches == [3000.0, 3061.0]


async def test_who_stops_waiting_stops_nobody_else(site):
    with_split(site)
    doctor = doctor_of(site)
    first, second = asyncio.create_task(doctor.answer()), asyncio.create_task(doctor.answer())
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).picture.shifts


async def test_adapters_known_from_earlier_times_can_be_written_as_json(site):
    site.driver.fleet.state.signals.traffic.known(["legal"])
    site.driver.fleet.state.signals.courses.arrived("legal", now=site.clock.now)
    answer = await doctor_of(site).answer()
    assert msgspec.json.decode(msgspec.json.encode(answer), type=DoctorAnswer) == answer
