"""Prefill on one pod, decode on another, over real sockets: both steps, and everything that can go wrong in them."""

import asyncio
import json

import openai
import pytest
from aiohttp import web
from sidecar_kit import HEADER, HELD, PROMPT, Pod, pair, pod, prefiller, until

from lorapick.live.addresses import free_ports
from lorapick.live.podserver.options import HandoverOptions
from lorapick.model.pods import Role
from lorapick.pod.values import PodConfig

MESSAGES = [{"role": "user", "content": PROMPT}]
BODIES = {
    "/v1/completions": {"prompt": PROMPT},
    "/v1/chat/completions": {"messages": MESSAGES},
    "/v1/responses": {"input": PROMPT, "max_output_tokens": 5},
}


# -- both steps


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BODIES)
async def test_a_request_is_prefilled_on_one_pod_and_decoded_on_the_other(path, stream):
    async with pair() as (prefill, decode):
        alone = await prefill.ask(path=path, stream=stream, **BODIES[path])
        answer = await decode.ask(prefill.address, path=path, stream=stream, **BODIES[path])
        assert answer.status == 200
        assert said(answer, stream) == said(alone, stream) != ""
        assert answer.headers["x-lorapick-prefiller"] == prefill.address
        assert answer.headers["x-lorapick-pod"] == "pod-0"
        assert "x-lorapick-local-prefill" not in answer.headers
        here, there = await decode.stats(), await prefill.stats()
        assert here["time"]["prefill"] == 0
        assert there["time"]["prefill"] > 0
        assert there["kv_held"] == 0
        assert await decode.by_label("lorapick_pod_kv_transfers_total", "result") == {"ok": 1}
        assert await prefill.by_label("lorapick_pod_kv_releases_total", "result") == {"released": 1}


def said(answer, stream):
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


async def test_with_the_openai_client():
    async with pair() as (prefill, decode):
        url, headers = f"http://{decode.address}/v1", {HEADER: prefill.address}
        async with openai.AsyncOpenAI(base_url=url, api_key="-", default_headers=headers, max_retries=0) as client:
            stream = await client.chat.completions.create(
                model="adapter-001",
                messages=MESSAGES,
                max_tokens=7,
                stream=True,
                stream_options={"include_usage": True},
            )
            chunks = [chunk async for chunk in stream]
        assert chunks[-1].usage.completion_tokens == 7
        assert (await decode.stats())["time"]["prefill"] == 0


async def test_what_the_prefiller_is_asked():
    seen = []

    async def answer(request):
        seen.append((request.path_qs, request.headers, await request.json()))
        return web.json_response({"kv_transfer_params": None})

    async with pod(Role.DECODE) as decode, prefiller(answer) as address:
        headers = {HEADER: f" http://{address} , 10.0.0.1:1", "x-request-id": "one", "x-encoder-hosts-ports": "a:1,b:2"}
        body = {"model": "base", "messages": MESSAGES, "max_tokens": 9, "min_tokens": 3, "temperature": 0.5}
        more = {"stream": True, "stream_options": {"include_usage": True}}
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


async def test_both_steps_have_one_request_id():
    ids = []

    async def answer(request):
        ids.append(request.headers["x-request-id"])
        return web.json_response({})

    async with pod(Role.DECODE) as decode, prefiller(answer) as address:
        answered = await decode.ask(address)
    assert answered.json["id"] == f"cmpl-{ids[0]}"


