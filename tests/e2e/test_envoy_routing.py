"""What Envoy does with the picker's word, and with requests that have none. All on the real binary."""

import asyncio
import json

import pytest
from envoy_kit import bench

from lorapick.live.envoy.counters import read_counters
from lorapick.live.processes import becomes_true

pytestmark = pytest.mark.e2e
MODES = ("buffered", "full_duplex_streamed")


async def served_by(bench_, **request):
    status, body, _ = await bench_.post(**request)
    assert status == 200, body
    return body["port"]


def picker_options(mode, **options):
    return {"duplex": mode == "full_duplex_streamed", **options}


@pytest.mark.parametrize("mode", MODES)
async def test_the_picker_is_obeyed_and_hears_who_served(mode):
    async with bench(pods=3) as b:
        third = b.pods[2]
        await b.start_picker(**picker_options(mode, destination=third.address))
        await b.start_envoy(body=mode)
        assert [await served_by(b) for _ in range(5)] == [third.port] * 5
        line = await b.journal_has(lambda line: line["event"] == "response_headers")
        assert line["attributes"] == {"upstream.address": third.address, "response.code": 200.0}
        assert third.requests[0]["x-gateway-destination-endpoint"] == third.address
        # A request without a body is answered at its headers.
        async with b.session.get(b.url + "/v1/models") as response:
            assert (await response.json())["port"] == third.port


async def test_the_metadata_decides_and_not_the_header():
    async with bench(pods=3) as b:
        await b.start_picker(destination=b.pods[0].address, source="metadata")
        await b.start_envoy()
        assert {await served_by(b) for _ in range(4)} == {b.pods[0].port}


async def test_routing_headers_of_clients_are_removed_whether_or_not_a_picker_is_there():
    forged = {
        "X-Gateway-Destination-Endpoint": "127.0.0.1:1",
        "x-gateway-destination-endpoint-subset": "127.0.0.1",
        "x-gateway-destination-endpoint-served": "127.0.0.1:1",
        "x-prefiller-host-port": "127.0.0.1:1",
        "x-encoder-hosts-ports": "127.0.0.1:1",
        "x-data-parallel-host-port": "127.0.0.1:1",
        "x-lorapick-reason": "shed",
        "x-envoy-max-retries": "0",
        "x-envoy-upstream-rq-timeout-ms": "1",
        "x-request-id": "my-own",
    }
    unwanted = {name.lower() for name in forged} - {"x-request-id", "x-gateway-destination-endpoint"}
    async with bench(pods=1) as b:
        pod = b.pods[0]
        picker = await b.start_picker(destination=pod.address)
        await b.start_envoy()
        await served_by(b, headers=forged)
        line = await b.journal_has(lambda line: line["event"] == "request_headers")
        assert unwanted & set(line["headers"]) == set()
        assert "x-gateway-destination-endpoint" not in line["headers"]
        assert line["headers"]["x-request-id"] == "my-own"
        got = {name.lower(): value for name, value in pod.requests[0].items()}
        assert unwanted & set(got) == set()
        assert got["x-gateway-destination-endpoint"] == pod.address

        await picker.stop()
        await served_by(b, headers=forged)
        got = {name.lower() for name in pod.requests[1]}
        assert (unwanted | {"x-gateway-destination-endpoint"}) & got == set()


async def test_a_refused_connection_goes_to_the_fallbacks_in_order_then_to_any_healthy_pod():
    async with bench(pods=4) as b:
        first, second, third, fourth = b.pods
        await b.start_picker(destination=f"{first.address},{second.address},{third.address}")
        await b.start_envoy()
        await first.stop()
        assert await served_by(b) == second.port
        line = await b.journal_has(lambda line: line["event"] == "response_headers")
        assert line["attributes"]["upstream.address"] == second.address
        await second.stop()
        assert await served_by(b) == third.port
        await third.stop()
        assert await served_by(b) == fourth.port
        await fourth.stop()
        status, body, headers = await b.post()
        assert (status, body["error"]["type"]) == (503, "ServiceUnavailableError")
        assert "connect" in body["error"]["message"]
        assert (headers["x-lorapick-reason"], headers["retry-after"]) == ("no_pod", "1")


async def test_an_answer_that_is_an_error_is_passed_on_once():
    async with bench(pods=2) as b:
        await b.start_picker(destination=f"{b.pods[0].address},{b.pods[1].address}")
        await b.start_envoy()
        status, body, _ = await b.post(headers={"answer-status": "503"})
        assert (status, body["port"]) == (503, b.pods[0].port)
        assert [len(pod.requests) for pod in b.pods] == [1, 0]


