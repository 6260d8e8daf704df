"""The picker's own commands to a real vLLM: what it answers, and where its worker then holds the adapter."""

import asyncio
import json
import shutil
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lorapick.live.control import AllowedSources, PodControl
from lorapick.live.control.commands import Command, MakeEvent
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.events import Event, LoadStarted
from lorapick.model.placement import Why
from lorapick.model.pods import Pod
from vllm_kit import RUN, Server

WHERE = "vllm"
ROUNDS = 20


def load(*adapters: str) -> Load:
    return Load(cause=1, pod=WHERE, adapters=adapters, why=Why.PIN)


def register(adapter: str) -> Register:
    return Register(cause=1, pod=WHERE, adapter=adapter)


def unload(adapter: str) -> Unload:
    return Unload(cause=1, pod=WHERE, adapter=adapter, why=Why.RETIRED)


def touch(adapter: str) -> Touch:
    return Touch(cause=1, pod=WHERE, adapter=adapter)


class Commander:
    """A control of one server, and where each adapter's weights are."""

    def __init__(self, server: Server, sources: dict[str, str]) -> None:
        self.server = server
        self._sources = sources

    def tell(self, *commands: Command) -> list[Any]:
        """The events that commands led to, in order."""
        return asyncio.run(self._tell(commands))

    async def _tell(self, commands: Sequence[Command]) -> list[Event]:
        events: asyncio.Queue[Event] = asyncio.Queue()

        def submit(make: MakeEvent) -> None:
            event = make(0.0, 1)
            if not isinstance(event, LoadStarted):
                events.put_nowait(event)

        async def source(adapter: str, pod: Pod) -> str:
            del pod
            return self._sources[adapter]

        pod = Pod(name=WHERE, address=f"127.0.0.1:{self.server.port}")
        control = PodControl(
            submit=submit,
            find=lambda _: pod,
            sources=source,
            allowed=AllowedSources(prefixes=[str(RUN)]),
        )
        running = asyncio.create_task(control.run())
        await asyncio.sleep(0)
        try:
            found = []
            for command in commands:
                control.perform(command)
                found.append(await asyncio.wait_for(events.get(), 60))
            return found
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def in_slots(self) -> frozenset[str]:
        """Adapters in GPU slots, by the worker's own record."""
        return frozenset([row for row in self.server.record() if row["kind"] == "holds"][-1]["gpu"])


@pytest.fixture
def commander(servers: list[Server]) -> Any:
    """A control of the first server; names that it taught the server are forgotten afterwards."""
    server = servers[0]
    names = {f"told{number}": server.path_of(f"ad{number}") for number in range(4)}
    made = Commander(server, {**names, "nowhere": str(RUN / "no-such"), "wide": str(wide(server))})
    yield made
    made.tell(*(unload(name) for name in names))


def wide(server: Server) -> Path:
    """An adapter whose rank is above the server's limit of 16."""
    directory = RUN / "models" / "wide"
    if not directory.exists():
        shutil.copytree(server.path_of("ad0"), directory)
        file = directory / "adapter_config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "r": 64}))
    return directory


def kinds(events: list[Any]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_a_load_ends_in_a_slot_whether_the_name_was_known_or_not(commander: Commander) -> None:
    for name in ("told0", "told1", "told2", "told0", "told0"):
        event = commander.tell(load(name))[0]
        assert kinds([event]) == ["LoadSucceeded"], event
        assert name in commander.in_slots()


def test_a_touch_keeps_an_adapter_where_it_is(commander: Commander) -> None:
    events = commander.tell(load("told0"), load("told1"), touch("told0"), load("told2"))
    assert kinds(events) == ["LoadSucceeded", "LoadSucceeded", "Touched", "LoadSucceeded"]
    assert commander.in_slots() == {"told0", "told2"}


def test_names_are_learnt_and_forgotten(commander: Commander) -> None:
    events = commander.tell(register("told3"), register("told3"), unload("told3"), unload("told3"), touch("told3"))
    assert kinds(events) == ["Registered", "Registered", "Unloaded", "Unloaded", "TouchFailed"]
    assert [event.known_before for event in events[:2]] == [False, True]
    assert "does not serve the adapter" in events[4].why
    assert "told3" in commander.in_slots()  # only its name is gone


def test_what_it_refuses(commander: Commander) -> None:
    nowhere, too_wide, base = commander.tell(load("nowhere"), load("wide"), register("wide"))
    assert nowhere.lasting and "No adapter found for" in nowhere.why
    assert too_wide.lasting and "max_lora_rank" in too_wide.why
    assert base.lasting and kinds([base]) == ["RegisterFailed"]


def test_what_commands_cost(commander: Commander, report: dict[str, list[str]]) -> None:
    commander.tell(*(register(f"told{number}") for number in range(4)))
    for what, commands in {
        "touch of an adapter in a slot": [touch("told0")] * ROUNDS,
        "load of a known name, not in a slot (touched)": [load(f"told{number % 4}") for number in range(ROUNDS)],
        "unload and load anew": [make for _ in range(ROUNDS // 2) for make in (unload("told1"), load("told1"))],
    }.items():
        times = []
        for command in commands:
            began = time.perf_counter()
            events = commander.tell(command)
            times.append(time.perf_counter() - began)
            assert not kinds(events)[0].endswith("Failed"), events
        line = f"- {what}: median {statistics.median(times) * 1e3:.1f} ms, longest {max(times) * 1e3:.1f} ms"
        report.setdefault("Commands of the picker (session and connection included)", []).append(line)