async def test_cached_tokens_are_those_of_the_prefiller():
    async with pair() as (prefill, decode):
        first = await decode.ask(prefill.address)
        again = await decode.ask(prefill.address)
    assert first.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert again.json["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


async def test_another_sidecar_may_make_the_steps():
    async with pair(HandoverOptions(sidecar=False)) as (prefill, decode):
        assert "x-lorapick-prefiller" not in (await decode.ask(prefill.address)).headers
        ask = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None}
        first = await prefill.ask(max_tokens=1, kv_transfer_params=ask)
        params = first.json["kv_transfer_params"]
        tokens = first.json["usage"]["prompt_tokens"]
        assert params["do_remote_prefill"] and not params["do_remote_decode"]
        assert f"{params['remote_host']}:{params['remote_port']}" == prefill.address
        assert params["remote_num_tokens"] == tokens
        assert len(params["remote_block_ids"][0]) == -(-tokens // 16)
        assert (await prefill.stats())["kv_held"] == 1
        before = (await decode.stats())["time"]["prefill"]
        # Another prompt than that of the first request, whose blocks are cached by now, would be refused.
        second = await decode.ask(kv_transfer_params=params)
        assert second.status == 200
        assert (await decode.stats())["time"]["prefill"] == before


# -- what may be asked


@pytest.mark.parametrize(
    "value", ["pod-7:8000", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", "::1:8000", "169.254.169.254/x:80", "a b"]
)
async def test_a_prefiller_is_an_address(value):
    async with pod(Role.DECODE) as decode:
        answer = await decode.ask(value)
        assert answer.status == 400
        assert "send ip:port" in answer.json["error"]["message"]


async def test_only_listed_prefillers_are_asked():
    async with pair(HandoverOptions(prefillers=("127.0.0.1:1",))) as (prefill, decode):
        answer = await decode.ask(prefill.address)
        assert (answer.status, answer.json["error"]["type"]) == (403, "Forbidden")
        assert (await prefill.stats())["finished"] == 0
        pulled = await decode.ask(kv_transfer_params=HELD | {"remote_host": "127.0.0.1", "remote_port": 2})
        assert (pulled.status, pulled.headers["x-lorapick-kv-refused"]) == (403, "kv_forbidden")


async def test_an_empty_header_names_nobody():
    async with pod(Role.DECODE) as decode:
        answer = await decode.ask("")
        assert answer.status == 200
        assert await decode.local_prefills() == {}


async def test_a_body_that_is_none_is_refused_by_the_pod():
    async with pod(Role.DECODE) as decode:
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
    assert (await decode.stats())["time"]["prefill"] > 0
    reasons = await decode.local_prefills()
    assert answer.headers["x-lorapick-local-prefill"] in reasons
    return reasons


async def test_nobody_listens():
    async with pod(Role.DECODE) as decode:
        address = f"127.0.0.1:{free_ports(1)[0]}"
        assert await fall_back(decode, address) == {"prefiller_unreachable": 1}


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
    ],
)
async def test_the_prefiller_answers_badly(status, text, reason):
    async def answer(request):
        headers = {"location": "/elsewhere"} if status == 302 else None
        return web.Response(status=status, text=text, headers=headers)

    async with pod(Role.DECODE) as decode, prefiller(answer) as address:
        assert await fall_back(decode, address) == {reason: 1}


async def test_the_prefiller_answers_too_late():
    async def answer(request):
        await asyncio.sleep(20)

    async with pod(Role.DECODE, HandoverOptions(prefill_timeout=0.05)) as decode, prefiller(answer) as address:
        assert await fall_back(decode, address) == {"prefiller_timeout": 1}


async def test_the_prefiller_breaks_off():
    async def answer(request):
        response = web.StreamResponse(headers={"content-length": "100"})
        await response.prepare(request)
        await response.write(b"{")
        request.transport.close()
        return response

    async with pod(Role.DECODE) as decode, prefiller(answer) as address:
        assert await fall_back(decode, address) == {"prefiller_unreachable": 1}


async def test_what_the_prefiller_holds_against_the_request_is_for_the_client():
    async with pair() as (prefill, decode):
        answer = await decode.ask(prefill.address, model="nobody")
        assert answer.status == 404
        assert "does not exist" in answer.json["error"]["message"]
        assert await decode.by_label("lorapick_pod_prefill_requests_total", "result") == {"refused": 1}
        assert await decode.local_prefills() == {}


# -- the KV is not what it should be


