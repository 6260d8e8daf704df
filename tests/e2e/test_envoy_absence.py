"""What Envoy does without the picker's word: it is away, late, or dies. All on the real binary."""

import asyncio

import pytest
from envoy_kit import bench

from lorapick.live.envoy.counters import read_counters
from lorapick.live.processes import becomes_true

pytestmark = pytest.mark.e2e


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
        (pod,) = b.pods
        picker = await b.start_picker(destination=pod.address)
        await b.start_envoy()
        await b.served_by(headers=forged)
        line = await b.journal_has(lambda line: line["event"] == "request_headers")
        assert unwanted & set(line["headers"]) == set()
        assert "x-gateway-destination-endpoint" not in line["headers"]
        assert line["headers"]["x-request-id"] == "my-own"
        got = {name.lower(): value for name, value in pod.requests[0].items()}
        assert unwanted & set(got) == set()
        assert got["x-gateway-destination-endpoint"] == pod.address

        await picker.stop()
        await b.served_by(headers=forged)
        got = {name.lower() for name in pod.requests[1]}
        assert (unwanted | {"x-gateway-destination-endpoint"}) & got == set()


async def test_health_guides_traffic_without_a_word_and_never_overrides_the_picker():
    async with bench(pods=2) as b:
        sick, well = b.pods
        picker = await b.start_picker(destination=sick.address)
        await b.start_envoy(health_interval=0.1)
        sick.healthy = False

        async def noticed():
            return "failed_active_hc" in await b.clusters(sick.address)

        assert await becomes_true(noticed, within=5.0)
        assert await b.served_by() is sick
        await picker.stop()
        assert {await b.served_by() for _ in range(8)} == {well}


async def test_without_a_picker_buffered_mode_serves_and_counts():
    async with bench(pods=2) as b:
        await b.start_envoy()
        assert {await b.served_by() for _ in range(20)} == {*b.pods}
        counters = await read_counters(b.envoy.settings.admin)
        assert (counters.requests, counters.without_picker, counters.answers_2xx) == (20, 20, 20)


async def test_without_a_picker_duplex_mode_answers_500_whatever_failure_mode_allow_says():
    async with bench(pods=1) as b:
        await b.start_envoy(body="full_duplex_streamed")
        status, body, _ = await b.post()
        assert (status, body["error"]["type"]) == (500, "GatewayError")
        assert (await read_counters(b.envoy.settings.admin)).without_picker == 0


async def test_a_picker_that_is_too_late_is_done_without_in_buffered_mode():
    async with bench(pods=1) as b:
        await b.start_picker(destination=b.pods[0].address, hold=15.0)
        await b.start_envoy(longest_hold=-4.5)  # half a second until the message timeout
        assert await b.served_by() is b.pods[0]
        counters = await read_counters(b.envoy.settings.admin)
        assert (counters.without_picker, counters.picker_timeouts) == (1, 1)


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
