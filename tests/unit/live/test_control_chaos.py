"""Pods that answer late, twice, in part, or nonsense, and pods and pickers that leave: one event for each adapter."""

import asyncio
import contextlib
import gzip
import random
from collections import Counter

import pytest
from aiohttp import web
from control_kit import Stub, came_of, control, weights

from lorapick.live.control import AllowedSources, PodControl, Timeouts
from lorapick.live.control.door import MAX_BODY
from lorapick.live.control.line import MOST_WAITING
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.pods import Engine, Pod

LOAD = Load(cause=1, pod="a", adapters=("ad",), why="pin")
ALLOWED = AllowedSources(prefixes=["/w"])
SUCCESS = b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nSuccess"


@contextlib.asynccontextmanager
async def raw(talk):
    """A server that reads one request and then does as it is told; its address."""
    over, serving = asyncio.Event(), set()

    async def serve(reader, writer):
        serving.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line]
            length = lengths[0] if lengths else 0
            await reader.readexactly(length)
            await talk(writer, over)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        over.set()
        server.close()
        await server.wait_closed()
        await asyncio.wait_for(asyncio.gather(*serving), 20)


def commanding(address, **parts):
    return control(address, engine=Engine.VLLM, **{"sources": weights, "allowed": ALLOWED, **parts})


async def why_not(talk, **parts):
    """Why a load at such a server has failed; it has exactly one end."""
    async with raw(talk) as address, commanding(address, **parts) as (made, told):
        made.perform(LOAD)
        event = await told.next()
        await asyncio.sleep(0.02)
        assert not told.events and not event.lasting
        assert type(event).__name__ == "LoadFailed"
    return event.why


def saying(*chunks):
    async def talk(writer, over):
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()

    return talk


