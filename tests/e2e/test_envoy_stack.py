"""The whole installation: parts start, die, come back, and leave nothing behind."""

import os
import signal
import sys
import time
from pathlib import Path

import aiohttp
import pytest

from lorapick.live.processes import becomes_true
from lorapick.testing.stack import Stack, StackError, StackOptions

pytestmark = pytest.mark.e2e
HERE = Path(__file__).parent
TRIVIAL = HERE.parent.parent / "bench" / "trivial_extproc.py"


def stub_pod(pod, options):
    return (sys.executable, str(HERE / "stub_pod_process.py"), pod.address.rpartition(":")[2], pod.name)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def options(**changes):
    """A stack of stub pods and a picker that names them all in turn."""

    def picker(configuration, extproc):
        import yaml

        document = yaml.safe_load(configuration.read_text())
        pods = yaml.safe_load(Path(document["discovery"]["file"]).read_text())
        addresses = ",".join(pod["address"] for pod in pods)
        return (sys.executable, str(TRIVIAL), extproc, addresses, document["server"]["body"])

    return StackOptions(**{"pods": 2, "adapters": 3, "pod_command": stub_pod, "picker_command": picker, **changes})


class Client:
    def __init__(self, stack, session):
        self.stack = stack
        self.session = session

    async def ask(self):
        async with self.session.post(self.stack.endpoint + "/v1/completions", json={"model": "m"}) as response:
            return response.status, await response.json(content_type=None)

    async def pods_of(self, count):
        answers = [await self.ask() for _ in range(count)]
        assert {status for status, _ in answers} == {200}
        return {body["pod"] for _, body in answers}


@pytest.fixture
async def session():
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        yield session


async def test_starts_serves_heals_and_ends(session):
    async with Stack(options()) as stack:
        client = Client(stack, session)
        assert await client.pods_of(4) == {"pod-0", "pod-1"}
        pids = [*stack.pod_pids, *stack.picker_pids, stack.envoy_pid]

        stack.kill_pod(0)
        # One request may meet a connection that is breaking: it was sent, so nobody may send it again. Whose turn that
        # is depends on who was asked before.
        answers = [await client.ask() for _ in range(4)]
        assert sum(status != 200 for status, _ in answers) <= 1
        assert await client.pods_of(4) == {"pod-1"}
        await stack.start_pod(0)
        assert await client.pods_of(4) == {"pod-0", "pod-1"}

        old = stack.picker_pid
        stack.kill_picker()
        assert {(await client.ask())[0] for _ in range(50)} == {200}
        assert await becomes_true(lambda: _answer(stack.picker_pid not in (None, old)), within=5.0)
        pids += [*stack.pod_pids, *stack.picker_pids]
        directory = Path(stack.pickers[0].configuration).parent
    assert [pid for pid in pids if pid is not None and alive(pid)] == []
    assert not directory.exists()


async def test_a_picker_that_hangs_is_replaced_within_two_seconds(session):
    async with Stack(options()) as stack:
        client = Client(stack, session)
        old = stack.picker_pid
        before = await stack.counters()
        os.kill(old, signal.SIGSTOP)
        began = time.monotonic()
        # This one waits for the picker that hangs, and goes on without it when it has been killed.
        assert (await client.ask())[0] == 200
        waited = time.monotonic() - began
        assert await becomes_true(lambda: _answer(stack.picker_pid not in (None, old)), within=5.0)
        assert stack.watchdogs[0].kills == 1
        after = await stack.counters()
        assert after.without_picker > before.without_picker
        assert waited < 20.0, "Envoy's own message timeout of 35 s ended the wait, not the watchdog"

        async def picker_answers():
            counters = await stack.counters()
            await client.ask()
            return (await stack.counters()).without_picker == counters.without_picker

        assert await becomes_true(picker_answers, within=10.0)


async def test_two_pickers_keep_duplex_mode_up_when_one_dies(session):
    async with Stack(options(pickers=2, body="full_duplex_streamed")) as stack:
        client = Client(stack, session)
        assert await client.pods_of(4) == {"pod-0", "pod-1"}
        stack.kill_picker(0)
        assert {(await client.ask())[0] for _ in range(200)} == {200}


async def test_a_part_that_cannot_start_is_named_with_its_log():
    def broken(configuration, extproc):
        return (sys.executable, "-c", "raise SystemExit('no such model: qwerty')")

    with pytest.raises(StackError, match=r"(?s)picker-0 ends while starting.*no such model: qwerty"):
        await Stack(options(picker_command=broken)).start()


async def _answer(value):
    return value