async def test_kv_of_another_adapter_is_refused_and_computed_here():
    async with pair() as (prefill, decode):

        async def answer(request):
            body = await request.json() | {"model": "adapter-005"}
            async with prefill.session.post(request.path, json=body) as response:
                return web.Response(body=await response.read())

        async with prefiller(answer) as address:
            assert await fall_back(decode, address) == {"kv_mismatch": 1}
        right = await prefill.ask()
        assert (await decode.ask()).json["choices"] == right.json["choices"]
        await until_released(prefill)


async def until_released(prefill: Pod) -> None:
    async def released() -> bool:
        return (await prefill.stats())["kv_held"] == 0

    await until(released)


async def test_kv_of_another_adapter_is_refused_with_words():
    async with pair() as (prefill, decode):
        first = await prefill.ask(max_tokens=1, kv_transfer_params={"do_remote_decode": True})
        params = first.json["kv_transfer_params"]
        answer = await decode.ask(model="adapter-004", kv_transfer_params=params)
        assert (answer.status, answer.headers["x-lorapick-kv-refused"]) == (409, "kv_mismatch")
        words = "its KV was computed under adapter 'adapter-003' and the request asks for adapter 'adapter-004'"
        assert words in answer.json["error"]["message"]
        await until_released(prefill)


async def test_kv_is_pulled_once():
    async with pair() as (prefill, decode):
        first = await prefill.ask(max_tokens=1, kv_transfer_params={"do_remote_decode": True})
        params = first.json["kv_transfer_params"]
        assert (await decode.ask(kv_transfer_params=params)).status == 200
        again = await decode.ask(kv_transfer_params=params)
        assert (again.status, again.headers["x-lorapick-kv-refused"]) == (404, "kv_unknown")


async def test_kv_of_a_pod_that_restarted_is_gone():
    async with pair() as (prefill, decode):

        async def answer(request):
            async with prefill.session.post(request.path, json=await request.json()) as response:
                body = await response.read()
            await prefill.send("POST", "/emulator/restart")
            return web.Response(body=body)

        async with prefiller(answer) as address:
            assert await fall_back(decode, address) == {"kv_unknown": 1}
        assert await prefill.by_label("lorapick_pod_kv_releases_total", "result") == {"lost": 1}


async def test_kv_that_nobody_pulls_expires():
    async with pod(Role.PREFILL, config=PodConfig(kv_hold=20.0)) as prefill, pod(Role.DECODE) as decode:
        first = await prefill.ask(max_tokens=1, kv_transfer_params={"do_remote_decode": True})
        await until_released(prefill)
        assert await prefill.by_label("lorapick_pod_kv_releases_total", "result") == {"expired": 1}
        assert await prefill.count("vllm:nixl_num_kv_expired_reqs_total") == 1
        late = await decode.ask(kv_transfer_params=first.json["kv_transfer_params"])
        assert late.headers["x-lorapick-kv-refused"] == "kv_unknown"


async def test_the_prefill_pod_dies_between_the_steps():
    async def answer(request):
        params = HELD | {"remote_host": "127.0.0.1", "remote_port": free_ports(1)[0]}
        return web.json_response({"kv_transfer_params": params})

    async with pod(Role.DECODE) as decode, prefiller(answer) as address:
        assert await fall_back(decode, address) == {"kv_unreachable": 1}


@pytest.mark.parametrize("stream", [False, True])
async def test_the_prefill_pod_dies_during_the_transfer(stream):
    slow = HandoverOptions(kv_latency=20.0)
    async with pod(Role.DECODE, slow) as decode:
        async with pod(Role.PREFILL) as prefill:
            asking = asyncio.create_task(decode.ask(prefill.address, stream=stream))

            async def transferring() -> bool:
                return (await decode.send("GET", "/load")).json["server_load"] == 1

            await until(transferring)
            await prefill.send("POST", "/emulator/restart")
            answer = await asking
        assert answer.status == 200
        assert said(answer, stream)
        assert await decode.local_prefills() == {"kv_lost": 1}
        assert await decode.count("vllm:nixl_num_failed_transfers_total") == 1
        assert (await decode.stats())["time"]["prefill"] > 0


async def test_params_that_lack_something_are_computed_here():
    async with pod(Role.DECODE) as decode:
        answer = await decode.ask(kv_transfer_params={"do_remote_prefill": True})
        assert answer.status == 200
        assert await decode.local_prefills() == {"kv_incomplete": 1}


