"""`lorapick up` from the outside: what it prints, refuses and leaves behind."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path

import aiohttp
import pytest
from test_envoy_stack import alive

from lorapick.live.addresses import free_ports
from lorapick.live.processes import becomes_true

pytestmark = pytest.mark.e2e
LORAPICK = (sys.executable, "-m", "lorapick.cli.main", "up")
PROGRAM = (sys.executable, str(Path(__file__).with_name("up_with_trivial_picker.py")), "up")


def flags(directory, ports, *more):
    names = ("--port", "--admin-port", "--metrics-port", "--health-port")
    places = [word for name, port in zip(names, ports, strict=True) for word in (name, str(port))]
    return [*places, "--run-dir", str(directory), *more]


@contextlib.asynccontextmanager
async def running(directory, *more, program=PROGRAM):
    """`lorapick up --json`; gives the process, its `ready` line and a reader of further lines."""
    process = await asyncio.create_subprocess_exec(
        *program, *flags(directory, free_ports(4), "--json", *more), stdout=asyncio.subprocess.PIPE
    )

    async def event(name):
        while line := await asyncio.wait_for(process.stdout.readline(), 60):
            facts = json.loads(line)
            if facts["event"] == name:
                return facts
        raise AssertionError(f"ended without saying {name}")

    try:
        yield process, await event("ready"), event
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def refused(*arguments):
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, errors.decode()


def pids_of(ready):
    pids = ready["pids"]
    return [pids["envoy"], *pids["pickers"], *pids["pods"]]


async def test_it_serves_heals_refuses_a_second_one_and_leaves_nothing(tmp_path):
    asked = ("--pods", "2", "--adapters", "3", "--rate", "20")
    async with running(tmp_path, *asked, program=LORAPICK) as (process, ready, event):
        traffic = await event("traffic")
        assert (traffic["rate"], traffic["adapters"]) == (20.0, 3)
        body = {"model": ready["model"], "prompt": "Hello", "max_tokens": 2}
        async with aiohttp.ClientSession() as session:
            async with session.post(ready["endpoint"] + "/completions", json=body) as response:
                assert response.status == 200
                assert (await response.json())["model"] == "adapter-000"

        async def envoys_counts_are_shown():
            async with aiohttp.ClientSession() as session, session.get(ready["metrics"]) as response:
                return "lorapick_envoy_requests_total" in await response.text()

        assert await becomes_true(envoys_counts_are_shown, within=20.0)

        code, errors = await refused(*flags(tmp_path, free_ports(4)))
        assert code == 2
        assert f"(pid {process.pid})" in errors
        assert "--run-dir" in errors

        pod = ready["pids"]["pods"][0]
        os.kill(pod, signal.SIGKILL)
        died = await event("died")
        assert (died["name"], died["pid"], died["code"]) == ("pod-0", pod, -9)
        address = ready["pods"]["pod-0"]

        async def back():
            try:
                async with aiohttp.ClientSession() as session, session.get(f"http://{address}/health") as response:
                    return response.status == 200
            except aiohttp.ClientError:
                return False

        assert await becomes_true(back, within=20.0)

        process.send_signal(signal.SIGINT)
        assert (await event("ended"))["processes"] == 4
        assert await asyncio.wait_for(process.wait(), 10) == 0
        assert [pid for pid in pids_of(ready) if alive(pid)] == []


async def test_nothing_is_left_when_it_is_killed(tmp_path):
    async with running(tmp_path, "--pods", "1", "--adapters", "0", "--no-traffic") as (process, ready, _):
        process.kill()
        await process.wait()

        async def all_gone():
            return not any(alive(pid) for pid in pids_of(ready))

        assert await becomes_true(all_gone, within=5.0)


async def test_a_port_in_use_is_named_with_the_way_out_before_anything_starts(tmp_path):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = holder.getsockname()[1]
        ports = free_ports(4)
        ports[1] = taken
        code, errors = await refused(*flags(tmp_path, ports))
    assert code == 2
    assert f"127.0.0.1:{taken} is in use; choose another --admin-port" in errors
    assert [entry.name for entry in tmp_path.iterdir()] == ["lorapick.lock"]


async def test_ctrl_c_while_it_starts_ends_what_has_started(tmp_path):
    process = await asyncio.create_subprocess_exec(
        *PROGRAM, *flags(tmp_path, free_ports(4), "--json", "--pods", "2"), stdout=asyncio.subprocess.PIPE
    )
    assert json.loads(await process.stdout.readline())["event"] == "starting"
    process.send_signal(signal.SIGINT)
    output, _ = await asyncio.wait_for(process.communicate(), 20)
    assert json.loads(output.splitlines()[-1])["event"] == "ended"
    assert process.returncode == 0


async def test_a_fleet_of_the_operators_own_is_used_and_followed(tmp_path):
    first, second = (f"127.0.0.1:{port}" for port in free_ports(2))
    stub = Path(__file__).with_name("stub_pod_process.py")
    pods = [
        await asyncio.create_subprocess_exec(sys.executable, str(stub), address.rpartition(":")[2], address)
        for address in (first, second)
    ]
    try:
        pods_file = tmp_path / "pods.yaml"
        pods_file.write_text(f'[{{name: a, address: "{first}"}}]')
        config = tmp_path / "lorapick.yaml"
        config.write_text(f"discovery: {{file: {pods_file}}}\n")
        async with running(tmp_path / "run", "--config", str(config)) as (process, ready, event):
            assert ready["pids"]["pods"] == []
            # The trivial picker goes on naming the pod that is gone: what follows is between Envoy and the file.
            pods_file.write_text(f'[{{name: a, address: "{second}"}}]')

            async def moved():
                body = {"model": "base", "prompt": "x"}
                async with aiohttp.ClientSession() as session:
                    async with session.post(ready["endpoint"] + "/completions", json=body) as response:
                        return response.status == 200 and (await response.json())["pod"] == second

            assert await becomes_true(moved, within=20.0)
            process.send_signal(signal.SIGTERM)
            await event("ended")
    finally:
        for pod in pods:
            pod.kill()
            await pod.wait()
