"""The ledger of a real run adds up: Envoy, a picker, two pods of two slots, eight adapters; then a killed picker."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from lorapick.core.ledger.charging import LoadIndex, charges
from lorapick.core.ledger.report import Asked
from lorapick.live.ledger.answers import LedgerAnswer, View, answer
from lorapick.live.processes import becomes_true
from lorapick.model.ledger_report import LedgerReport
from lorapick.model.pods import PodLimits
from lorapick.testing.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]
REQUESTS = 60
ALL = Asked(0.0, 4e9, most=10_000)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack():
    limits = PodLimits(max_loras=2, max_cpu_loras=4)
    async with Stack(pods=2, adapters=8, limits=limits, observe="bodies", speed=4.0) as running:
        async with aiohttp.ClientSession() as client:
            await asyncio.gather(*(ask(client, running, number) for number in range(REQUESTS)))
        assert await becomes_true(lambda: counts(path(running), REQUESTS), within=10.0)
        yield running


async def ask(client: aiohttp.ClientSession, stack: Stack, number: int) -> None:
    await asyncio.sleep(number * 0.02)
    body = {"model": f"adapter-{Random(number).randrange(8):03d}", "prompt": "why", "max_tokens": 12}
    body["stream"] = number % 2 == 0
    async with client.post(f"{stack.endpoint}/v1/completions", json=body) as response:
        await response.read()
        assert response.status == 200


def path(stack: Stack) -> Path:
    return stack.pickers[0].configuration.with_name("ledger.sqlite")


async def counts(ledger: Path, least: int) -> bool:
    """Whether so many requests for adapters are in it; the stack sends one for the base model when it starts."""
    try:
        with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as file:
            rows = file.execute("SELECT count(*) FROM requests WHERE outcome = 'served' AND adapter IS NOT NULL")
            return rows.fetchone()[0] >= least
    except sqlite3.OperationalError:  # it is just being made
        return False


async def test_each_request_adds_up_and_so_do_its_loads(stack: Stack) -> None:
    requests = answer(path(stack), View.REQUESTS, asked=ALL).requests or ()
    loads = answer(path(stack), View.LOADS, asked=ALL).loads or ()
    assert len([row for row in requests if row.outcome == "served"]) >= REQUESTS
    assert len(loads) >= 8
    index = LoadIndex(loads)
    for row in requests:
        assert row.queue + row.load_wait + row.drain + row.served == pytest.approx(row.ended - row.arrived, abs=1e-5)
        charged = [*charges(row, index)]
        assert sum(each.seconds for each in charged if each.waited) == pytest.approx(row.load_wait, abs=1e-5)
        assert sum(each.seconds for each in charged if not each.waited) == pytest.approx(row.drain, abs=1e-5)
    streamed = [row for row in requests if row.prefill is not None and row.decode is not None]
    assert len(streamed) >= REQUESTS // 2
    assert all(row.prefill + row.decode == pytest.approx(row.served) for row in streamed)
    assert any(row.load_wait > 0 and row.hit is False for row in requests)
    assert sum(row.output_tokens == 12 for row in requests) >= REQUESTS // 2


async def test_the_route_and_the_file_say_the_same(stack: Stack) -> None:
    from_file = answer(path(stack), View.REPORT, asked=ALL).report
    async with aiohttp.ClientSession() as client:
        async with client.get(f"{stack.admin}/v1/ledger", params={"from": "0", "to": "4e9"}) as response:
            from_route = msgspec.json.decode(await response.read(), type=LedgerAnswer).report
    assert isinstance(from_file, LedgerReport)
    assert from_route is not None
    assert (from_route.window, from_route.without) == (from_file.window, from_file.without)
    assert from_file.evictions
    assert from_file.evictions[0].by is not None
    held = from_file.conservation
    assert 0 < held.slots_in_use <= 4
    assert held.slots_in_use * held.seconds == pytest.approx(held.mean_residency * held.stays)


async def test_nothing_is_lost_by_a_killed_picker_but_what_was_open(stack: Stack) -> None:
    rows = answer(path(stack), View.REQUESTS, asked=ALL).requests or ()
    before = sum(row.outcome == "served" and row.adapter is not None for row in rows)
    stack.kill_picker(0)
    async with aiohttp.ClientSession() as client:
        assert await becomes_true(lambda: served(client, stack), within=20.0)
    assert await becomes_true(lambda: counts(path(stack), before + 1), within=10.0)
    with closing(sqlite3.connect(path(stack))) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert file.execute("SELECT count(*) FROM runs").fetchone() == (2,)
        ended = file.execute("SELECT DISTINCT why FROM residencies WHERE run = 1").fetchall()
        assert ("unknown",) in ended
        assert (None,) not in ended


async def served(client: aiohttp.ClientSession, stack: Stack) -> bool:
    """Whether the picker that was started again decides: a request comes back with its mark."""
    try:
        async with client.get(f"{stack.admin}/v1/fleet") as response:
            assert response.status == 200
        await ask(client, stack, 1)
    except (aiohttp.ClientError, AssertionError):
        return False
    return True