async def test_a_connection_that_is_cut():
    assert "ServerDisconnected" in await why_not(saying())
    assert "Payload" in await why_not(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 700\r\n\r\nSucc"))
    assert "Payload" in await why_not(saying(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7\r\nSucc"))

    async def reset(writer, over):
        writer.write(b"HTTP/1.1 200")
        writer.transport.abort()

    assert "Error" in await why_not(reset)


@pytest.mark.parametrize("text", [b"\x00\xff\xfe\r\n\r\n", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 abc\r\n\r\n"])
async def test_what_is_no_http(text):
    assert await why_not(saying(text))


async def test_headers_and_bodies_without_end():
    assert await why_not(saying(b"HTTP/1.1 200 OK\r\nx: " + b"a" * 100_000 + b"\r\n\r\n"))

    async def forever(writer, over):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not over.is_set():
            writer.write(b"x" * 65536)
            await writer.drain()

    assert await why_not(forever) == f"an answer of more than {MAX_BODY} bytes"


async def test_a_compressed_body_is_not_unpacked():
    body = gzip.compress(b"Success" * 10)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body)

    async def talk(writer, over):
        writer.write(head + body)

    # What it says cannot be read, so the list of models would have to bear it out; this server has none.
    assert "not a list of models" in await why_not(talk)


async def test_an_answer_byte_by_byte_does_not_outlast_the_limit():
    async def loris(writer, over):
        for byte in SUCCESS[:-1]:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.02)
        await over.wait()

    assert await why_not(loris, within=0.2) == "no answer within 0.2 s"


async def test_an_answer_that_comes_twice_counts_once():
    async with raw(saying(SUCCESS, SUCCESS)) as address, commanding(address) as (made, told):
        for _ in range(3):
            made.perform(LOAD)
        assert [type(await told.next()).__name__ for _ in range(3)] == ["LoadSucceeded"] * 3
        await asyncio.sleep(0.02)
        assert not told.events


async def test_an_answer_that_comes_late_is_nobodys():
    go = asyncio.Event()

    async def load(request):
        await go.wait()
        return web.Response(text="Success")

    stub = Stub(load=load, touch=Stub.TOUCHED)
    async with stub.serving() as address, commanding(address, within=0.1) as (made, told):
        made.perform(LOAD)
        assert (await told.next()).why == "no answer within 0.1 s"
        go.set()
        await asyncio.sleep(0.02)
        stub.says["/v1/load_lora_adapter"] = Stub.TAKEN  # so it did load in the end
        made.perform(LOAD)
        assert type(await told.next()).__name__ == "LoadSucceeded"
        assert not told.events
        assert made.counts().ended == {("load", "unanswered"): 1, ("load", "already"): 1}


async def test_a_redirect_is_not_followed():
    other = Stub(load=Stub.LOADED)

    async def load(request):
        raise web.HTTPTemporaryRedirect(f"http://{elsewhere}/v1/load_lora_adapter")

    async with other.serving() as elsewhere:
        event = await came_of(Stub(load=load), LOAD)
    assert "not followed" in event.why and event.lasting and not other.asked


# -- who leaves


async def test_a_pod_that_leaves_or_moves_while_it_is_asked_has_not_done_it():
    pods = {}

    async def load(request):
        pods.update(changes)
        return web.Response(text="Success")

    stub = Stub(load=load)
    async with stub.serving() as address, commanding(None, find=lambda name: pods.get(name)) as (made, told):
        for after, why in (({"a": None}, "the pod is gone"), ({"a": Pod(name="a", address="x:1")}, "has moved from")):
            changes = after
            pods["a"] = Pod(name="a", address=address)
            made.perform(LOAD)
            event = await told.next()
            assert type(event).__name__ == "LoadFailed" and why in event.why
        pods.clear()
        pods["a"] = Pod(name="a", address=address)
        changes = {"a": None}
        made.perform(LOAD)
        made.perform(LOAD)
        assert [(await told.next()).why for _ in range(2)] == ["the pod is gone"] * 2
    assert stub.asked == ["load_lora_adapter"] * 3


async def test_the_picker_leaves_while_much_is_under_way():
    async def never(request):
        await asyncio.sleep(60)

    commands = [
        Load(cause=1, pod="a", adapters=("1", "2", "2"), why="pin"),
        Register(cause=1, pod="a", adapter="3"),
        Unload(cause=1, pod="a", adapter="4", why="retired"),
        Touch(cause=1, pod="a", adapter="5"),
    ]
    stub = Stub(load=never, touch=never)
    async with stub.serving() as address:
        async with commanding(address) as (made, told):
            for command in commands:
                made.perform(command)
            await asyncio.sleep(0.05)
        made.perform(LOAD)
        await asyncio.sleep(0)
        events = [event for event in told.events if type(event).__name__ != "LoadStarted"]
        assert sorted(event.adapter for event in events) == ["1", "2", "2", "3", "4", "5", "ad"]
        assert {event.why for event in events} == {"the picker is ending"}
        assert (made.counts().waiting, made.counts().under_way) == (0, 0)


async def test_an_error_of_the_core_ends_the_picker_and_is_not_hidden():
    class BrokenError(Exception):
        pass

    def submit(make):
        if type(make(0.0, 1)).__name__ == "LoadSucceeded":
            raise BrokenError

    async with Stub(load=Stub.LOADED).serving() as address:
        pod = Pod(name="a", address=address)
        made = PodControl(submit=submit, find=lambda _: pod, sources=weights, allowed=ALLOWED)
        running = asyncio.create_task(made.run())
        await asyncio.sleep(0)
        made.perform(LOAD)
        with pytest.raises(ExceptionGroup) as raised:
            await asyncio.wait_for(running, 20)
        assert raised.group_contains(BrokenError)


# -- who waits


async def under_way(made):
    """Wait until the pod carries out a command."""
    async with asyncio.timeout(20):
        while made.counts().under_way == 0:  # noqa: ASYNC110 - counts tell nobody
            await asyncio.sleep(0)


async def test_a_full_line_drops_who_waits_longest():
    go = asyncio.Event()

    async def load(request):
        await go.wait()
        return web.Response(text="Success")

    async with Stub(load=load).serving() as address, commanding(address) as (made, told):
        made.perform(Load(cause=1, pod="a", adapters=("0",), why="pin"))
        await under_way(made)
        for number in range(1, MOST_WAITING + 3):
            made.perform(Load(cause=1, pod="a", adapters=(str(number),), why="pin"))
        dropped = [await told.next() for _ in range(2)]
        assert [(event.adapter, event.lasting) for event in dropped] == [("1", False), ("2", False)]
        assert all("has waited longest" in event.why for event in dropped)
        go.set()
        rest = [await told.next() for _ in range(MOST_WAITING + 1)]
        assert [event.adapter for event in rest] == ["0", *(str(number) for number in range(3, MOST_WAITING + 3))]
        assert made.counts().ended == {("load", "dropped"): 2, ("load", "done"): MOST_WAITING + 1}


async def test_who_waits_too_long_is_told():
    async def never(request):
        await asyncio.sleep(60)

    parts = {"timeouts": Timeouts(pod=0.4, turn=0.1)}
    async with Stub(load=never).serving() as address, commanding(address, **parts) as (made, told):
        made.perform(LOAD)
        await under_way(made)
        made.perform(Load(cause=1, pod="a", adapters=("x", "y"), why="pin"))
        made.perform(Touch(cause=1, pod="a", adapter="z"))
        events = [await told.next() for _ in range(4)]
        assert sorted(event.adapter for event in events[:3]) == ["x", "y", "z"]
        assert [event.why for event in events] == ["its turn did not come within 0.1 s"] * 3 + [
            "no answer within 0.4 s"
        ]


async def test_who_looks_for_a_source_lets_others_pass_but_not_those_about_its_adapter():
    found = asyncio.Event()

    async def sources(adapter, pod):
        if adapter == "far":
            await found.wait()
        return f"/w/{adapter}"

    stub = Stub(load=Stub.LOADED, unload=(200, "Success"), touch=(200, {"choices": []}))
    async with stub.serving() as address, commanding(address, sources=sources) as (made, told):
        made.perform(Load(cause=1, pod="a", adapters=("far", "near"), why="pin"))
        made.perform(Unload(cause=1, pod="a", adapter="far", why="operator"))
        made.perform(Touch(cause=1, pod="a", adapter="near"))
        made.perform(Register(cause=1, pod="a", adapter="other"))
        made.perform(Touch(cause=1, pod="a", adapter="third"))
        assert {(await told.next()).adapter for _ in range(2)} == {"other", "third"}
        assert (made.counts().waiting, made.counts().under_way) == (3, 0)
        found.set()
        rest = [(type(event).__name__, event.adapter) for event in [await told.next() for _ in range(4)]]
        assert rest[:2] == [("LoadSucceeded", "far"), ("LoadSucceeded", "near")]
        assert {*rest[2:]} == {("Unloaded", "far"), ("Touched", "near")}


async def test_what_is_dropped_while_its_source_is_looked_for_is_not_told_later():
    found = asyncio.Event()

    async def sources(adapter, pod):
        await found.wait()
        return f"/w/{adapter}"

    stub = Stub(load=Stub.LOADED, touch=(200, {"choices": []}))
    async with stub.serving() as address, commanding(address, sources=sources) as (made, told):
        for number in range(MOST_WAITING + 1):
            made.perform(Load(cause=1, pod="a", adapters=(str(number),), why="pin"))
        event = await told.next()
        assert event.adapter == "0" and "has waited longest" in event.why
        found.set()
        assert [(await told.next()).adapter for _ in range(MOST_WAITING)] == [str(1 + n) for n in range(MOST_WAITING)]
        assert {body["lora_name"] for body in stub.bodies} == {str(1 + number) for number in range(MOST_WAITING)}


async def test_who_allows_sources_may_break_and_is_answered(caplog):
    def allowed(adapter, source):
        raise RuntimeError("oh")

    event = await came_of(Stub(load=Stub.LOADED), LOAD, allowed=allowed)
    assert "a mistake of the picker's: RuntimeError('oh')" in event.why and "Traceback" in caplog.text


async def test_a_touch_goes_ahead_of_loads():
    order = []

    async def load(request):
        order.append((await request.json())["lora_name"])
        await asyncio.sleep(0.01)
        return web.Response(text="Success")

    async def touched(request):
        order.append("touch")
        return web.json_response({"choices": []})

    stub = Stub(load=load, touch=touched)
    async with stub.serving() as address, commanding(address) as (made, told):
        for adapter in ("x", "y", "z"):
            made.perform(Load(cause=1, pod="a", adapters=(adapter,), why="pin"))
        await under_way(made)
        made.perform(Touch(cause=1, pod="a", adapter="pinned"))
        for _ in range(4):
            await told.next()
    assert order == ["x", "touch", "y", "z"]


# -- all of it together


async def test_whatever_happens_each_adapter_of_a_command_has_one_event():
    chance = random.Random(11)
    success = b"HTTP/1.1 200 OK\r\ncontent-length: 34\r\n\r\n" + b'{"choices": [], "said": "success"}'
    ways = [
        saying(success),
        saying(success),
        saying(success, success),
        saying(success[:-5]),
        saying(),
        saying(b"HTTP/1.1 500 no\r\ncontent-length: 4\r\n\r\nboom"),
        saying(b"garbage\r\n\r\n"),
    ]

    async def talk(writer, over):
        if chance.random() < 0.1:
            await asyncio.sleep(0.2)  # too late
        await chance.choice(ways)(writer, over)

    asked, heard, makers = Counter(), Counter(), [
        lambda name: Load(cause=1, pod="a", adapters=(name, name + "x"), why="pin"),
        lambda name: Register(cause=1, pod="a", adapter=name),
        lambda name: Unload(cause=1, pod="a", adapter=name, why="operator"),
        lambda name: Touch(cause=1, pod="a", adapter=name),
    ]  # fmt: skip
    async with raw(talk) as address, commanding(address, within=0.1) as (made, told):
        for number in range(150):
            command = chance.choice(makers)(str(number % 7))
            kind = type(command).__name__
            for adapter in getattr(command, "adapters", None) or (command.adapter,):
                asked[kind, adapter] += 1
            made.perform(command)
            if number % 3 == 0:
                await asyncio.sleep(0.005)
        ends = {"Load": "Load", "Regi": "Register", "Unlo": "Unload", "Touc": "Touch"}
        for _ in range(asked.total()):
            event = await told.next()
            heard[ends[type(event).__name__[:4]], event.adapter] += 1
        await asyncio.sleep(0.3)
        assert asked == heard and not told.events
        counts = made.counts()
        assert sum(counts.ended.values()) == asked.total() and (counts.waiting, counts.under_way) == (0, 0)
        assert {outcome for _, outcome in counts.ended} >= {"done", "failed"}
