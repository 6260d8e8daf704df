"""What Envoy does with the picker's word. All on the real binary; see `test_envoy_absence.py` for no word at all."""

import asyncio
import json

import pytest
import pytest_asyncio
from envoy_kit import BODY, bench

from lorapick.live.processes import becomes_true

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["buffered", "full_duplex_streamed"])
async def either(request):
    """One Envoy, picker and four pods for many tests, in either mode."""
    async with bench(pods=4) as this:
        duplex = request.param == "full_duplex_streamed"
        await this.start_picker()
        await this.start_envoy(body=request.param, health_interval=0.1, max_body=1_000_000)

        async def renewed(**options):
            return await this.renew(duplex=duplex, **options)

        yield renewed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def buffered():
    """The same in buffered mode only."""
    async with bench(pods=4) as this:
        await this.start_picker()
        await this.start_envoy(health_interval=0.1)
        yield this.renew


async def test_the_picker_is_obeyed_and_hears_who_served(either):
    b = await either(destination=2)
    third = b.pods[2]
    assert [await b.served_by() for _ in range(5)] == [third] * 5
    line = await b.journal_has(lambda line: line["event"] == "response_headers")
    assert line["attributes"] == {"upstream.address": third.address, "response.code": 200.0}
    assert third.requests[0]["x-gateway-destination-endpoint"] == third.address
    # A request without a body is answered at its headers.
    async with b.session.get(b.url + "/v1/models") as response:
        assert (await response.json())["port"] == third.port


