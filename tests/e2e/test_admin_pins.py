"""Through the command line to the pods: what operators ask for is in the pods' slots, by the pods' own word."""

import asyncio
import json
import os
import sys

import aiohttp
import pytest
import pytest_asyncio

from lorapick.model.pods import PodLimits
from lorapick.testing.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]
TOKEN = "a-token-of-this-test"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack():
    """A picker that asks for a token, and two pods."""
    os.environ["LORAPICK_E2E_TOKEN"] = TOKEN
    try:
        options = {"server": {"admin_token": "LORAPICK_E2E_TOKEN"}}
        limits = PodLimits(max_loras=2, max_cpu_loras=4)
        async with Stack(pods=2, adapters=6, limits=limits, configuration=options) as running:
            yield running
    finally:
        del os.environ["LORAPICK_E2E_TOKEN"]


async def lorapick(stack, *words, token=TOKEN):
    """Exit code, stdout and stderr of one command."""
    environment = {**os.environ, "LORAPICK_ADMIN": stack.admin, "LORAPICK_TOKEN": token}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "lorapick.cli.main", *words, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), timeout=30)
    return process.returncode, out.decode(), err.decode()


async def in_slots(stack):
    """Adapters in slots by pod, as the pods say."""
    found = {}
    async with aiohttp.ClientSession() as session:
        for pod in stack.pods:
            async with session.get(f"http://{pod.address}/emulator/state") as answer:
                found[pod.name] = (await answer.json())["stats"]["on_gpu"]
    return found


async def test_a_pin_becomes_resident_and_a_move_follows_it(stack):
    code, out, err = await lorapick(stack, "adapters", "pin", "adapter-003", "--pod", "pod-1", "--wait", "10")
    assert (code, out.splitlines()[:2]) == (0, ["keep adapter-003 resident on pod-1", "  wanted on pod-1"]), err
    assert "adapter-003" in (await in_slots(stack))["pod-1"]
    code, out, _ = await lorapick(stack, "adapters", "list", "--json")
    row = next(row for row in json.loads(out)["adapters"] if row["name"] == "adapter-003")
    assert (row["pin"]["pods"], row["wanted"]) == (["pod-1"], {"pod-1": "pin"})
    code, _, err = await lorapick(stack, "adapters", "move", "adapter-003", "--from", "pod-1", "--to", "pod-0")
    assert (code, "unpin it first" in err) == (1, True)
    assert (await lorapick(stack, "adapters", "unpin", "adapter-003"))[0] == 0
    code, out, err = await lorapick(
        stack, "adapters", "move", "adapter-003", "--from", "pod-1", "--to", "pod-0", "--wait", "10"
    )
    assert code == 0, err
    assert "adapter-003" in (await in_slots(stack))["pod-0"]


async def test_without_the_token_nothing_is_changed(stack):
    code, _, err = await lorapick(stack, "adapters", "pin", "adapter-001", "--replicas", "1", token="")
    assert (code, "LORAPICK_TOKEN" in err) == (1, True)
    code, _, err = await lorapick(stack, "adapters", "pin", "adapter-0001", "--replicas", "1")
    assert (code, "nearest: adapter-001" in err) == (2, True)
