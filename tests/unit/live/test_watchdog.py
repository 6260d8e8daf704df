import asyncio

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from lorapick.live.watchdog import Watchdog, WatchdogTimes, probe_grpc

TIMES = WatchdogTimes(every=1.0, timeout=2.0, misses=2, start_within=30.0)


class Process:
    """A picker in virtual time; `script` says from when on it answers, by its own age."""

    def __init__(self, *, answers_from=0.0, answers_until=float("inf")):
        self.pid = 1
        self.began = 0.0
        self.killed_at = []
        self.answers_from = answers_from
        self.answers_until = answers_until

    async def probe(self, seconds):
        clock = asyncio.get_running_loop().time
        age = clock() - self.began
        if self.answers_from <= age < self.answers_until:
            return True
        await asyncio.sleep(seconds)
        return False

    def kill(self):
        self.killed_at.append(asyncio.get_running_loop().time())
        self.began = self.killed_at[-1]
        self.pid += 1


async def watch(process, seconds, times=TIMES):
    dog = Watchdog(name="picker", pid=lambda: process.pid, probe=process.probe, kill=process.kill, times=times)
    task = asyncio.create_task(dog.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait({task})
    assert dog.kills == len(process.killed_at)
    return dog


@pytest.mark.looptime
async def test_one_that_answers_is_left_alone():
    process = Process()
    await watch(process, 1000)
    assert process.killed_at == []


@pytest.mark.looptime
async def test_a_hang_is_ended_after_two_misses(caplog):
    process = Process(answers_until=10.5)
    await watch(process, 16)
    # The last good probe was at 10, the next at 11; two timeouts later it is over.
    assert process.killed_at == [15.0]
    assert "picker (pid 1) gave no answer to 2 probes of 2 s" in caplog.text


@pytest.mark.looptime
async def test_by_default_a_hang_is_over_within_two_seconds():
    """With the time that a kill and a fork take; how soon the next picker answers is the machine's."""
    process = Process(answers_until=10.001)
    await watch(process, 13, times=WatchdogTimes())
    assert len(process.killed_at) >= 1
    assert process.killed_at[0] - 10.001 <= 1.2


@pytest.mark.looptime
async def test_one_that_is_slow_to_start_is_not_killed():
    process = Process(answers_from=25.0)
    await watch(process, 100)
    assert process.killed_at == []


@pytest.mark.looptime
async def test_one_that_never_starts_is_replaced_after_its_time(caplog):
    process = Process(answers_from=float("inf"))
    await watch(process, 70)
    assert len(process.killed_at) == 2
    assert 30.0 < process.killed_at[0] <= 34.0
    assert "did not come up in 30 s" in caplog.text


@pytest.mark.looptime
async def test_nothing_is_probed_while_nothing_runs():
    process = Process()
    process.pid = None
    await watch(process, 100)
    assert process.killed_at == []


@pytest.mark.looptime
async def test_our_own_standing_still_is_not_held_against_it():
    process = Process()

    async def late(seconds):
        await asyncio.sleep(seconds + 60)
        return False

    process.probe = late
    await watch(process, 1000)
    assert process.killed_at == []


async def test_the_probe_asks_for_health_and_takes_any_answer(tmp_path):
    address = f"unix:{tmp_path}/a.sock"
    assert await probe_grpc(address, 0.2) is False
    server = grpc.aio.server()
    server.add_insecure_port(address)
    await server.start()
    try:
        assert await probe_grpc(address, 5.0) is True, "no health service, but a living server"
    finally:
        await server.stop(None)


async def test_the_probe_takes_not_serving_for_life(tmp_path):
    address = f"unix:{tmp_path}/a.sock"
    server = grpc.aio.server()
    checks = health.aio.HealthServicer()
    await checks.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    server.add_insecure_port(address)
    await server.start()
    try:
        assert await probe_grpc(address, 5.0) is True
    finally:
        await server.stop(None)
