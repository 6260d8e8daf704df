"""Prefill on one pod, decode on another, over real sockets: both steps, and everything that can go wrong in them.

Most tests share one pair of pods, and look at what has been counted since they began.
"""

import asyncio
import json
import random

import openai
import pytest
import pytest_asyncio
from aiohttp import web
from sidecar_kit import HEADER, HELD, PROMPT, Pod, fresh_prompt, pair, pod, prefiller, until

from lorapick.live.addresses import free_ports
from lorapick.live.podserver.holding import ENGINE_HEADER
from lorapick.live.podserver.options import HandoverOptions, PodServerOptions
from lorapick.model.pods import PodLimits, Role
from lorapick.pod.values import PodConfig

pytestmark = pytest.mark.asyncio(loop_scope="module")
MESSAGES = [{"role": "user", "content": PROMPT}]
BODIES = {
    "/v1/completions": lambda prompt: {"prompt": prompt},
    "/v1/chat/completions": lambda prompt: {"messages": [{"role": "user", "content": prompt}]},
    "/v1/responses": lambda prompt: {"input": prompt, "max_output_tokens": 5},
}
ASKED_TO_PREFILL = {"max_tokens": 1, "kv_transfer_params": {"do_remote_decode": True}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running():
    async with pair(HandoverOptions(prefill_timeout=2.0)) as pods:
        yield pods


@pytest_asyncio.fixture(loop_scope="module")
async def pods(running):
    prompt = fresh_prompt()
    for each in running:
        await each.mark(prompt)
    return running


@pytest_asyncio.fixture(loop_scope="module")
async def prefill(pods):
    return pods[0]


@pytest_asyncio.fixture(loop_scope="module")
async def decode(pods):
    return pods[1]


def said(answer, stream=False):
    """The text alone."""
    if not stream:
        (choice,) = answer.json.get("choices") or answer.json["output"][0]["content"]
        return choice["message"]["content"] if "message" in choice else choice["text"]
    text = ""
    for line in answer.text.splitlines():
        event = json.loads(line[6:]) if line.startswith("data: {") else {}
        if event.get("type") == "response.output_text.delta":
            text += event["delta"]
        for choice in event.get("choices", ()):
            text += choice["text"] if "text" in choice else choice["delta"].get("content", "")
    return text


async def held(prefill: Pod) -> int:
    return (await prefill.stats())["kv_held"]


async def until_released(prefill: Pod) -> None:
    async def released() -> bool:
        return await held(prefill) == 0

    await until(released)


# -- both steps


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BODIES)
async def test_a_request_is_prefilled_on_one_pod_and_decoded_on_the_other(prefill, decode, path, stream):
    body = BODIES[path](decode.prompt)
    answer = await decode.ask(prefill.address, path=path, stream=stream, **body)
    assert answer.status == 200
    assert answer.headers["x-lorapick-prefiller"] == prefill.address
    assert "x-lorapick-local-prefill" not in answer.headers
    assert await decode.prefilled() == 0
    assert await prefill.prefilled() > 0
    assert await held(prefill) == 0
    assert await decode.counted("kv_transfers") == {"ok": 1}
    assert await prefill.counted("kv_releases") == {"released": 1}
    alone = await prefill.ask(path=path, stream=stream, **body)
    assert said(answer, stream) == said(alone, stream) != ""