async def test_a_pod_that_breaks_off_is_not_followed_by_another():
    async def break_off(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async with bench(pods=1) as b:
        breaker = await asyncio.start_server(break_off, "127.0.0.1", 0)
        async with breaker:
            host, port = breaker.sockets[0].getsockname()
            await b.start_picker(destination=f"{host}:{port},{b.pods[0].address}")
            await b.start_envoy(addresses=[f"{host}:{port}", b.pods[0].address])
            status, body, headers = await b.post()
        assert (status, body["error"]["type"]) == (503, "GatewayError")
        assert "x-lorapick-reason" not in headers
        assert b.pods[0].requests == []


async def test_a_picker_that_is_too_late_is_done_without_in_buffered_mode():
    async with bench(pods=1) as b:
        await b.start_picker(destination=b.pods[0].address, hold=15.0)
        await b.start_envoy(longest_hold=-4.5)  # half a second until the message timeout
        assert await served_by(b) == b.pods[0].port
        counters = await read_counters(b.envoy.settings.admin)
        assert (counters.without_picker, counters.picker_timeouts) == (1, 1)


async def test_health_guides_traffic_without_a_word_and_never_overrides_the_picker():
    async with bench(pods=2) as b:
        sick, well = b.pods
        picker = await b.start_picker(destination=sick.address)
        await b.start_envoy(health_interval=0.1)
        sick.healthy = False

        async def noticed():
            return "failed_active_hc" in await b.clusters(sick.address)

        assert await becomes_true(noticed, within=5.0)
        assert await served_by(b) == sick.port
        await picker.stop()
        assert {await served_by(b) for _ in range(8)} == {well.port}


async def test_without_a_picker_buffered_mode_serves_and_counts():
    async with bench(pods=2) as b:
        await b.start_envoy()
        assert {await served_by(b) for _ in range(20)} == {pod.port for pod in b.pods}
        counters = await read_counters(b.envoy.settings.admin)
        assert (counters.requests, counters.without_picker, counters.answers_2xx) == (20, 20, 20)


async def test_without_a_picker_duplex_mode_answers_500_whatever_failure_mode_allow_says():
    async with bench(pods=1) as b:
        await b.start_envoy(body="full_duplex_streamed")
        status, body, _ = await b.post()
        assert (status, body["error"]["type"]) == (500, "GatewayError")
        assert (await read_counters(b.envoy.settings.admin)).without_picker == 0


async def test_a_picker_killed_under_load_costs_nobody_an_error():
    async with bench(pods=2) as b:
        picker = await b.start_picker(destination=b.pods[0].address)
        await b.start_envoy()
        statuses = []
        left = iter(range(800))

        async def client():
            statuses.extend([(await b.post())[0] for _ in left])

        clients = [asyncio.create_task(client()) for _ in range(8)]
        await asyncio.sleep(0.3)
        picker.kill()
        await asyncio.sleep(0.3)
        await b.start_picker(destination=b.pods[0].address)
        await asyncio.gather(*clients)
        assert {*statuses} == {200}
        assert len(statuses) == 800
        assert (await read_counters(b.envoy.settings.admin)).without_picker > 0


async def test_two_pickers_in_duplex_mode_cover_for_each_other():
    async with bench(pods=1) as b:
        for number in (0, 1):
            await b.start_picker(number, duplex=True, destination=b.pods[0].address)
        await b.start_envoy(pickers=2, body="full_duplex_streamed")
        assert {(await b.post())[0] for _ in range(6)} == {200}
        assert all(b.journal(number) for number in (0, 1))
        b.pickers[0].kill()
        assert {(await b.post())[0] for _ in range(100)} == {200}


@pytest.mark.parametrize("mode", MODES)
async def test_a_refusal_of_the_picker_reaches_the_client_as_it_is(mode):
    async with bench(pods=1) as b:
        await b.start_picker(**picker_options(mode, reject=429))
        await b.start_envoy(body=mode)
        status, body, headers = await b.post()
        assert (status, body) == (429, {"error": {"message": "refused by the picker"}})
        assert (headers["x-lorapick-reason"], headers["content-type"]) == ("shed", "application/json")
        assert b.pods[0].requests == []


@pytest.mark.parametrize("mode", MODES)
async def test_the_stream_ends_with_the_answer_or_with_the_client(mode):
    async with bench(pods=1) as b:
        await b.start_picker(**picker_options(mode, destination=b.pods[0].address))
        await b.start_envoy(body=mode)
        async with b.session.post(b.url + "/stream", data=b"{}") as response:
            await response.read()
        # EOF or a cancelled call: both occur, and both mean that the HTTP stream is over.
        end = await b.journal_has(lambda line: line["event"] == "end" and line["stream"] == 1)
        headers = next(line for line in b.journal() if line["event"] == "response_headers")
        assert end["t"] - headers["t"] > 0.4, "ended before the answer did"

        async with b.session.post(b.url + "/stream", data=b"{}") as response:
            await response.content.read(5)
            response.close()
        end = await b.journal_has(lambda line: line["event"] == "end" and line["stream"] == 2)
        headers = [line for line in b.journal() if line["event"] == "response_headers"][-1]
        assert end["t"] - headers["t"] < 0.4, "the client's leaving was not seen before the answer's end"

        async def pod_saw_it():
            return b.pods[0].aborted == 1

        assert await becomes_true(pod_saw_it, within=5.0)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_leaves_while_it_is_held_ends_the_stream(mode):
    async with bench(pods=1) as b:
        await b.start_picker(**picker_options(mode, destination=b.pods[0].address, hold=20.0))
        await b.start_envoy(body=mode)
        request = asyncio.create_task(b.post())
        await b.journal_has(lambda line: line["event"] == "request_body" and line["eos"])
        request.cancel()
        await asyncio.wait({request})
        await b.journal_has(lambda line: line["event"] == "end")
        assert b.pods[0].requests == []


@pytest.mark.parametrize("mode", MODES)
async def test_large_bodies_arrive_whole(mode):
    async with bench(pods=1) as b:
        await b.start_picker(**picker_options(mode, destination=b.pods[0].address))
        await b.start_envoy(body=mode, max_body=1_000_000)
        for size in (300_000, 1_000_000, 1_900_000):
            status, body, _ = await b.post(data=b"x" * size)
            assert (status, body["bytes"]) == (200, size)


async def test_a_body_that_envoy_cannot_hold_is_413_in_words():
    async with bench(pods=1) as b:
        await b.start_picker(destination=b.pods[0].address)
        await b.start_envoy(max_body=100_000)
        status, body, headers = await b.post(data=b"x" * 3_000_000)
        assert (status, headers["x-lorapick-reason"]) == (413, "body_too_large")
        assert body["error"] == {
            "message": "Payload Too Large",
            "type": "RequestTooLargeError",
            "param": None,
            "code": 413,
        }


@pytest.mark.parametrize("mode", MODES)
async def test_answers_are_shown_to_the_picker_when_it_observes_bodies(mode):
    async with bench(pods=1) as b:
        await b.start_picker(**picker_options(mode, destination=b.pods[0].address))
        await b.start_envoy(body=mode, observe="bodies")
        async with b.session.post(b.url + "/stream", data=b"{}") as response:
            text = await response.read()
        await b.journal_has(lambda line: line["event"] == "end")
        shown = [line for line in b.journal() if line["event"] == "response_body"]
        assert sum(line["bytes"] for line in shown) == len(text)
        assert shown[-1]["eos"]


async def test_pods_come_and_go_without_a_restart():
    async with bench(pods=2) as b:
        old, new = b.pods
        await b.start_picker(destination=new.address)
        await b.start_envoy(addresses=[old.address])
        pid = b.envoy.pid
        # The picker names a pod that Envoy has not heard of yet: some other pod serves.
        assert await served_by(b) == old.port
        b.envoy.set_endpoints([old.address, new.address])

        async def moved():
            return await served_by(b) == new.port

        assert await becomes_true(moved, within=5.0)
        b.envoy.set_endpoints([old.address])

        async def moved_back():
            return await served_by(b) == old.port

        assert await becomes_true(moved_back, within=5.0)
        assert b.envoy.pid == pid


async def test_http2_with_prior_knowledge_is_spoken():
    async with bench(pods=1) as b:
        await b.start_envoy()
        host, port = b.envoy.settings.listen.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
        header = await asyncio.wait_for(reader.readexactly(9), 5)
        assert header[3] == 4, "a SETTINGS frame comes back"
        writer.close()


async def test_the_access_log_names_request_and_pod():
    async with bench(pods=1) as b:
        await b.start_picker(destination=b.pods[0].address)
        await b.start_envoy()
        await served_by(b, headers={"x-request-id": "r-1"})
        await b.envoy.stop()
        row = json.loads((b.directory / "access.log").read_text())
        assert (row["request_id"], row["pod"], row["status"]) == ("r-1", b.pods[0].address, 200)