@pytest.mark.parametrize("more", [b"", b"host: x\r\n"])
async def test_http_1_0_is_answered(either, more):
    b = await either(destination=1)
    host, port = b.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/completions HTTP/1.0\r\n" + more + b"content-length: 2\r\n\r\n{}")
    head, _, body = (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n\r\n")
    writer.close()
    assert head.split()[:2] == [b"HTTP/1.0", b"200"]
    assert (json.loads(body)["port"], json.loads(body)["bytes"]) == (b.pods[1].port, 2)


async def test_a_path_that_manages_a_pod_is_refused_in_the_openai_form(either):
    b = await either(destination=0)
    status, body, headers = await b.post("/v1/load_lora_adapter")
    assert (status, headers["x-lorapick-reason"], headers["content-type"]) == (403, "path_refused", "application/json")
    assert body["error"] == {
        "message": "this path manages one pod; ask that pod itself, not the gateway",
        "type": "ForbiddenError",
        "param": None,
        "code": 403,
    }


async def test_a_refusal_of_the_picker_reaches_the_client_as_it_is(either):
    b = await either(reject=429)
    status, body, headers = await b.post()
    assert (status, body) == (429, {"error": {"message": "refused by the picker"}})
    assert (headers["x-lorapick-reason"], headers["content-type"]) == ("shed", "application/json")
    assert [pod.requests for pod in b.pods] == [[]] * 4


async def test_the_stream_ends_with_the_answer(either):
    b = await either(destination=0)
    async with b.session.post(b.url + "/stream", data=b"{}") as response:
        await response.read()
    # EOF or a cancelled call: both occur, and both mean that the HTTP stream is over.
    end = await b.journal_has(lambda line: line["event"] == "end")
    headers = await b.journal_has(lambda line: line["event"] == "response_headers")
    assert end["t"] - headers["t"] > 0.4, "ended before the answer did"
    assert all(line["event"] != "response_body" for line in b.journal())


async def test_the_stream_ends_with_the_client(either):
    b = await either(destination=0)
    async with b.session.post(b.url + "/stream", data=b"{}") as response:
        await response.content.read(5)
        response.close()
    await b.journal_has(lambda line: line["event"] == "end")

    async def pod_saw_it():
        return b.pods[0].aborted == 1

    assert await becomes_true(pod_saw_it, within=5.0)


async def test_a_client_that_leaves_while_it_is_held_ends_the_stream(either):
    b = await either(destination=0, hold=20.0)
    request = asyncio.create_task(b.post())
    await b.journal_has(lambda line: line["event"] == "request_body" and line["eos"])
    request.cancel()
    await asyncio.wait({request})
    await b.journal_has(lambda line: line["event"] == "end")
    assert b.pods[0].requests == []


async def test_large_bodies_arrive_whole_even_at_a_fallback(either):
    b = await either(destination=[0, 1])
    for size in (300_000, 1_000_000, 1_900_000):
        status, body, _ = await b.post(data=b"x" * size)
        assert (status, body["bytes"], body["port"]) == (200, size, b.pods[0].port)
    await b.pods[0].stop()
    status, body, _ = await b.post(data=b"x" * 1_900_000)
    assert (status, body["bytes"], body["port"]) == (200, 1_900_000, b.pods[1].port)


async def test_the_metadata_decides_and_not_the_header(buffered):
    b = await buffered(destination=0, source="metadata")
    assert {await b.served_by() for _ in range(4)} == {b.pods[0]}
    b = await buffered(destination=0, source="header")
    assert len({await b.served_by() for _ in range(40)}) > 1


async def test_a_refused_connection_goes_to_the_fallbacks_in_order_then_to_any_healthy_pod(buffered):
    b = await buffered(destination=[0, 1, 2])
    first, second, third, fourth = b.pods
    await first.stop()
    assert await b.served_by() is second
    line = await b.journal_has(lambda line: line["event"] == "response_headers")
    assert line["attributes"]["upstream.address"] == second.address
    await second.stop()
    assert await b.served_by() is third
    await third.stop()
    assert await b.served_by() is fourth
    await fourth.stop()
    status, body, headers = await b.post()
    assert (status, body["error"]["type"]) == (503, "ServiceUnavailableError")
    assert "connect" in body["error"]["message"]
    assert (headers["x-lorapick-reason"], headers["retry-after"]) == ("no_pod", "1")


async def test_an_answer_that_is_an_error_is_passed_on_once(buffered):
    b = await buffered(destination=[0, 1])
    status, body, _ = await b.post(headers={"answer-status": "503"})
    assert (status, body["port"]) == (503, b.pods[0].port)
    assert [len(pod.requests) for pod in b.pods] == [1, 0, 0, 0]


async def test_a_pod_that_breaks_off_is_not_followed_by_another(buffered):
    async def break_off(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    b = await buffered()
    async with await asyncio.start_server(break_off, "127.0.0.1", 0) as breaker:
        host, port = breaker.sockets[0].getsockname()
        b.envoy.set_endpoints([f"{host}:{port}", b.pods[0].address])
        b.tell_picker(destination=f"{host}:{port},{b.pods[0].address}")

        async def breaks():
            return (await b.post())[0] == 503

        assert await becomes_true(breaks, within=5.0)
        b.pods[0].requests.clear()
        status, body, headers = await b.post()
    assert (status, body["error"]["type"]) == (503, "GatewayError")
    assert "x-lorapick-reason" not in headers
    assert b.pods[0].requests == []


@pytest.mark.parametrize("stage", ["headers", "prefill"])
async def test_a_pod_lost_while_another_prefills_is_followed_by_the_fallbacks(either, stage):
    async def break_off(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        if stage == "prefill":
            await asyncio.sleep(0.1)
        writer.transport.abort()

    b = await either()
    async with await asyncio.start_server(break_off, "127.0.0.1", 0) as breaker:
        host, port = breaker.sockets[0].getsockname()
        b.envoy.set_endpoints([f"{host}:{port}", *(pod.address for pod in b.pods)])
        destination = f"{host}:{port},{b.pods[1].address},{b.pods[2].address}"
        b.tell_picker(destination=destination, prefiller=b.pods[2].address, duplex=b.duplex)

        async def is_known():
            return (await b.clusters(f"{host}:{port}")) != ""

        assert await becomes_true(is_known, within=5.0)
        for pod in b.pods:
            pod.requests.clear()
        status, body, _ = await b.post(headers={"x-prefiller-host-port": "169.254.169.254:80"})
        assert (status, body["port"], body["bytes"]) == (200, b.pods[1].port, len(json.dumps(BODY)))
        assert b.pods[1].requests[0]["x-prefiller-host-port"] == b.pods[2].address
        await b.pods[1].stop()
        assert await b.served_by() is b.pods[2], "where it is prefilled, at last"
        line = await b.journal_has(lambda line: line["event"] == "response_headers")
        assert line["attributes"]["upstream.address"] == b.pods[1].address


async def test_pods_come_and_go_without_a_restart(buffered):
    b = await buffered(destination=1)
    old, new, *_ = b.pods
    pid = b.envoy.pid

    async def goes_to_new():
        return await b.served_by() is new

    async def goes_to_old():
        return await b.served_by() is old

    b.envoy.set_endpoints([old.address])
    # The picker names a pod that Envoy does not know: another serves.
    assert await becomes_true(goes_to_old, within=5.0)
    b.envoy.set_endpoints([old.address, new.address])
    assert await becomes_true(goes_to_new, within=5.0)
    b.envoy.set_endpoints([old.address])
    assert await becomes_true(goes_to_old, within=5.0)
    assert b.envoy.pid == pid


async def test_http2_with_prior_knowledge_is_spoken(buffered):
    b = await buffered()
    host, port = b.envoy.settings.listen.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
    header = await asyncio.wait_for(reader.readexactly(9), 5)
    assert header[3] == 4, "a SETTINGS frame comes back"
    writer.close()


async def test_a_body_that_envoy_cannot_hold_is_413_in_words_and_the_log_names_requests():
    async with bench(pods=1) as b:
        await b.start_picker(destination=b.pods[0].address)
        await b.start_envoy(max_body=100_000)
        status, body, headers = await b.post(data=b"x" * 3_000_000, headers={"x-request-id": "r-1"})
        assert (status, headers["x-lorapick-reason"]) == (413, "body_too_large")
        assert body["error"] == {
            "message": "Payload Too Large",
            "type": "RequestTooLargeError",
            "param": None,
            "code": 413,
        }
        await b.post(headers={"x-request-id": "r-2"})
        await b.envoy.stop()
        rows = [json.loads(line) for line in (b.directory / "access.log").read_text().splitlines()]
        assert [(row["request_id"], row["pod"], row["status"]) for row in rows] == [
            ("r-1", None, 413),
            ("r-2", b.pods[0].address, 200),
        ]


@pytest.mark.parametrize("mode", ["buffered", "full_duplex_streamed"])
async def test_answers_are_shown_to_the_picker_when_it_observes_bodies(mode):
    async with bench(pods=1) as b:
        await b.start_picker(duplex=mode == "full_duplex_streamed", destination=b.pods[0].address)
        await b.start_envoy(body=mode, observe="bodies")
        async with b.session.post(b.url + "/stream", data=b"{}") as response:
            text = await response.read()
        await b.journal_has(lambda line: line["event"] == "end")
        shown = [line for line in b.journal() if line["event"] == "response_body"]
        assert sum(line["bytes"] for line in shown) == len(text)
        assert shown[-1]["eos"]
