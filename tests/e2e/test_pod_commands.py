"""Commands to pods that are processes of their own: each dialect obeys, one that is stopped or killed fails in time."""

import asyncio
import contextlib
import json
import os
import signal
import sys

import aiohttp
import pytest
import pytest_asyncio

from lorapick.live.control import AllowedSources, PodControl, StaticSources, Timeouts
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.placement import Why
from lorapick.model.pods import Engine, Pod

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

NAMES = [f"adapter-{number:03d}" for number in range(4)]
A, B, C, D = NAMES
FLAGS = ("--port", "0", "--json", "--catalogue", "4", "--max-loras", "2", "--max-cpu-loras", "3", "--speed", "20")
PODS = {
    "vllm": (Engine.VLLM, FLAGS),
    "static": (Engine.VLLM, (*FLAGS[:3], "--adapters", "2", "--no-runtime-lora", "--speed", "20")),
    "sglang": (Engine.SGLANG, (*FLAGS, "--engine", "sglang")),
    "victim": (Engine.VLLM, FLAGS),
}


class Told:
    """Events as they come."""

    def __init__(self):
        self.events = asyncio.Queue()

    def submit(self, make):
        event = make(0.0, 1)
        if type(event).__name__ != "LoadStarted":
            self.events.put_nowait(event)

    async def next(self):
        return await asyncio.wait_for(self.events.get(), 30)


class Fleet:
    """The pods, and a control that commands them."""

    def __init__(self):
        self.pods = {}
        self.processes = {}
        self.told = Told()
        adapters = {name: Adapter(name=name, source=f"/adapters/{name}") for name in NAMES}
        self.control = PodControl(
            submit=self.told.submit,
            find=self.pods.get,
            sources=StaticSources(adapters.get),
            allowed=AllowedSources(prefixes=["/adapters"]),
            timeouts=Timeouts(pod=2.0, touch=2.0),
        )

    async def start(self, name):
        engine, flags = PODS[name]
        command = (sys.executable, "-m", "lorapick.cli.main", "pod", "--name", name, *flags)
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        self.processes[name] = process
        ready = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))
        self.pods[name] = Pod(name=name, address=f"127.0.0.1:{ready['port']}", engine=engine)

    async def asked(self, *commands):
        """What commands led to, as names of events; with reasons where there are any."""
        for command in commands:
            self.control.perform(command)
        events = [await self.told.next() for command in commands for _ in getattr(command, "adapters", "1")]
        return [(type(event).__name__, getattr(event, "why", "")) for event in events]

    async def on_gpu(self, name):
        url = f"http://{self.pods[name].address}/emulator/state"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return set((await response.json())["stats"]["on_gpu"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet():
    made = Fleet()
    running = asyncio.create_task(made.control.run())
    try:
        await asyncio.gather(*(made.start(name) for name in PODS))
        yield made
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        for process in made.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()


def load(pod, *adapters):
    return Load(cause=1, pod=pod, adapters=adapters, why=Why.PIN)


async def test_vllm(fleet):
    assert await fleet.asked(load("vllm", A, B)) == [("LoadSucceeded", "")] * 2
    assert await fleet.asked(Touch(cause=1, pod="vllm", adapter=A)) == [("Touched", "")]
    assert await fleet.asked(load("vllm", C)) == [("LoadSucceeded", "")]
    assert await fleet.on_gpu("vllm") == {A, C}  # the touch kept A
    assert await fleet.asked(load("vllm", B)) == [("LoadSucceeded", "")]  # known: touched into its slot
    assert B in await fleet.on_gpu("vllm")
    assert await fleet.asked(Register(cause=1, pod="vllm", adapter=D)) == [("Registered", "")]
    assert await fleet.asked(Unload(cause=1, pod="vllm", adapter=D, why=Why.RETIRED)) == [("Unloaded", "")]
    assert D in await fleet.on_gpu("vllm")  # only its name is gone
    name, why = (await fleet.asked(Touch(cause=1, pod="vllm", adapter=D)))[0]
    assert name == "TouchFailed" and "does not serve the adapter" in why


async def test_vllm_that_takes_no_adapters_at_run_time(fleet):
    assert await fleet.asked(load("static", B)) == [("LoadSucceeded", "")]
    assert await fleet.on_gpu("static") == {B}
    name, why = (await fleet.asked(load("static", C)))[0]
    assert name == "LoadFailed" and "VLLM_ALLOW_RUNTIME_LORA_UPDATING" in why


async def test_sglang(fleet):
    assert await fleet.asked(load("sglang", A)) == [("LoadSucceeded", "")]
    assert await fleet.on_gpu("sglang") == set()
    assert await fleet.asked(Touch(cause=1, pod="sglang", adapter=A)) == [("Touched", "")]
    assert await fleet.on_gpu("sglang") == {A}
    assert await fleet.asked(Unload(cause=1, pod="sglang", adapter=A, why="pressure_hard")) == [("Unloaded", "")]
    assert await fleet.on_gpu("sglang") == set()
    assert await fleet.asked(load("sglang", A)) == [("LoadSucceeded", "")]


async def test_a_pod_that_stands_still_and_one_that_dies(fleet):
    victim = fleet.processes["victim"]
    os.kill(victim.pid, signal.SIGSTOP)
    assert await fleet.asked(load("victim", A)) == [("LoadFailed", "no answer within 2 s")]
    os.kill(victim.pid, signal.SIGCONT)
    # The stopped pod has the request in its socket, and may carry it out now or not: asking again finds out.
    assert await fleet.asked(load("victim", A)) == [("LoadSucceeded", "")]
    assert await fleet.on_gpu("victim") == {A}
    os.kill(victim.pid, signal.SIGSTOP)
    fleet.control.perform(load("victim", B, C))
    await asyncio.sleep(0.1)
    victim.kill()
    events = [await fleet.told.next() for _ in range(2)]
    assert [(type(event).__name__, event.adapter, event.lasting) for event in events] == [
        ("LoadFailed", B, False),
        ("LoadFailed", C, False),
    ]
