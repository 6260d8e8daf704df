"""A trial on real parts: Envoy chooses, then half of the requests are picked for, and back; nothing is lost."""

import asyncio
import json
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import aiohttp
import pytest
import pytest_asyncio

from lorapick.core.arms_report import report_of_rows
from lorapick.live.ledger.reader import requests_of
from lorapick.model.pods import PodLimits
from lorapick.model.requests import Outcome
from lorapick.testing.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]
EACH = 80


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack():
    limits = PodLimits(max_loras=2, max_cpu_loras=4)
    observing = {"mode": "observe"}
    async with Stack(
        pods=3, adapters=6, limits=limits, observe="bodies", speed=6.0, configuration=observing
    ) as running:
        yield running


async def lorapick(stack: Stack, *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "lorapick.cli.main", *words, "--admin", stack.admin),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    return out.decode()


async def ask(client: aiohttp.ClientSession, stack: Stack, name: str, *, number: int) -> int:
    await asyncio.sleep(number * 0.02)
    body = {"model": f"adapter-{Random(name).randrange(6):03d}", "prompt": "why", "max_tokens": 6}
    body["stream"] = number % 2 == 0
    url = f"{stack.endpoint}/v1/completions"
    async with client.post(url, json=body, headers={"x-request-id": name}) as response:
        await response.read()
        return response.status


async def round_of(stack: Stack, name: str) -> None:
    async with aiohttp.ClientSession() as client:
        statuses = await asyncio.gather(*(ask(client, stack, f"{name}-{n}", number=n) for n in range(EACH)))
    assert set(statuses) == {200}


async def report(stack: Stack) -> dict:
    return json.loads(await lorapick(stack, "report", "--json"))


async def fleet(stack: Stack) -> dict:
    async with aiohttp.ClientSession() as client, client.get(f"{stack.admin}/v1/fleet") as response:
        return await response.json()


async def test_envoy_chooses_while_requests_are_only_observed(stack: Stack) -> None:
    await round_of(stack, "first")
    found = await report(stack)
    enforced, observed = found["arms"]
    assert (found["mode"], found["route"]) == ("observe", "gateway")
    assert enforced["requests"] == 0
    assert observed["requests"] >= EACH
    # Which pod it was is known of each, and what it had then.
    assert sum(observed["by_tier"].values()) == observed["requests"]
    assert "unknown" not in observed["by_tier"]
    assert found["would"]["decisions"] == observed["requests"]
    assert observed["ttft"]["p50"]["value"] > 0
    assert "would have, where lorapick would have sent them" in found["sentence"]
    row = json.loads(await lorapick(stack, "explain", "first-7", "--json"))
    assert row["outcome"] == "observed"
    (went,) = [came["pod"] for came in row["came"] if came["what"] == "went"]
    assert went.startswith("pod-")
    assert f"it is only observed, and went to {went}" in " ".join(row["words"])


async def test_half_of_them_and_back_by_a_command_while_requests_come(stack: Stack) -> None:
    told = await lorapick(stack, "mode", "percent", "50")
    assert "mode percent 50, observe before" in told
    running = asyncio.create_task(round_of(stack, "half"))
    await asyncio.sleep(0.8)
    half = await report(stack)
    assert "mode observe" in await lorapick(stack, "mode", "observe")
    assert (await lorapick(stack, "mode")).startswith("observe; the others are routed by gateway")
    await running
    assert half["mode"] == "percent 50"
    totals = (await fleet(stack))["totals"]
    left = totals["served"] + totals["failed"] + totals["rejected"] + totals["abandoned"]
    assert (totals["arrivals"], totals["in_flight"], totals["held"]) == (left, 0, 0)
    assert (totals["failed"], totals["rejected"], totals["abandoned"]) == (0, 0, 0)


async def test_the_page_and_the_ledger_have_both_arms(stack: Stack) -> None:
    await lorapick(stack, "mode", "percent", "50")
    await round_of(stack, "more")
    async with aiohttp.ClientSession() as client, client.get(stack.metrics) as response:
        page = await response.text()
    for line in ('lorapick_arm_requests_total{arm="observed",outcome="served"}', "lorapick_enforced_ratio 0.5"):
        assert line in page
    assert 'lorapick_arm_latency_seconds_bucket{arm="enforced",le="300.0"}' in page
    await asyncio.sleep(1.2)  # the ledger writes every half second
    now = datetime.now(UTC)
    ledger = stack.pickers[0].configuration.with_name("ledger.sqlite")
    rows = requests_of(ledger, since=(now - timedelta(hours=1)).timestamp(), until=now.timestamp() + 10)
    arms = Counter(row.arm for row in rows if row.id is not None)
    assert set(arms) == {"enforced", "observed"}
    assert sum(arms.values()) >= 3 * EACH
    for row in rows:
        assert row.outcome is Outcome.SERVED
        assert row.queue + row.load_wait + row.drain + row.served == pytest.approx(row.ended - row.arrived, abs=1e-5)
    found = report_of_rows(rows, seconds=3600.0)
    assert found.would.decisions == arms["observed"]
    assert "enforced" in await lorapick(stack, "report")


async def test_in_force_for_all_after_one_more_command(stack: Stack) -> None:
    await lorapick(stack, "mode", "enforce")
    await round_of(stack, "last")
    found = await report(stack)
    assert (found["mode"], found["apart"]) == ("enforce", True)
    assert found["arms"][0]["requests"] == EACH
    assert "different times" in found["sentence"]
