"""Health over gRPC, beside ext_proc and alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lorapick.live.extproc_server import ExtProcServer
from lorapick.live.health import EXT_PROC, NAMES, HealthServer
from lorapick.model.settings import Settings
from lorapick.testing.extproc import ScriptedPicker

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN


class Readiness:
    now = True

    def __call__(self) -> bool:
        return self.now


@asynccontextmanager
async def stub_at(address: str) -> AsyncIterator[health_pb2_grpc.HealthStub]:
    async with grpc.aio.insecure_channel(address) as channel:
        yield health_pb2_grpc.HealthStub(channel)


async def statuses(stub: health_pb2_grpc.HealthStub) -> dict[str, int]:
    return {name: (await stub.Check(health_pb2.HealthCheckRequest(service=name))).status for name in NAMES}


async def test_readiness_and_liveness() -> None:
    ready = Readiness()
    server = HealthServer("127.0.0.1:0", ready)
    await server.start()
    async with stub_at(server.address) as stub:
        assert await statuses(stub) == dict.fromkeys(NAMES, SERVING)
        ready.now = False
        assert await statuses(stub) == {
            "": NOT_SERVING,
            "readiness": NOT_SERVING,
            EXT_PROC: NOT_SERVING,
            "liveness": SERVING,
        }
        listed = (await stub.List(health_pb2.HealthListRequest())).statuses
        assert {name: status.status for name, status in listed.items()} == await statuses(stub)
    await server.stop()


async def test_unknown_names() -> None:
    server = HealthServer("127.0.0.1:0", Readiness())
    await server.start()
    async with stub_at(server.address) as stub:
        with pytest.raises(grpc.aio.AioRpcError, match="no service 'x'") as failure:
            await stub.Check(health_pb2.HealthCheckRequest(service="x"))
        assert failure.value.code() == grpc.StatusCode.NOT_FOUND
        watch = stub.Watch(health_pb2.HealthCheckRequest(service="x"))
        assert (await watch.read()).status == UNKNOWN
        watch.cancel()
    await server.stop()


async def test_watching() -> None:
    ready = Readiness()
    server = HealthServer("127.0.0.1:0", ready)
    await server.start()
    async with stub_at(server.address) as stub:
        watch = stub.Watch(health_pb2.HealthCheckRequest(service="readiness"))
        assert (await watch.read()).status == SERVING
        ready.now = False
        assert (await watch.read()).status == NOT_SERVING
        watch.cancel()
    await server.stop()


async def test_the_ext_proc_port_answers_too(tmp_path: Path) -> None:
    ready = Readiness()
    server = ExtProcServer(ScriptedPicker(), Settings(), address=f"unix:{tmp_path}/e.sock", ready=ready)
    await server.start()
    async with stub_at(server.address) as stub:
        assert (await statuses(stub))[EXT_PROC] == SERVING
        ready.now = False
        assert (await statuses(stub))[EXT_PROC] == NOT_SERVING
    await server.stop()
