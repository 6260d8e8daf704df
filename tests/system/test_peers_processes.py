"""Two pickers behind one Envoy, real pods to count loads, a real redis-server to agree through.

Without `peers` a stampede for a cold adapter that both pickers share is two loads as a rule: each loads where it finds
least to do. What is counted are the pods' own counts.
"""

import asyncio
import re

import aiohttp
import pytest
from redis_kit import RedisServer

from lorapick.testing.stack import Stack

pytestmark = [pytest.mark.system, pytest.mark.e2e, pytest.mark.timeout(150)]
CROWD = 24


@pytest.fixture
def redis(tmp_path):
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


def stack(redis):
    configuration = {"peers": {"redis": redis.url, "fleet": "test", "stale_after": "1s", "claim_timeout": "500ms"}}
    return Stack(pods=4, pickers=2, adapters=20, configuration=configuration)


async def text(session, url):
    async with session.get(url) as response:
        return await response.text()


async def sample(session, url, name):
    """Sum of a metric over its labels."""
    page = await text(session, url)
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", page, re.MULTILINE))


async def of_pickers(session, running, name):
    return [await sample(session, f"http://{place.metrics}/metrics", name) for place in running.pickers]


async def loads(session, running):
    return sum(
        [await sample(session, f"http://{pod.address}/metrics", "lorapick_pod_loads_total") for pod in running.pods]
    )


async def until(true, within=30.0):
    end = asyncio.get_running_loop().time() + within
    while not await true():
        assert asyncio.get_running_loop().time() < end, "it did not become true"
        await asyncio.sleep(0.1)


async def stampede(session, running, adapter):
    """Statuses of requests at once, and the loads that the pods count for them."""
    before = await loads(session, running)

    async def ask():
        body = {"model": adapter, "prompt": "hello", "max_tokens": 2}
        async with session.post(f"{running.endpoint}/v1/completions", json=body) as response:
            await response.read()
            return response.status

    statuses = await asyncio.gather(*[ask() for _ in range(CROWD)])
    return statuses, await loads(session, running) - before


async def test_one_stampede_over_two_pickers_is_one_load(redis):
    async with stack(redis) as running, aiohttp.ClientSession() as session:

        async def agree():
            try:
                return await of_pickers(session, running, "lorapick_peers_known") == [1.0, 1.0]
            except aiohttp.ClientError:  # one of them is being started again
                return False

        async def alone():
            return await of_pickers(session, running, "lorapick_peers_up") == [0.0, 0.0]

        await until(agree)
        for number in range(6):
            statuses, began = await stampede(session, running, f"adapter-{number:03d}")
            assert statuses == [200] * CROWD
            assert began == 1, number
        arrived = await of_pickers(session, running, "lorapick_requests_total")
        assert min(arrived) > CROWD, arrived  # both have had their share
        granted = 'lorapick_peers_claims_total{outcome="granted"}'
        assert granted in await text(session, f"http://{running.pickers[0].metrics}/metrics")

        # The store is killed in the middle of a stampede: all are served, and both pickers say so.
        asked = asyncio.create_task(stampede(session, running, "adapter-010"))
        redis.kill()
        assert (await asked)[0] == [200] * CROWD
        await until(alone)
        statuses, began = await stampede(session, running, "adapter-011")
        assert statuses == [200] * CROWD and 1 <= began <= 2
        assert sum(await of_pickers(session, running, "lorapick_peers_claims_total")) > 0

        async def alarmed():
            pages = [await text(session, f"http://{place.admin}/v1/alerts") for place in running.pickers]
            return all("peers_down" in page for page in pages)

        await until(alarmed)

        redis.start()
        await until(agree)
        statuses, began = await stampede(session, running, "adapter-012")
        assert (statuses, began) == ([200] * CROWD, 1)

        # A picker that is killed is silent, and counts for nothing soon; the next one is another peer.
        running.kill_picker(1)
        await until(agree)
