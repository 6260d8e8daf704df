"""The main job on real parts: Envoy, the picker, emulated pods, the openai client."""

import asyncio
import io
import os
import signal
import time
from collections import Counter

import aiohttp
import openai
import pytest
import pytest_asyncio

from lorapick.live.processes import becomes_true
from lorapick.model.pods import PodLimits
from lorapick.testing.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]
ADAPTERS = 40


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack():
    """Eight pods with four slots, forty adapters, as `lorapick up` starts them."""
    # Room in the batch for the stampede: the scenario's batch is large enough that nobody waits for a second load.
    async with Stack(pods=8, adapters=ADAPTERS, limits=PodLimits(max_loras=4, max_num_seqs=128)) as running:
        async with aiohttp.ClientSession() as session:
            running.session = session
            yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(stack):
    async with openai.AsyncOpenAI(base_url=stack.endpoint + "/v1", api_key="none", max_retries=0) as made:
        yield made


async def ask(stack, adapter, *, tokens=4, **more):
    """One completion: (status, pod, tier header)."""
    body = {"model": adapter, "prompt": f"hello {time.monotonic_ns()}", "max_tokens": tokens, **more}
    async with stack.session.post(stack.endpoint + "/v1/completions", json=body) as answer:
        await answer.read()
        return answer.status, answer.headers.get("x-lorapick-pod"), answer.headers.get("x-lorapick-tier")


async def fleet(stack):
    async with stack.session.get(stack.admin + "/v1/fleet") as answer:
        return await answer.json()


async def truths(stack):
    """What each pod holds and has done, by its own word."""
    found = []
    for pod in stack.pods:
        async with stack.session.get(f"http://{pod.address}/emulator/state") as answer:
            found.append((await answer.json())["stats"])
    return found


async def loads(stack):
    return sum(stats["loads"] for stats in await truths(stack))


