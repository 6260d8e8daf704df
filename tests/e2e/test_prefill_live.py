"""Prefill on one pod, decode on another, on real parts: Envoy, the picker, emulated pods with their sidecars."""

import asyncio
import time

import aiohttp
import pytest
import pytest_asyncio

from lorapick.live.processes import becomes_true
from lorapick.testing.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]
FORGED = {"x-prefiller-host-port": "127.0.0.1:9", "x-encoder-hosts-ports": "127.0.0.1:9"}
PREFILL = ("pod-0", "pod-1")
DECODE = ("pod-2", "pod-3")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack():
    """Two pods that prefill, two that decode, six adapters."""
    async with Stack(pods=4, prefill=2, adapters=6, pod_arguments=("--max-model-len", "131072")) as running:
        async with aiohttp.ClientSession() as session:
            running.session = session
            yield running


async def ask(stack, adapter, *, words=2000, headers=None, **more):
    """One completion with a prompt of its own: (status, headers)."""
    prompt = f"{time.monotonic_ns()} " + "of whales and ships " * (words // 4)
    body = {"model": adapter, "prompt": prompt, "max_tokens": 4, **more}
    async with stack.session.post(stack.endpoint + "/v1/completions", json=body, headers=headers) as answer:
        await answer.read()
        return answer.status, answer.headers


async def fleet(stack):
    async with stack.session.get(stack.admin + "/v1/fleet") as answer:
        return await answer.json()


@pytest.mark.parametrize("stream", [False, True])
async def test_long_prompts_are_prefilled_elsewhere_by_the_pickers_word_alone(stack, stream):
    before = (await fleet(stack))["splits"]
    asked = [ask(stack, f"adapter-00{number}", headers=FORGED, stream=stream) for number in range(6)]
    for status, headers in await asyncio.gather(*asked):
        assert status == 200
        assert (headers["x-lorapick-pod"] in DECODE, headers["x-lorapick-prefiller"] in PREFILL) == (True, True)
        assert "x-lorapick-local-prefill" not in headers
    after = (await fleet(stack))["splits"]
    assert after["results"]["split"] - before["results"].get("split", 0) == 6
    assert after["failed"] == before["failed"]


async def test_short_prompts_are_not_and_what_clients_forge_is_gone(stack):
    status, headers = await ask(stack, "adapter-000", words=8, headers=FORGED)
    assert (status, headers["x-lorapick-pod"] in DECODE) == (200, True)
    # A sidecar that had got the header would have said that it did it by itself after all.
    assert "x-lorapick-prefiller" not in headers and "x-lorapick-local-prefill" not in headers


async def test_nothing_is_left_when_all_have_ended(stack):
    async def at_rest():
        pods = (await fleet(stack))["pods"]
        return not any(pod["reserved"] or pod["prefill_tokens"] or pod["in_flight"] for pod in pods)

    assert await becomes_true(at_rest, within=5.0)
    assert {pod["name"]: pod["role"] for pod in (await fleet(stack))["pods"]} == {
        **dict.fromkeys(PREFILL, "prefill"),
        **dict.fromkeys(DECODE, "decode"),
    }
    async with stack.session.get(stack.metrics) as answer:
        page = await answer.text()
    assert 'lorapick_pod_info{pod="pod-0",role="prefill",zone="local"} 1.0' in page
    assert 'lorapick_splits_total{result="split"} 12.0' in page


async def test_a_pod_that_decodes_is_lost_during_the_prefill(stack):
    asked = asyncio.create_task(ask(stack, "adapter-000", words=40_000, max_tokens=2))

    async def kept():
        return [pod["name"] for pod in (await fleet(stack))["pods"] if pod["reserved"]]

    assert await becomes_true(kept, within=5.0, every=0.01)
    (lost,) = await kept()
    stack.kill_pod(int(lost[-1]))
    status, headers = await asked
    other = headers["x-lorapick-pod"]
    # Another pod that has the adapter, or the one that prefilled it: that has no prefiller then.
    assert (status, other != lost, other in PREFILL) == (200, True, "x-lorapick-prefiller" not in headers)
    async with stack.session.get(stack.admin + "/v1/decisions?limit=1") as answer:
        (row,) = (await answer.json())["decisions"]
    assert (row["pod"], row["served_by"]) == (lost, other)
    assert row["prefill_came"] == ("prefilled" if other in DECODE else None)
    async with stack.session.get(stack.admin + f"/v1/decisions/{row['request_id']}") as answer:
        words = (await answer.json())["words"]
    assert [line for line in words if f"the gateway said that {other} serves it" in line]


async def last_decision(stack):
    """The newest one, as explained."""
    async with stack.session.get(stack.admin + "/v1/decisions?limit=1") as answer:
        (row,) = (await answer.json())["decisions"]
    async with stack.session.get(stack.admin + f"/v1/decisions/{row['request_id']}") as answer:
        return await answer.json()


async def test_a_pod_that_dies_while_it_prefills_is_named_with_the_reason(stack):
    asked = asyncio.create_task(ask(stack, "adapter-001", words=40_000, max_tokens=2))

    async def prefilling():
        return any(pod["prefill_tokens"] for pod in (await fleet(stack))["pods"])

    assert await becomes_true(prefilling, within=5.0, every=0.01)
    for name in PREFILL:
        stack.kill_pod(int(name[-1]))
    status, headers = await asked
    reason = headers["x-lorapick-local-prefill"]
    assert status == 200
    last = (await last_decision(stack))["came"][-1]
    assert (last["what"], last["why"]) == ("failed", reason)


async def test_of_pods_that_prefill_and_are_known_to_be_gone_none_is_asked(stack):
    async def gone():
        return not any(pod["ready"] for pod in (await fleet(stack))["pods"] if pod["role"] == "prefill")

    assert await becomes_true(gone, within=10.0)
    status, headers = await ask(stack, "adapter-001")
    assert (status, headers.get("x-lorapick-local-prefill")) == (200, None)
    decision = await last_decision(stack)
    assert decision["unsplit"] == "nobody_prefills" and len(decision["prefill_side"]) == len(PREFILL)


async def test_without_the_picker_what_clients_forge_is_gone_too(stack):
    stack.kill_picker()
    for _ in range(6):
        status, headers = await ask(stack, "adapter-000", headers=FORGED)
        assert status == 200
        assert "x-lorapick-prefiller" not in headers and "x-lorapick-local-prefill" not in headers
