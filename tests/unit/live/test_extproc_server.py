"""The ext_proc server with a real gRPC client over a Unix socket."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse
from envoy.service.ext_proc.v3.external_processor_pb2_grpc import ExternalProcessorStub

from lorapick.live.extproc_server import ExtProcServer, identify
from lorapick.live.web import BindError
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.settings import AdmissionSettings, ServerSettings, Settings
from lorapick.testing import extproc as gateway
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.messages import Destination

POD, ANY = "10.0.0.1:8000", "10.0.0.9:8000"
BODY = b'{"model":"ad0","prompt":"Hello"}'
BUFFERED = (gateway.BUFFERED, gateway.NO_BODY)
DUPLEX = (gateway.FULL_DUPLEX, gateway.FULL_DUPLEX)


class Gateway:
    """The client's end of one stream."""

    def __init__(self, call: Any) -> None:
        self.call = call

    async def says(self, *sent: ProcessingRequest) -> None:
        for message in sent:
            await self.call.write(message)

    async def hears(self, count: int) -> list[ProcessingResponse]:
        return [await asyncio.wait_for(self.call.read(), 10) for _ in range(count)]

    async def leaves(self) -> None:
        await self.call.done_writing()
        assert await self.hears(1) == [grpc.aio.EOF]


@asynccontextmanager
async def serving(
    picker: gateway.ScriptedPicker, where: Path, **settings: Any
) -> AsyncIterator[tuple[ExtProcServer, Callable[[], Gateway]]]:
    server = ExtProcServer(picker, Settings(**settings), address=f"unix:{where}/run/extproc.sock")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub = ExternalProcessorStub(channel)
            yield server, lambda: Gateway(stub.Process())
    finally:
        await server.stop()