async def test_with_the_openai_client(prefill, decode):
    url, headers = f"http://{decode.address}/v1", {HEADER: prefill.address}
    messages = [{"role": "user", "content": decode.prompt}]
    async with openai.AsyncOpenAI(base_url=url, api_key="-", default_headers=headers, max_retries=0) as client:
        stream = await client.chat.completions.create(
            model="adapter-001", messages=messages, max_tokens=7, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[-1].usage.completion_tokens == 7
    assert await decode.prefilled() == 0


async def test_what_the_prefiller_is_asked(decode):
    seen = []

    async def answer(request):
        seen.append((request.path_qs, request.headers, await request.json()))
        return web.json_response({"kv_transfer_params": None})

    body = {"model": "base", "messages": MESSAGES, "max_tokens": 9, "min_tokens": 3, "temperature": 0.5}
    more = {"stream": True, "stream_options": {"include_usage": True}}
    async with prefiller(answer) as address:
        headers = {HEADER: f" http://{address} , 10.0.0.1:1", "x-request-id": "one", "x-encoder-hosts-ports": "a:1,b:2"}
        whole = await decode.send("POST", "/v1/chat/completions?x=1", json={**body, **more}, headers=headers)
    assert whole.status == 200
    [(path, sent, got)] = seen
    assert path == "/v1/chat/completions?x=1"
    assert sent["x-request-id"] == "one"
    assert sent["x-encoder-hosts-ports"] == "a:1,b:2"
    assert HEADER not in sent
    nothing = dict.fromkeys(("remote_engine_id", "remote_block_ids", "remote_host", "remote_port"))
    del body["min_tokens"]
    asks = {"do_remote_decode": True, "do_remote_prefill": False} | nothing
    limits = {"max_tokens": 1, "max_completion_tokens": 1}
    assert got == body | limits | {"stream": False, "kv_transfer_params": asks}


async def test_both_steps_have_one_request_id(decode):
    ids = []

    async def answer(request):
        ids.append(request.headers["x-request-id"])
        return web.json_response({})

    async with prefiller(answer) as address:
        answered = await decode.ask(address)
    assert answered.json["id"] == f"cmpl-{ids[0]}"


async def test_cached_tokens_are_those_of_the_prefiller(prefill, decode):
    first = await decode.ask(prefill.address)
    again = await decode.ask(prefill.address)
    assert first.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert again.json["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


async def test_another_sidecar_may_make_the_steps(prefill, decode):
    first = await prefill.ask(**ASKED_TO_PREFILL)
    params = first.json["kv_transfer_params"]
    tokens = first.json["usage"]["prompt_tokens"]
    assert params["do_remote_prefill"] and not params["do_remote_decode"]
    assert f"{params['remote_host']}:{params['remote_port']}" == prefill.address
    assert params["remote_num_tokens"] == tokens
    assert len(params["remote_block_ids"][0]) == -(-tokens // 16)
    assert await held(prefill) == 1
    second = await decode.ask(kv_transfer_params=params)
    assert second.status == 200
    # As with vLLM, where llm-d's sidecar puts the prefiller's number into the answer.
    assert second.json["usage"]["prompt_tokens_details"]["cached_tokens"] == tokens - 1
    assert await decode.prefilled() == 0


async def test_without_a_sidecar_the_header_means_nothing():
    async with pod(Role.DECODE, HandoverOptions(sidecar=False)) as decode:
        answer = await decode.ask("not an address")
        assert answer.status == 200
        assert "x-lorapick-local-prefill" not in answer.headers


async def test_many_at_once(prefill, decode):
    asked = [(f"adapter-00{n % 6}", f"{n} {decode.prompt}") for n in range(30)]
    answers = await asyncio.gather(*(decode.ask(prefill.address, model=m, prompt=p) for m, p in asked))
    assert {answer.status for answer in answers} == {200}
    assert await decode.counted("kv_transfers") == {"ok": 30}
    assert await held(prefill) == 0


# -- what may be asked


@pytest.mark.parametrize(
    "value", ["pod-7:8000", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", "::1:8000", "169.254.169.254/x:80", "a b"]
)
async def test_a_prefiller_is_an_address(decode, value):
    answer = await decode.ask(value)
    assert answer.status == 400
    assert "send ip:port" in answer.json["error"]["message"]


async def test_only_listed_prefillers_are_asked(prefill):
    async with pod(Role.DECODE, HandoverOptions(prefillers=("127.0.0.1:1",))) as decode:
        answer = await decode.ask(prefill.address)
        assert (answer.status, answer.json["error"]["type"]) == (403, "Forbidden")
        pulled = await decode.ask(kv_transfer_params=HELD | {"remote_host": "127.0.0.1", "remote_port": 2})
        assert (pulled.status, pulled.headers["x-lorapick-kv-refused"]) == (403, "kv_forbidden")
    assert await prefill.prefilled() == 0


@pytest.mark.parametrize(
    ("host", "prefiller", "may"),
    [
        ("127.0.0.1", "127.0.0.1:8002", True),
        ("localhost", "[::1]:8002", True),
        ("127.0.0.1", "10.0.0.7:8002", False),
        ("0.0.0.0", "127.0.0.1:8002", False),
        ("::", "[::1]:8002", False),
        ("10.0.0.6", "10.0.0.7:8002", False),
        ("pod.example", "127.0.0.1:8002", False),
    ],
)
async def test_without_a_list_only_a_local_pod_asks_and_only_local_ones(host, prefiller, may):
    assert PodServerOptions(host=host).may_ask(prefiller) is may
    assert PodServerOptions(host=host, handover=HandoverOptions(prefillers=(prefiller,))).may_ask(prefiller)
    assert not PodServerOptions(host=host, handover=HandoverOptions(prefillers=())).may_ask(prefiller)


async def test_the_metadata_service_of_a_cloud_is_not_asked(decode):
    answer = await decode.ask("169.254.169.254:80")
    assert (answer.status, "--prefillers" in answer.json["error"]["message"]) == (403, True)


async def test_kv_is_let_go_for_those_only_who_were_told_of_it(prefill, decode):
    params = (await prefill.ask(**ASKED_TO_PREFILL)).json["kv_transfer_params"]
    path = f"/emulator/kv/{params['remote_request_id']}"
    for method in ("GET", "DELETE"):
        for headers in ({}, {ENGINE_HEADER: "another"}):
            assert (await prefill.send(method, path, headers=headers)).status == 404
    assert (await decode.ask(kv_transfer_params=params)).status == 200


async def test_an_empty_header_names_nobody(decode):
    answer = await decode.ask("")
    assert answer.status == 200
    assert await decode.counted("local_prefills") == {}


async def test_a_body_that_is_none_is_refused_by_the_pod(decode):
    headers = {HEADER: "127.0.0.1:1", "content-type": "application/json"}
    answer = await decode.send("POST", "/v1/completions", data=b"[", headers=headers)
    assert answer.status == 400
    assert "json_invalid" in answer.text


# -- the first step fails


async def fall_back(decode: Pod, address: str) -> dict[str, float]:
    """The pod answers all the same; why it had to prefill."""
    answer = await decode.ask(address)
    assert answer.status == 200
    assert answer.json["usage"]["completion_tokens"] == 5
    assert await decode.prefilled() > 0
    reasons = await decode.counted("local_prefills")
    assert answer.headers["x-lorapick-local-prefill"] in reasons
    assert "x-lorapick-prefiller" not in answer.headers
    return reasons


async def test_nobody_listens(decode):
    assert await fall_back(decode, f"127.0.0.1:{free_ports(1)[0]}") == {"prefiller_unreachable": 1}


@pytest.mark.parametrize(
    ("status", "text", "reason"),
    [
        (500, "", "prefiller_error"),
        (503, "{}", "prefiller_error"),
        (302, "", "prefiller_error"),
        (200, "{}", "no_kv"),
        (200, '{"kv_transfer_params": null}', "no_kv"),
        (200, '{"kv_transfer_params": {"do_remote_prefill": false}}', "no_kv"),
        (200, '{"kv_transfer_params": {"remote_port": "x"}}', "bad_answer"),
        (200, "<html>", "bad_answer"),
        (200, "[" * 100_000, "bad_answer"),
        (200, " " * (4 * 1024 * 1024 + 1), "bad_answer"),
    ],
)
async def test_the_prefiller_answers_badly(decode, status, text, reason):
    async def answer(request):
        headers = {"location": "/elsewhere"} if status == 302 else None
        return web.Response(status=status, text=text, headers=headers)

    async with prefiller(answer) as address:
        assert await fall_back(decode, address) == {reason: 1}


async def test_the_prefiller_answers_too_late():
    async def answer(request):
        await asyncio.sleep(20)

    async with pod(Role.DECODE, HandoverOptions(prefill_timeout=0.05)) as decode, prefiller(answer) as address:
        assert await fall_back(decode, address) == {"prefiller_timeout": 1}


async def test_the_prefiller_breaks_off(decode):
    async def answer(request):
        response = web.StreamResponse(headers={"content-length": "100"})
        await response.prepare(request)
        await response.write(b"{")
        request.transport.close()
        return response

    async with prefiller(answer) as address:
        assert await fall_back(decode, address) == {"prefiller_unreachable": 1}


async def test_what_the_prefiller_holds_against_the_request_is_for_the_client(prefill, decode):
    answer = await decode.ask(prefill.address, model="nobody")
    assert answer.status == 404
    assert "does not exist" in answer.json["error"]["message"]
    assert await decode.counted("prefill_requests") == {"refused": 1}
    assert await decode.counted("local_prefills") == {}


# -- the KV is not what it should be


async def test_kv_of_another_adapter_is_refused_and_computed_here(prefill, decode):
    async def answer(request):
        body = await request.json() | {"model": "adapter-005"}
        async with prefill.session.post(request.path, json=body) as response:
            return web.Response(body=await response.read())

    async with prefiller(answer) as address:
        assert await fall_back(decode, address) == {"kv_mismatch": 1}
    assert said(await decode.ask()) == said(await prefill.ask())
    await until_released(prefill)


async def test_kv_of_another_adapter_is_refused_with_words(prefill, decode):
    first = await prefill.ask(**ASKED_TO_PREFILL)
    answer = await decode.ask(model="adapter-004", kv_transfer_params=first.json["kv_transfer_params"])
    assert (answer.status, answer.headers["x-lorapick-kv-refused"]) == (409, "kv_mismatch")
    words = "its KV was computed under adapter 'adapter-003' and the request asks for adapter 'adapter-004'"
    assert words in answer.json["error"]["message"]
    await until_released(prefill)


async def test_kv_is_pulled_once(prefill, decode):
    params = (await prefill.ask(**ASKED_TO_PREFILL)).json["kv_transfer_params"]
    assert (await decode.ask(kv_transfer_params=params)).status == 200
    again = await decode.ask(kv_transfer_params=params)
    assert (again.status, again.headers["x-lorapick-kv-refused"]) == (404, "kv_unknown")


async def test_kv_of_a_pod_that_restarted_is_gone(prefill, decode):
    async def answer(request):
        async with prefill.session.post(request.path, json=await request.json()) as response:
            body = await response.read()
        await prefill.send("POST", "/emulator/restart")
        return web.Response(body=body)

    async with prefiller(answer) as address:
        assert await fall_back(decode, address) == {"kv_unknown": 1}
    assert await prefill.counted("kv_releases") == {"lost": 1}


async def test_kv_that_nobody_pulls_expires(decode):
    async with pod(Role.PREFILL, config=PodConfig(kv_hold=20.0)) as prefill:
        first = await prefill.ask(**ASKED_TO_PREFILL)
        await until_released(prefill)
        assert await prefill.counted("kv_releases") == {"expired": 1}
        assert await prefill.value("vllm:nixl_num_kv_expired_reqs_total") == 1
        late = await decode.ask(kv_transfer_params=first.json["kv_transfer_params"])
        assert late.headers["x-lorapick-kv-refused"] == "kv_unknown"


async def test_the_prefill_pod_dies_between_the_steps(decode):
    async def answer(request):
        params = HELD | {"remote_host": "127.0.0.1", "remote_port": free_ports(1)[0]}
        return web.json_response({"kv_transfer_params": params})

    async with prefiller(answer) as address:
        assert await fall_back(decode, address) == {"kv_unreachable": 1}


async def test_the_prefill_pod_dies_during_the_transfer(prefill):
    async with pod(Role.DECODE, HandoverOptions(kv_latency=40.0)) as decode:
        asking = [asyncio.create_task(decode.ask(prefill.address, stream=stream)) for stream in (False, True)]

        async def both_transfer() -> bool:
            return await decode.waiting() == 2

        await until(both_transfer)
        await prefill.send("POST", "/emulator/restart")
        whole, streamed = [await each for each in asking]
        assert (whole.status, streamed.status) == (200, 200)
        assert said(whole) == said(streamed, stream=True) != ""
        assert await decode.counted("local_prefills") == {"kv_lost": 2}
        assert await decode.value("vllm:nixl_num_failed_transfers_total") == 2
        assert await decode.prefilled() > 0


async def test_params_that_lack_something_are_computed_here(decode):
    answer = await decode.ask(kv_transfer_params={"do_remote_prefill": True})
    assert answer.status == 200
    assert await decode.counted("local_prefills") == {"kv_incomplete": 1}


@pytest.mark.parametrize(
    "params", [{"do_remote_decode": True, "do_remote_prefill": True}, {"do_remote_decode": "yes"}, {"remote_port": 1.5}]
)
async def test_params_that_make_no_sense_are_refused(decode, params):
    answer = await decode.ask(kv_transfer_params=params)
    assert (answer.status, answer.json["error"]["param"]) == (400, "kv_transfer_params")


async def test_a_prefill_has_one_token(prefill):
    answer = await prefill.ask(max_tokens=2, kv_transfer_params={"do_remote_decode": True})
    assert answer.status == 400


# -- the client leaves


async def test_the_client_leaves_during_the_prefill(decode):
    async with pod(Role.PREFILL, speed=0.01) as prefill:
        asking = asyncio.create_task(decode.ask(prefill.address))
        await until(prefill.waiting)
        asking.cancel()

        async def both_know() -> bool:
            return not await prefill.waiting() and await decode.counted("prefill_requests") == {"client_gone": 1}

        await until(both_know)
    assert await decode.waiting() == 0
    assert await decode.prefilled() == 0


async def test_the_client_leaves_during_the_transfer(prefill):
    async with pod(Role.DECODE, HandoverOptions(kv_latency=10_000.0)) as decode:

        async def aborted(times: int) -> None:
            async def counted() -> bool:
                return await decode.counted("kv_transfers") == {"aborted": times}

            await until(counted)
            await until_released(prefill)
            assert await decode.waiting() == 0

        asking = asyncio.create_task(decode.ask(prefill.address))
        await until(decode.waiting)
        assert await decode.value("vllm:num_requests_waiting_by_reason", reason="deferred") == 1
        assert await decode.value("vllm:num_requests_waiting") == 1
        asking.cancel()
        await aborted(1)
        body = {"model": "adapter-003", "prompt": PROMPT, "stream": True}
        async with decode.session.post("/v1/completions", json=body, headers={HEADER: prefill.address}) as response:
            # As with vLLM, headers of a stream come before its KV.
            assert response.status == 200
        await aborted(2)


async def test_whatever_happens_nothing_is_left_behind():
    chance = random.Random(8)
    slots = PodConfig(limits=PodLimits(max_loras=2), kv_hold=60.0)
    handover = HandoverOptions(kv_latency=2.0, reserve=True)
    async with pod(Role.PREFILL, config=slots) as prefill, pod(Role.DECODE, handover, config=slots) as decode:

        async def one() -> int | None:
            await asyncio.sleep(chance.random() * 0.2)
            model, prompt = f"adapter-00{chance.randrange(6)}", f"{chance.randrange(9)} {PROMPT}"
            asking = asyncio.create_task(
                decode.ask(prefill.address, model=model, prompt=prompt, stream=chance.random() < 0.5)
            )
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() * 0.1)
                asking.cancel()
            (ended,) = await asyncio.gather(asking, return_exceptions=True)
            return None if isinstance(ended, asyncio.CancelledError) else ended.status

        async def restarts() -> None:
            for _ in range(2):
                await asyncio.sleep(0.1)
                await prefill.send("POST", "/emulator/restart")

        _, *statuses = await asyncio.gather(restarts(), *(one() for _ in range(40)))
        assert {*statuses} <= {200, None}

        async def nothing_left() -> bool:
            return not (await prefill.waiting() or await decode.waiting() or await held(prefill))

        await until(nothing_left)


# -- the adapter of the pod that decodes


@pytest.mark.parametrize("reserve", [False, True])
async def test_an_adapter_is_kept_while_another_pod_prefills(reserve):
    go_on = asyncio.Event()

    async def answer(request):
        await go_on.wait()
        return web.json_response({})

    async def there() -> bool:
        return "adapter-003" in (await decode.stats())["on_gpu"]

    two_slots = PodConfig(limits=PodLimits(max_loras=2))
    handover = HandoverOptions(reserve=reserve)
    async with pod(Role.DECODE, handover, config=two_slots) as decode, prefiller(answer) as address:
        asking = asyncio.create_task(decode.ask(address))
        if reserve:
            await until(there)
        for other in (0, 1, 2, 0, 1):
            await decode.ask(model=f"adapter-00{other}")
        # As in vLLM, whose engine knows nothing of a request that another pod prefills.
        assert await there() is reserve
        go_on.set()
        assert (await asking).headers["x-lorapick-tier"] == ("hit" if reserve else "disk")
        for other in (0, 1):
            await decode.ask(model=f"adapter-00{other}")
        assert not await there()
        assert await decode.value("lorapick_pod_reservations_broken_total") == 0


# -- what pods say of themselves


async def test_a_pod_tells_its_role(decode):
    state = (await decode.send("GET", "/emulator/state")).json
    assert (state["role"], state["labels"]) == ("decode", {"llm-d.ai/role": "decode"})
    assert await decode.value("lorapick_pod_role", role="decode") == 1


async def test_a_pod_without_part_in_it_has_no_families_of_it(prefill):
    async with pod(Role.BOTH, HandoverOptions(reserve=True)) as both:
        assert "nixl" not in (await both.send("GET", "/metrics")).text
        assert (await both.ask(prefill.address, model="nobody")).status == 404
        await both.ask(prefill.address)
        page = (await both.send("GET", "/metrics")).text
        assert "vllm:nixl_bytes_transferred_count" in page
        # What the picker's scraper reads from the end of the page is still there.
        assert page.rindex("lorapick_pod_gpu_utilization") > page.index("lorapick_pod_kv_held")
        tokens = await both.value("vllm:nixl_bytes_transferred_sum") / 131_072
        assert tokens == pytest.approx(len(PROMPT) / 4, abs=1)
        sources = await both.samples("vllm:prompt_tokens_by_source_total")
        assert {each.labels["source"]: each.value for each in sources} == {
            "local_compute": 0,
            "local_cache_hit": 0,
            "external_kv_transfer": tokens,
        }


async def test_cached_blocks_are_not_pulled_again(prefill, decode):
    size = "vllm:nixl_bytes_transferred_sum"
    before = await decode.value(size)
    await decode.ask(prefill.address)
    once = await decode.value(size)
    await decode.ask(prefill.address)
    assert await decode.value(size) - once < 0.2 * (once - before)
