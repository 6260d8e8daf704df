"""Replace a picker that hangs: it is as bad as a dead one, and worse while Envoy waits for its answers.

In: a probe of the event loop that serves picks. Out: a call of `kill` when it does not answer; whoever supervises the
process starts the next. Not here: starting processes (`live.processes`), deciding what a dead picker means (Envoy).

Times: a hang is noticed within `every` + `misses` x `timeout` = 1.15 s by default, so that the next picker answers
within about 2 s. A picker that has not answered since its start gets `start_within` instead: slow is not hung.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import grpc
import msgspec
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lorapick.model.units import Seconds

_log = logging.getLogger(__name__)

_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
"""What a client library makes up when nobody answers. Any other status came from the server: it lives."""


class WatchdogTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How patient to be, in seconds."""

    every: Seconds = 0.25
    timeout: Seconds = 0.45
    misses: int = 2
    """Probes in a row without an answer that mean a hang."""
    start_within: Seconds = 60.0
    """Time from a start to the first answer."""
    own_lag: Seconds = 0.25
    """A probe that took this much longer than its timeout says that *we* stood still: it counts for nothing."""


class Watchdog:
    """Watches one process through its restarts. `run` until cancelled."""

    def __init__(
        self,
        *,
        name: str,
        pid: Callable[[], int | None],
        probe: Callable[[Seconds], Awaitable[bool]],
        kill: Callable[[], None],
        times: WatchdogTimes | None = None,
    ) -> None:
        self.kills = 0
        self._name = name
        self._pid = pid
        self._probe = probe
        self._kill = kill
        self._times = times or WatchdogTimes()

    async def run(self) -> None:
        """Probe for ever."""
        while True:
            await self._watch_one()
            await asyncio.sleep(self._times.every)

    async def _watch_one(self) -> None:
        """Follow one process, from its start to its end."""
        clock = asyncio.get_running_loop().time
        pid, began = self._pid(), clock()
        answered, missed = False, 0
        while pid is not None and pid == self._pid():
            verdict = await self._ask()
            if verdict is None:
                continue
            answered = answered or verdict
            missed = 0 if verdict else missed + 1
            late = missed >= self._times.misses if answered else clock() - began > self._times.start_within
            if late and pid == self._pid():
                self._replace(pid, answered=answered)
                return
            # After a miss ask again at once: the next timeout is pause enough.
            if missed == 0 or not answered:
                await asyncio.sleep(self._times.every)

    async def _ask(self) -> bool | None:
        """Whether it answered; None: we cannot tell, since we stood still ourselves (suspended, starved)."""
        clock = asyncio.get_running_loop().time
        asked = clock()
        answer = await self._probe(self._times.timeout)
        if not answer and clock() - asked > self._times.timeout + self._times.own_lag:
            return None
        return answer

    def _replace(self, pid: int, *, answered: bool) -> None:
        times = self._times
        why = (
            f"gave no answer to {times.misses} probes of {times.timeout:g} s"
            if answered
            else f"did not come up in {times.start_within:g} s"
        )
        _log.warning("%s (pid %d) %s: killing it, another starts", self._name, pid, why)
        self.kills += 1
        self._kill()


async def probe_grpc(address: str, timeout: Seconds) -> bool:  # noqa: ASYNC109 - it is handed to gRPC
    """Whether the gRPC server at `unix:PATH` or `host:port` answers a health check, whatever it says.

    A connection of its own each time: a shared one would wait out its back-off while a new process is up already.
    """
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        try:
            await check(health_pb2.HealthCheckRequest(), timeout=timeout)
        except grpc.aio.AioRpcError as error:
            return error.code() not in _SILENT
    return True
