"""One kind of objects, followed through whatever a server may answer."""

import asyncio
import contextlib

import pytest
from cluster_kit import pod, until
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.live.kubernetes import watching
from lorapick.live.kubernetes.access import Access
from lorapick.live.kubernetes.client import ApiError, Client
from lorapick.live.kubernetes.counts import KubernetesCounts
from lorapick.live.kubernetes.watching import Kind, Watching
from lorapick.testing.apiserver import ApiServer

PATH = "/api/v1/namespaces/default/pods"


@contextlib.asynccontextmanager
async def following(server):
    async with Client(Access(server.url, namespace="default"), timeout=2.0) as client:
        found = Watching(client, Kind("pods", PATH), counts=KubernetesCounts(), changed=lambda: None)
        task = asyncio.create_task(found.run())
        try:
            yield found
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_server_that_begins_may_not_know_its_kinds_yet(monkeypatch):
    async with ApiServer().running() as server:
        await server.put("pods", pod("a", "10.0.0.1"))
        async with following(server) as found:
            await until(lambda: found.objects)
            server.kinds.remove("pods")
            await server.disconnect()
            await until(lambda: found.problem)
            assert [*found.objects] == ["a"]
            assert found.installed
            server.kinds.add("pods")
            await until(lambda: found.problem is None)
            assert [*found.objects] == ["a"]
            monkeypatch.setattr(watching, "BELIEVED_ABSENT", 0.2)
            server.kinds.remove("pods")
            await server.disconnect()
            await until(lambda: not found.objects)
            assert (found.installed, found.synced, found.problem) == (False, True, None)


async def test_a_mistake_of_ours_ends_no_watch(monkeypatch, caplog):
    async with ApiServer().running() as server:
        async with following(server) as found:
            await until(lambda: found.synced)
            take = found._take
            monkeypatch.setattr(found, "_take", lambda _: 1 / 0)
            await server.put("pods", pod("a", "10.0.0.1"))
            await until(lambda: found.problem)
            assert "ZeroDivisionError" in caplog.text
            monkeypatch.setattr(found, "_take", take)
            await until(lambda: found.problem is None and "a" in found.objects)


async def test_waits_grow_and_differ(monkeypatch):
    async with ApiServer().running() as server:
        async with Client(Access(server.url, namespace="default")) as client:
            found = Watching(client, Kind("pods", PATH), counts=KubernetesCounts(), changed=lambda: None)
            waits = [found._wait() for _ in range(12)]
    assert all(low / 2 <= wait <= low for wait, low in zip(waits, [0.25 * 2**n for n in range(7)], strict=False))
    assert max(waits) <= watching.LONGEST_WAIT
    assert len(set(waits)) == len(waits)


ANYTHING = st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
OBJECTS = ANYTHING | st.dictionaries(
    st.sampled_from(["metadata", "spec", "code", "message"]),
    ANYTHING | st.dictionaries(st.sampled_from(["name", "resourceVersion", "labels"]), ANYTHING),
)


@settings(max_examples=60)
@given(
    st.lists(
        st.fixed_dictionaries({"type": ANYTHING | st.sampled_from(["ADDED", "DELETED", "ERROR"]), "object": OBJECTS})
    )
)
def test_any_event_is_taken_or_an_api_error(events):
    client = Client(Access("http://127.0.0.1:1", namespace="default"))
    found = Watching(client, Kind("pods", PATH), counts=KubernetesCounts(), changed=lambda: None)
    for event in events:
        with contextlib.suppress(ApiError):
            found._take(event)
    assert all(isinstance(name, str) for name in found.objects)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff\xfe", b"null"])
async def test_answers_that_are_none(content):
    from aiohttp import web

    async def answer(_):
        return web.Response(body=content)

    app = web.Application()
    app.router.add_get("/{tail:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with Client(Access(f"http://127.0.0.1:{runner.addresses[0][1]}", namespace="default")) as client:
            with pytest.raises(ApiError, match=r"the answer is no JSON|has no items"):
                await client.list(PATH, params={})
    finally:
        await runner.cleanup()