async def test_openai_client_streaming_and_not(stack, client):
    whole = await client.chat.completions.create(
        model="adapter-001", messages=[{"role": "user", "content": "Say something."}], max_tokens=6
    )
    assert whole.model == "adapter-001"
    assert whole.usage.completion_tokens == 6
    stream = await client.chat.completions.create(
        model="adapter-001",
        messages=[{"role": "user", "content": "Say something."}],
        max_tokens=6,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content  # the same adapter, so the same greedy words
    assert chunks[-1].usage.completion_tokens == 6


async def test_models_are_the_union_over_pods(stack, client):
    models = {model.id: model.to_dict() for model in (await client.models.list()).data}
    assert [*models] == ["base", *(f"adapter-{number:03d}" for number in range(ADAPTERS))]
    assert models["adapter-007"]["parent"] == "base"


async def test_the_second_request_goes_where_the_adapter_is(stack):
    """Forty adapters on thirty-two slots, one after the other: each finds its own where it just went."""
    for number in range(ADAPTERS):
        adapter = f"adapter-{number:03d}"
        status, first, _ = await ask(stack, adapter)
        assert status == 200
        status, second, tier = await ask(stack, adapter)
        assert (status, second, tier) == (200, first, "hit")


async def test_what_bad_requests_get(stack, client):
    with pytest.raises(openai.NotFoundError, match=r"adapter-00"):
        await client.completions.create(model="adapter-0001x", prompt="x", max_tokens=1)
    for body, status in ((b"{not json", 400), (b"{}", 400), (b'{"model": 7}', 400), (b"x" * (11 << 20), 413)):
        async with stack.session.post(stack.endpoint + "/v1/completions", data=io.BytesIO(body)) as answer:
            error = await answer.json()
            assert (answer.status, bool(error["error"]["message"])) == (status, True)
            assert answer.headers["x-lorapick-reason"] in ("body_invalid", "body_too_large")


async def test_clients_cannot_manage_pods_through_the_gateway(stack):
    for path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/emulator/restart", "/sleep?level=1"):
        body = {"lora_name": "mine", "lora_path": "/adapters/mine"}
        async with stack.session.post(stack.endpoint + path, json=body) as answer:
            assert (answer.status, answer.headers["x-lorapick-reason"]) == (403, "path_refused")
            assert (await answer.json())["error"]["code"] == 403


async def test_clients_cannot_choose_the_pod(stack):
    _, home, _ = await ask(stack, "adapter-002")
    other = next(pod for pod in stack.pods if pod.name != home)
    for name in ("x-gateway-destination-endpoint", "x-prefiller-host-port"):
        body = {"model": "adapter-002", "prompt": "x", "max_tokens": 1}
        async with stack.session.post(
            stack.endpoint + "/v1/completions", json=body, headers={name: other.address}
        ) as answer:
            assert answer.headers["x-lorapick-pod"] == home


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_stampede_is_one_load(stack, stream):
    """R3.3: a hundred requests for a cold adapter in two seconds cause one load."""
    held = {name for stats in await truths(stack) for name in (*stats["on_gpu"], *stats["loading"])}
    cold = next(name for name in (f"adapter-{number:03d}" for number in range(ADAPTERS)) if name not in held)
    before = await loads(stack)

    async def one(number):
        await asyncio.sleep(number * 0.02)
        return await ask(stack, cold, tokens=8, stream=stream)

    answers = await asyncio.gather(*(one(number) for number in range(100)))
    assert {status for status, _, _ in answers} == {200}
    assert len({pod for _, pod, _ in answers}) == 1
    assert await loads(stack) - before == 1


async def test_a_client_that_leaves_frees_its_place(stack):
    await becomes_true(lambda: _idle(stack), within=5.0)
    body = {"model": "adapter-003", "prompt": "x", "max_tokens": 2000, "stream": True}
    async with aiohttp.ClientSession() as session:
        answer = await session.post(stack.endpoint + "/v1/completions", json=body)
        await answer.content.readline()
        assert (await fleet(stack))["totals"]["in_flight"] == 1
        answer.close()
    assert await becomes_true(lambda: _idle(stack), within=5.0)
    assert await becomes_true(lambda: _pods_idle(stack), within=5.0)


async def _idle(stack):
    return (await fleet(stack))["totals"]["in_flight"] == 0


async def _pods_idle(stack):
    return all(pod["running"] == 0 for pod in (await fleet(stack))["pods"])


async def test_outcomes_add_up_and_decisions_explain_themselves(stack):
    status, pod, _ = await ask(stack, "adapter-004")
    assert status == 200
    totals = (await fleet(stack))["totals"]
    ended = totals["served"] + totals["failed"] + totals["rejected"] + totals["abandoned"]
    assert totals["arrivals"] == ended + totals["in_flight"] + totals["held"]
    assert (totals["failed"], totals["abandoned"]) == (0, 0)
    async with stack.session.get(stack.admin + "/v1/decisions?limit=1") as answer:
        last = (await answer.json())["decisions"][0]
    async with stack.session.get(f"{stack.admin}/v1/decisions/{last['request_id']}") as answer:
        explained = await answer.json()
    winner, *losers = explained["verdicts"]
    assert (winner["pod"], winner["won"]) == (pod, True)
    assert len(losers) == 7
    assert all(loser["reason"] for loser in losers)


async def test_a_killed_pods_traffic_moves_and_a_restarted_pod_fills_again(stack):
    """Nobody gets more than one failed request; the pod that comes back serves again [R2.5]."""
    _, home, _ = await ask(stack, "adapter-005")
    number = next(index for index, pod in enumerate(stack.pods) if pod.name == home)
    failed: Counter[str] = Counter()
    stop = asyncio.Event()

    async def user(name):
        while not stop.is_set():
            status, _, _ = await ask(stack, name)
            failed[name] += status != 200

    users = [asyncio.create_task(user(f"adapter-{index:03d}")) for index in range(12)]
    await asyncio.sleep(0.5)
    stack.kill_pod(number)
    await asyncio.sleep(2.5)
    _, moved, _ = await ask(stack, "adapter-005")
    assert moved != home
    assert max(failed.values()) <= 1
    await stack.start_pod(number)
    assert await becomes_true(lambda: _serves(stack, home), within=20.0)
    stop.set()
    await asyncio.gather(*users)
    assert max(failed.values()) <= 1


async def _serves(stack, name):
    for number in range(12, ADAPTERS):
        _, pod, _ = await ask(stack, f"adapter-{number:03d}", tokens=1)
        if pod == name:
            return True
    return False


async def test_a_dead_picker_costs_no_request(stack):
    """BUFFERED: 5,000 requests while the picker is killed and comes back; no status but 200."""
    statuses: Counter[int] = Counter()
    sent = 0

    async def user(index):
        nonlocal sent
        while sent < 5000:
            sent += 1
            status, _, _ = await ask(stack, f"adapter-{index:03d}", tokens=1)
            statuses[status] += 1

    users = [asyncio.create_task(user(index)) for index in range(16)]
    for at in (1000, 3000):
        assert await becomes_true(lambda at=at: _is(sent >= at), within=60.0)
        before = stack.picker_pid
        stack.kill_picker()
        assert await becomes_true(lambda pid=before: _other_picker(stack, pid), within=20.0)
    await asyncio.gather(*users)
    assert statuses == {200: 5000}
    assert (await stack.counters()).without_picker > 0


async def _is(value):
    return value


async def _other_picker(stack, before):
    return stack.picker_pid not in (None, before)


async def test_a_picker_that_hangs_is_replaced(stack):
    assert await becomes_true(lambda: _picks(stack), within=20.0)
    hung = stack.picker_pid
    os.kill(hung, signal.SIGSTOP)
    # How soon is held in virtual time by the watchdog's own tests; here that it happens at all.
    assert await becomes_true(lambda: _other_picker(stack, hung), within=10.0)
    assert await becomes_true(lambda: _picks(stack), within=20.0)


async def _picks(stack):
    """Whether the picker, and not only Envoy, sees a request."""
    try:
        before = (await fleet(stack))["totals"]["arrivals"]
        status, _, _ = await ask(stack, "adapter-006", tokens=1)
        return status == 200 and (await fleet(stack))["totals"]["arrivals"] > before
    except aiohttp.ClientError:
        return False
