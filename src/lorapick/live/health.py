"""grpc.health.v1: whether this picker lives, and whether it may be asked.

In: a callable that says whether requests can be answered. Out: `Check`, `List` and `Watch` for the names that
gateways and Kubernetes use. Not here: what "ready" means (the command decides), HTTP probes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from lorapick.live.grpc_listen import GrpcListener
from lorapick.model.units import Seconds

EXT_PROC: Final = "envoy.service.ext_proc.v3.ExternalProcessor"
LIVENESS: Final = "liveness"
_READY_NAMES: Final = ("", "readiness", EXT_PROC)
NAMES: Final = (*_READY_NAMES, LIVENESS)
"""The names that llm-d's endpoint picker answers to."""

_WATCH_EVERY: Final[Seconds] = 0.5


class HealthService(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # the stubs carry no types
    """`liveness` is SERVING as long as it answers; the other names are as ready as the callable says."""

    def __init__(self, ready: Callable[[], bool]) -> None:
        self._ready = ready

    def _status(self, name: str) -> int:
        if name not in NAMES:
            return int(HealthCheckResponse.SERVICE_UNKNOWN)
        alive = name == LIVENESS or self._ready()
        return int(HealthCheckResponse.SERVING if alive else HealthCheckResponse.NOT_SERVING)

    async def Check(self, request: HealthCheckRequest, context: Any) -> HealthCheckResponse:  # noqa: N802 - gRPC's name
        """Say how one name is; an unknown name is the error NOT_FOUND, as the protocol wants."""
        if request.service not in NAMES:
            known = ", ".join(repr(name) for name in NAMES)
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no service {request.service!r}; known: {known}")
        return HealthCheckResponse(status=self._status(request.service))

    async def List(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - gRPC's name and signature
        """Say how all names are."""
        statuses = {name: HealthCheckResponse(status=self._status(name)) for name in NAMES}
        return health_pb2.HealthListResponse(statuses=statuses)

    async def Watch(  # noqa: N802 - gRPC's name
        self,
        request: HealthCheckRequest,
        context: Any,  # noqa: ARG002 - gRPC's signature
    ) -> AsyncIterator[HealthCheckResponse]:
        """Say how one name is, and again whenever that changes (looked at twice a second)."""
        told: int | None = None
        while True:
            status = self._status(request.service)
            if status != told:
                told = status
                yield HealthCheckResponse(status=status)
            await asyncio.sleep(_WATCH_EVERY)


def add_health(server: Any, ready: Callable[[], bool]) -> None:
    """Serve health on a gRPC server."""
    health_pb2_grpc.add_HealthServicer_to_server(HealthService(ready), server)


class HealthServer:
    """Health alone, on a port of its own (9003), so that probes do not depend on the gateway's port."""

    def __init__(self, address: str, ready: Callable[[], bool]) -> None:
        """Bind. Raises BindError when the address cannot be had."""
        self._listener = GrpcListener(address, setting="server.health")
        self.address = self._listener.address
        add_health(self._listener.server, ready)

    async def start(self) -> None:
        """Begin to answer."""
        await self._listener.server.start()

    async def stop(self) -> None:
        """Stop at once."""
        await self._listener.server.stop(None)
        self._listener.release()