async def until(true: Callable[[], object]) -> None:
    for _ in range(1000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to pass in 10 s")


def kinds(picker: gateway.ScriptedPicker) -> list[object]:
    return [call[0] for call in picker.heard]


async def test_a_buffered_request(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker()
    async with serving(picker, tmp_path) as (_, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=BUFFERED))
        assert await talk.hears(1) == [messages.REQUEST_HEADERS_CONTINUE]
        await talk.says(gateway.request_body(BODY))
        assert await talk.hears(1) == [messages.routed_body(Destination(POD))]
        await talk.says(gateway.response_headers(200))
        assert await talk.hears(1) == [messages.response_headers("pod-8000", length_changes=False)]
        await talk.leaves()
        assert picker.heard[1:] == [
            ("dispatched", "r1", POD),
            ("started", "r1", 200),
            ("ended", "r1", Outcome.SERVED, 200, None),
        ]


async def test_a_full_duplex_request_of_several_chunks(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker()
    body = b'{"model":"ad0","prompt":"%s"}' % (b"x" * 150_000)
    async with serving(picker, tmp_path) as (_, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX))
        await talk.says(*(gateway.request_body(body[at : at + 9000], last=False) for at in range(0, len(body), 9000)))
        await talk.says(gateway.request_body(b""))
        first, *chunks = await talk.hears(4)
        assert first == messages.routed_headers(Destination(POD))
        assert b"".join(c.request_body.response.body_mutation.streamed_response.body for c in chunks) == body
        await talk.leaves()
        assert picker.heard[-1] == ("ended", "r1", Outcome.ABANDONED, None, None)


async def test_first_bytes_of_an_answer_are_told_once(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker()
    async with serving(picker, tmp_path) as (_, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        await talk.hears(2)
        await talk.says(gateway.response_headers(200))
        await talk.says(gateway.response_body(b"data: 1\n\n"), gateway.response_body(b"data: 2\n\n", last=True))
        await talk.hears(3)
        await talk.leaves()
    assert kinds(picker) == ["decide", "dispatched", "started", "body_started", "ended"]


async def test_many_at_once(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker()
    async with serving(picker, tmp_path) as (_, connect):

        async def one() -> None:
            talk = connect()
            await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
            assert await talk.hears(2) == [
                messages.routed_headers(Destination(POD)),
                messages.request_chunk(BODY, last=True),
            ]
            await talk.says(gateway.response_headers(200))
            await talk.hears(1)
            await talk.leaves()

        await asyncio.gather(*(one() for _ in range(50)))
    assert kinds(picker).count("ended") == kinds(picker).count("decide") == 50


async def test_a_rejection_ends_the_stream_from_our_side(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker(gateway.reject(Reason.QUEUE_FULL))
    async with serving(picker, tmp_path) as (_, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        answer, end = await talk.hears(2)
        assert answer.immediate_response.status.code == 429
        assert end == grpc.aio.EOF
        assert await talk.call.code() == grpc.StatusCode.OK
        assert kinds(picker) == ["decide"]


async def test_a_refusal_is_counted(tmp_path: Path) -> None:
    async with serving(gateway.ScriptedPicker(), tmp_path) as (server, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(b"{"))
        answer, end = await talk.hears(2)
        assert answer.immediate_response.status.code == 400
        assert end == grpc.aio.EOF
        assert server.counts.refused == {"body_invalid": 1}


async def test_a_body_over_the_limit_is_refused_while_it_comes(tmp_path: Path) -> None:
    settings = {"server": ServerSettings(max_body=100)}
    async with serving(gateway.ScriptedPicker(), tmp_path, **settings) as (server, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(b"x" * 101, last=False))
        answer, _ = await talk.hears(2)
        assert answer.immediate_response.status.code == 413
        assert server.counts.refused == {"body_too_large": 1}


async def test_the_largest_body_that_may_be_configured(tmp_path: Path) -> None:
    for limit in (2**30 - 2**20, 2**40):
        async with serving(gateway.ScriptedPicker(), tmp_path, server=ServerSettings(max_body=limit)) as (_, connect):
            talk = connect()
            await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(b"{"))
            answer, _ = await talk.hears(2)
            assert answer.immediate_response.status.code == 400


async def test_models_and_any_pod(tmp_path: Path) -> None:
    async with serving(gateway.ScriptedPicker(), tmp_path) as (server, connect):
        talk = connect()
        await talk.says(gateway.request_headers("/v1/models", method="GET", last=True, modes=BUFFERED))
        answer, end = await talk.hears(2)
        assert b'"id":"ad0"' in answer.immediate_response.body
        assert end == grpc.aio.EOF
        talk = connect()
        await talk.says(gateway.request_headers("/health", method="GET", last=True, modes=BUFFERED))
        assert await talk.hears(1) == [messages.routed_headers(Destination(ANY))]
        await talk.leaves()
        assert server.counts.passed == {"no_body": 1}


async def test_leaving_during_a_hold_cancels_the_decision(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker()
    picker.gate.clear()
    async with serving(picker, tmp_path) as (server, connect):
        for leave in ("closes", "cancels"):
            picker.heard.clear()
            talk = connect()
            await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
            await until(lambda: picker.heard)
            if leave == "closes":
                await talk.leaves()
            else:
                talk.call.cancel()
            await until(lambda: kinds(picker) == ["decide", "cancelled"])
        assert not server.deciding
        assert server.counts.stream_errors == server.counts.decide_failures == 0


async def test_an_answer_after_a_hold(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker()
    picker.gate.clear()
    async with serving(picker, tmp_path) as (_, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        await until(lambda: picker.heard)
        picker.gate.set()
        assert await talk.hears(2) == [
            messages.routed_headers(Destination(POD)),
            messages.request_chunk(BODY, last=True),
        ]
        await talk.leaves()


async def test_cancelling_after_dispatch_is_told_once(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker()
    async with serving(picker, tmp_path) as (_, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        await talk.hears(2)
        talk.call.cancel()
        await until(lambda: "ended" in kinds(picker))
    assert picker.heard[1:] == [("ended", "r1", Outcome.ABANDONED, None, None)]


async def test_a_picker_that_raises(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    picker = gateway.ScriptedPicker(RuntimeError("a bug"))
    async with serving(picker, tmp_path) as (server, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        assert await talk.hears(2) == [
            messages.routed_headers(Destination(ANY)),
            messages.request_chunk(BODY, last=True),
        ]
        await talk.leaves()
        assert (server.counts.decide_failures, server.counts.passed) == (1, {"undecided": 1})
    assert "any ready pod serves it" in caplog.text


async def test_a_picker_that_never_answers(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker()
    picker.gate.clear()
    # The longest hold plus five seconds are over at the first look.
    async with serving(picker, tmp_path, admission=AdmissionSettings(max_wait=-5.0)) as (server, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        assert await talk.hears(2) == [
            messages.routed_headers(Destination(ANY)),
            messages.request_chunk(BODY, last=True),
        ]
        await talk.leaves()
        assert server.counts.decide_failures == 1
        assert kinds(picker) == ["decide", "cancelled"]


async def test_how_a_prefill_went_is_told_before_the_answer_began(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker(gateway.dispatch(POD, prefill="10.0.0.3:8000"))
    async with serving(picker, tmp_path) as (_, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        await talk.hears(2)
        await talk.says(gateway.response_headers(200, [("x-lorapick-local-prefill", "timeout")]))
        await talk.hears(1)
        await until(lambda: ("started", "r1", 200) in picker.heard)
        assert picker.heard[-2:] == [("prefilled", "r1", False, "timeout"), ("started", "r1", 200)]
        await talk.leaves()


class FaultyPicker(gateway.ScriptedPicker):
    def response_started(self, request_id: str, status: int) -> None:
        raise RuntimeError("a bug")


async def test_a_fault_of_ours_ends_the_stream_gracefully(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    picker = FaultyPicker()
    async with serving(picker, tmp_path) as (server, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        await talk.hears(2)
        await talk.says(gateway.response_headers(200))
        assert await talk.hears(1) == [grpc.aio.EOF]
        assert await talk.call.code() == grpc.StatusCode.OK
        assert server.counts.stream_errors == 1
    assert "a stream ended by a fault of ours" in caplog.text
    assert picker.heard[-1] == ("ended", "r1", Outcome.SERVED, 200, None)


async def test_an_answer_that_is_none_counts_as_a_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    picker = gateway.ScriptedPicker()
    picker.answer = "perhaps"  # type: ignore[assignment]
    async with serving(picker, tmp_path) as (server, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        assert await talk.hears(2) == [
            messages.routed_headers(Destination(ANY)),
            messages.request_chunk(BODY, last=True),
        ]
        await talk.leaves()
        assert server.counts.decide_failures == 1
    assert "'perhaps' is neither Dispatch nor PassOn nor Reject" in caplog.text


async def test_a_broken_gateway_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(gateway.ScriptedPicker(), tmp_path) as (server, connect):
        talk = connect()
        await talk.says(gateway.request_body(BODY))
        assert await talk.hears(1) == [grpc.aio.EOF]
        assert server.counts.protocol_errors == 1
    assert "request_body before the request headers" in caplog.text


async def stops(server: ExtProcServer) -> None:
    await server.stop()


async def test_stopping_lets_streams_end(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker()
    async with serving(picker, tmp_path) as (server, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        await talk.hears(2)
        stopping: Awaitable[None] = asyncio.create_task(stops(server))
        await asyncio.sleep(0.05)
        await talk.says(gateway.response_headers(200))
        assert len(await talk.hears(1)) == 1
        await talk.leaves()
        await asyncio.wait_for(stopping, 10)
    assert picker.heard[-1] == ("ended", "r1", Outcome.SERVED, 200, None)
    assert not [*(tmp_path / "run").iterdir()]


async def test_streams_that_do_not_end_are_cut_off(tmp_path: Path) -> None:
    picker = gateway.ScriptedPicker()
    async with serving(picker, tmp_path, server=ServerSettings(drain_timeout=0.1)) as (server, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=DUPLEX), gateway.request_body(BODY))
        await talk.hears(2)
        await asyncio.wait_for(server.stop(), 10)
        await until(lambda: picker.heard[-1][0] == "ended")


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            BindError, match=f"server.extproc: cannot listen on 127.0.0.1:{port}: port {port} is in use"
        ):
            ExtProcServer(gateway.ScriptedPicker(), Settings(), address=f"127.0.0.1:{port}")


async def test_a_socket_in_use_is_named_and_left_alone(tmp_path: Path) -> None:
    async with serving(gateway.ScriptedPicker(), tmp_path) as (server, connect):
        with pytest.raises(BindError, match=r"extproc\.sock is in use"):
            ExtProcServer(gateway.ScriptedPicker(), Settings(), address=server.address)
        talk = connect()
        await talk.says(gateway.request_headers(modes=BUFFERED))
        await talk.hears(1)
        await talk.leaves()


async def test_a_socket_left_by_a_dead_process_is_taken(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "run/extproc.sock"))
    async with serving(gateway.ScriptedPicker(), tmp_path) as (_, connect):
        talk = connect()
        await talk.says(gateway.request_headers(modes=BUFFERED))
        await talk.hears(1)
        await talk.leaves()


async def test_over_tcp(tmp_path: Path) -> None:
    server = ExtProcServer(gateway.ScriptedPicker(), Settings(), address="127.0.0.1:0")
    await server.start()
    assert server.address.startswith("127.0.0.1:") and not server.address.endswith(":0")
    async with grpc.aio.insecure_channel(server.address) as channel:
        talk = Gateway(ExternalProcessorStub(channel).Process())
        await talk.says(gateway.request_headers(modes=BUFFERED))
        await talk.hears(1)
        await talk.leaves()
    await server.stop()


def test_ids() -> None:
    assert identify("abc") == "abc"
    assert len(identify("x" * 1000)) == 128
    assert identify(None) != identify(None)
