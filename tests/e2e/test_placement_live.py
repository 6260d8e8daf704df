"""The controller on real parts: pins, restarts, hand-over and kept demand, while three loads in ten fail."""

import asyncio
import contextlib
import os
import signal
import sqlite3
from contextlib import closing

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from lorapick.live.processes import becomes_true
from lorapick.model.events import LoadSucceeded, PodReported
from lorapick.model.pods import PodLimits
from lorapick.plan.datafiles import open_lines
from lorapick.testing.peft_files import write_adapter
from lorapick.testing.stack import Stack
from lorapick.wire.eventlog import Decided, Dispatched, LogReader

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]
HERE = ("hot", "warm")
"""Adapters that pods know from their start; the others have to be told to them."""
WITHIN = 15.0


def declared(folder):
    """Adapters of the configuration: `keep` on any two pods, `named` on one, `told` nowhere in particular."""
    sources = {name: str(write_adapter(folder / name)) for name in ("keep", "named", "told")}
    pins = {"keep": {"replicas": 2}, "named": {"pods": ["pod-2"]}}
    told = [{"name": name, "source": path, "rank": 8} for name, path in sources.items()]
    return [{**each, "pin": pins[each["name"]]} if each["name"] in pins else each for each in told] + [
        {"name": name} for name in HERE
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("placement")
    history = folder / "state" / "demand.sqlite"
    async with Stack(
        pods=3,
        adapters=HERE,
        limits=PodLimits(max_loras=3),
        pod_arguments=("--load-failure-share", "0.3", "--seed", "8"),
        configuration={
            "adapters": {"list": declared(folder / "adapters")},
            "placement": {"history": str(history), "tick": "200ms"},
            "scrape": {"interval": "200ms", "models_every": "1s"},
        },
        event_log=True,
        run_dir=folder / "run",
    ) as running:
        async with aiohttp.ClientSession() as session:
            running.session, running.history = session, history
            yield running


async def ask(stack, model):
    """One completion: its status, and who served it."""
    body = {"model": model, "prompt": "hello", "max_tokens": 1}
    async with stack.session.post(stack.endpoint + "/v1/completions", json=body) as answer:
        await answer.read()
        return answer.status, answer.headers.get("x-lorapick-pod")


async def asked_until_served(stack, model):
    """Who served it in the end: a load that a request causes may fail too, and then so does the request."""
    for _ in range(20):
        status, pod = await ask(stack, model)
        if status == 200:
            return pod
        await asyncio.sleep(0.1)
    raise AssertionError(f"{model} is served by nobody")


async def placement(stack):
    async with stack.session.get(stack.admin + "/v1/fleet") as answer:
        return (await answer.json())["placement"]


async def resident(stack, name):
    """Pods that have an adapter in a slot, by their own word."""
    found = []
    for pod in stack.pods:
        with contextlib.suppress(aiohttp.ClientError):
            async with stack.session.get(f"http://{pod.address}/emulator/state") as answer:
                if name in (await answer.json())["stats"]["on_gpu"]:
                    found.append(pod.name)
    return found


async def pins_are_there(stack):
    async def there():
        now = await placement(stack)
        return now["pins_wanted"] == 3 and not now["pins_missing"]

    assert await becomes_true(there, within=WITHIN), await placement(stack)
    assert len(await resident(stack, "keep")) >= 2
    assert "pod-2" in await resident(stack, "named")


async def test_pins_are_there_from_the_start_although_loads_fail(stack):
    await pins_are_there(stack)

    async def known_everywhere():
        found = []
        for pod in stack.pods:
            async with stack.session.get(f"http://{pod.address}/v1/models") as answer:
                found.append({each["id"] for each in (await answer.json())["data"]})
        return all({"keep", "named", "told"} <= names for names in found)

    assert await becomes_true(known_everywhere, within=WITHIN), "every pod is told of every adapter"
    assert await asked_until_served(stack, "told")
    now = await placement(stack)
    ended = now["ended"]
    assert ended["load"].get("failed", 0) + ended["register"].get("failed", 0) > 0, "the fault injection does nothing"
    async with stack.session.get(stack.metrics) as answer:
        page = await answer.text()
    for line in ("lorapick_pins_wanted 3.0", "lorapick_pins_missing 0.0"):
        assert line in page.splitlines()
    assert 'lorapick_placement_commands_total{kind="load",why="pin"}' in page
    assert 'lorapick_loads_total{by="controller"' in page.replace('pod="pod-2",', "").replace('from="unknown",', "")


async def test_a_pod_that_comes_back_has_its_pin_before_it_gets_a_request(stack):
    await pins_are_there(stack)
    stack.kill_pod(2)
    served, stop = [], asyncio.Event()

    async def traffic():
        while not stop.is_set():
            served.append(await ask(stack, ("keep", "base")[len(served) % 2]))
            await asyncio.sleep(0.03)

    asking = asyncio.create_task(traffic())
    await stack.start_pod(2)
    before = len(served)

    async def serves_again():
        return any(pod == "pod-2" for _, pod in served[before:])

    assert await becomes_true(serves_again, within=WITHIN), await placement(stack)
    stop.set()
    await asking
    await pins_are_there(stack)

    async def logged():
        return "dispatched" in since_restart(stack, "pod-2")

    assert await becomes_true(logged, within=WITHIN), "the log is at most a second behind"
    told = since_restart(stack, "pod-2")
    assert "named is there" in told[: told.index("dispatched")], told


def since_restart(stack, pod):
    """What the event log says of a pod since its restart, in order; nothing, if it says of none."""
    told, started, restarted = [], None, False
    for step in LogReader(open_lines(stack.pickers[0].event_log)):
        match step.event:
            case LoadSucceeded(adapter=adapter) if step.event.pod == pod:
                told.append(f"{adapter} is there")
            case PodReported(report=report) if step.event.pod == pod:
                if started is not None and report.process_start != started:
                    told, restarted = [], True
                started = report.process_start
        answers = step.result.answers if isinstance(step.result, Decided) else ()
        told += ["dispatched" for each in answers if isinstance(each, Dispatched) and each.pod == pod]
    return told if restarted else []


def write_pods(stack, *, draining):
    path = stack.pickers[0].configuration.with_name("pods.yaml")
    rows = msgspec.yaml.decode(path.read_bytes())
    text = msgspec.yaml.encode([{**row, "draining": row["name"] == draining} for row in rows])
    path.with_suffix(".new").write_bytes(text)
    path.with_suffix(".new").replace(path)


async def test_a_pod_that_drains_hands_over_what_nobody_else_has(stack):
    await pins_are_there(stack)
    pod = await asked_until_served(stack, "hot")
    for _ in range(5):
        await ask(stack, "hot")
    before = await resident(stack, "hot")
    assert before == [pod], "else there is nothing to hand over"
    write_pods(stack, draining=pod)

    async def handed_over():
        return any(each != pod for each in await resident(stack, "hot"))

    assert await becomes_true(handed_over, within=WITHIN), await placement(stack)

    async def left():
        return not (await placement(stack))["leaving"]

    assert await becomes_true(left, within=WITHIN), await placement(stack)
    assert (await placement(stack))["given"]["load"]["handover"] >= 1
    for _ in range(5):
        status, now = await ask(stack, "hot")
        assert status == 200 and now != pod
    write_pods(stack, draining=None)

    async def back():
        async with stack.session.get(stack.admin + "/v1/fleet") as answer:
            return all(row["ready"] for row in (await answer.json())["pods"])

    assert await becomes_true(back, within=WITHIN)


def kept(stack):
    """Requests in the file, by adapter."""
    with closing(sqlite3.connect(f"file:{stack.history}?mode=ro", uri=True)) as file:
        rows = file.execute("SELECT name, sum(count) FROM demand JOIN adapters ON adapter = id GROUP BY name")
        return dict(rows.fetchall())


async def test_demand_survives_a_picker_that_is_killed(stack):
    await asked_until_served(stack, "warm")

    async def in_the_file():
        with contextlib.suppress(sqlite3.Error):
            return "warm" in kept(stack)
        return False

    assert await becomes_true(in_the_file, within=WITHIN)
    before, pid = kept(stack), stack.picker_pid
    stack.kill_picker()

    async def another():
        if stack.picker_pid in (None, pid):
            return False
        with contextlib.suppress(aiohttp.ClientError):
            return not (await placement(stack))["pins_missing"]
        return False

    assert await becomes_true(another, within=WITHIN)
    await pins_are_there(stack)
    assert kept(stack) == before
    for _ in range(3):
        await asked_until_served(stack, "warm")
    pid = stack.picker_pid
    os.kill(pid, signal.SIGTERM)

    async def ended():
        return stack.picker_pid != pid

    assert await becomes_true(ended, within=WITHIN)
    assert kept(stack)["warm"] >= before["warm"] + 3, "an orderly end keeps what is counted so far"