@pytest.mark.parametrize(
    "params", [{"do_remote_decode": True, "do_remote_prefill": True}, {"do_remote_decode": "yes"}, {"remote_port": 1.5}]
)
async def test_params_that_make_no_sense_are_refused(params):
    async with pod(Role.DECODE) as decode:
        answer = await decode.ask(kv_transfer_params=params)
        assert (answer.status, answer.json["error"]["param"]) == (400, "kv_transfer_params")


async def test_a_prefill_has_one_token():
    async with pod(Role.PREFILL) as prefill:
        answer = await prefill.ask(max_tokens=2, kv_transfer_params={"do_remote_decode": True})
        assert answer.status == 400


# -- the client leaves


async def test_the_client_leaves_during_the_prefill():
    async with pod(Role.PREFILL, speed=0.01) as prefill, pod(Role.DECODE) as decode:
        asking = asyncio.create_task(decode.ask(prefill.address))

        async def waits_there() -> bool:
            return (await prefill.send("GET", "/load")).json["server_load"] == 1

        async def gone() -> bool:
            return not await waits_there()

        await until(waits_there)
        asking.cancel()
        await until(gone)

        async def counted() -> bool:
            results = await decode.by_label("lorapick_pod_prefill_requests_total", "result")
            return results == {"client_gone": 1}

        await until(counted)
        assert (await decode.stats())["finished"] == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_the_client_leaves_during_the_transfer(stream):
    slow = HandoverOptions(kv_latency=10_000.0)
    async with pair(slow) as (prefill, decode):
        asking = asyncio.create_task(decode.ask(prefill.address, stream=stream))

        async def transferring() -> bool:
            return (await decode.send("GET", "/load")).json["server_load"] == 1

        await until(transferring)
        asking.cancel()
        await until_released(prefill)

        async def counted() -> bool:
            return await decode.by_label("lorapick_pod_kv_transfers_total", "result") == {"aborted": 1}

        await until(counted)
        assert (await decode.send("GET", "/load")).json["server_load"] == 0


async def test_headers_of_a_stream_come_before_its_kv():
    slow = HandoverOptions(kv_latency=10_000.0)
    async with pair(slow) as (prefill, decode):
        body = {"model": "adapter-003", "prompt": PROMPT, "stream": True}
        call = decode.session.post("/v1/completions", json=body, headers={HEADER: prefill.address})
        async with call as response:
            assert response.status == 200


# -- what pods say of themselves


async def test_a_pod_tells_its_role():
    async with pod(Role.DECODE) as decode:
        assert (await decode.send("GET", "/emulator/state")).json["role"] == "decode"
        assert await decode.count("lorapick_pod_role", role="decode") == 1


async def test_a_pod_without_part_in_it_has_no_families_of_it():
    async with pod(Role.BOTH) as both, pod(Role.PREFILL) as prefill:
        assert "nixl" not in (await both.send("GET", "/metrics")).text
        await both.ask(prefill.address)
        assert await both.count("vllm:nixl_bytes_transferred_count") == 1
        tokens = await both.count("vllm:nixl_bytes_transferred_sum") / 131_072
        assert tokens == pytest.approx(len(PROMPT) / 4, abs=1)


async def test_cached_blocks_are_not_pulled_again():
    async with pair() as (prefill, decode):
        await decode.ask(prefill.address)
        once = await decode.count("vllm:nixl_bytes_transferred_sum")
        await decode.ask(prefill.address)
        assert await decode.count("vllm:nixl_bytes_transferred_sum") < 1.2 * once


async def test_many_at_once():
    async with pair() as (prefill, decode):
        answers = await asyncio.gather(
            *(decode.ask(prefill.address, model=f"adapter-00{n % 6}", prompt=f"{n} {PROMPT}") for n in range(30))
        )
        assert {answer.status for answer in answers} == {200}
        assert await decode.local_prefills() == {}
        assert (await prefill.stats())["kv_held"] == 0
