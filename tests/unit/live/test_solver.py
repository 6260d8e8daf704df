import asyncio
import io
import logging
import math
import os
import signal
import sys

import msgspec
import pytest
import pytest_asyncio

from lorapick.core.placement.solving import solve
from lorapick.live.solver import Answered, Asked, SolverProcess, serve
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom

WITHIN = 30.0


def problem(version=1, adapters=3, pods=3):
    return PlacementProblem(
        version=version,
        pods=tuple(PodRoom(pod=f"pod-{number}", slots=2, zone="x", load=1.5) for number in range(pods)),
        adapters=tuple(
            PlacedAdapter(adapter=f"adapter-{number}", replicas=1, rank=8, now_on=("pod-0",), rate=1.0)
            for number in range(adapters)
        ),
    )


class Plans:
    """Plans as they come."""

    def __init__(self):
        self.queue = asyncio.Queue()
        self.made = []

    def solver(self, **more):
        self.made.append(SolverProcess(self.queue.put_nowait, **more))
        return self.made[-1]

    async def next(self):
        return await asyncio.wait_for(self.queue.get(), WITHIN)


@pytest_asyncio.fixture
async def plans():
    found = Plans()
    yield found
    for solver in found.made:
        await solver.close()
        assert solver.pid is None


def program(code):
    return [sys.executable, "-c", code]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(true):
    for _ in range(int(WITHIN / 0.01)):
        if true():
            return
        await asyncio.sleep(0.01)
    pytest.fail("waited in vain")


async def test_plans_come_as_if_solved_here_and_the_last_one_waiting_counts(plans):
    solver = plans.solver()
    for version in (1, 2, 3):
        solver.submit(problem(version))
    assert solver.pid is None
    first = await plans.next()
    assert first == solve(problem(3))
    solver.submit(problem(4))
    await asyncio.sleep(0)
    for version in (5, 6, 7):
        solver.submit(problem(version))
    assert [(await plans.next()).version for _ in range(2)] == [4, 7]
    assert plans.queue.empty()


async def test_a_child_that_is_killed_is_replaced(plans, caplog):
    solver = plans.solver()
    solver.submit(problem(1))
    assert (await plans.next()).solver == "flow"
    dead = solver.pid
    os.kill(dead, signal.SIGSTOP)
    solver.submit(problem(2))
    await asyncio.sleep(0.05)
    os.kill(dead, signal.SIGKILL)
    with caplog.at_level(logging.WARNING):
        plan = await plans.next()
    assert (plan.solver, plan.version) == ("rendezvous", 2)
    assert "placement 2 is made by rendezvous hashing: the solver failed: 0 bytes read" in caplog.text
    solver.submit(problem(3))
    assert (await plans.next()).solver == "flow"
    assert solver.pid != dead


async def test_a_child_that_takes_too_long_is_ended(plans, caplog):
    solver = plans.solver(timeout=0.3, command=program("import time; time.sleep(600)"))
    solver.submit(problem(1))
    await until(lambda: solver.pid)
    slow = solver.pid
    plan = await plans.next()
    assert plan == solve(problem(1), solver="rendezvous")
    assert "no answer within 0.3 s" in caplog.text
    assert not alive(slow)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise SystemExit(3)", "0 bytes read|Connection|pipe"),
        ("import os, sys; os.write(1, b'\\xff' * 64)", "claims 4294967295 bytes"),
        ("import os, sys; os.write(1, b'\\0\\0\\0\\1\\xc1')", "MessagePack|format|Expected"),
    ],
)
async def test_a_child_that_talks_nonsense_is_not_believed(plans, caplog, code, why):
    plans.solver(command=program(code)).submit(problem(1))
    assert (await plans.next()).solver == "rendezvous"
    (record,) = caplog.records
    assert any(word in record.getMessage() for word in why.split("|")), record.getMessage()


async def test_a_program_that_is_not_there_costs_no_plan(plans):
    plans.solver(command=["/does/not/exist"]).submit(problem(1))
    assert (await plans.next()).solver == "rendezvous"


async def test_closing_ends_a_child_at_work(plans):
    solver = plans.solver(command=program("import time; time.sleep(600)"))
    solver.submit(problem(1))
    await until(lambda: solver.pid)
    pid = solver.pid
    await solver.close()
    assert not alive(pid)
    assert plans.queue.empty()


PICKER = """
import asyncio, sys
from lorapick.live.solver import SolverProcess
from lorapick.model.placement import PlacementProblem

async def main():
    solver = SolverProcess(print, command=[sys.executable, "-c", "import time; time.sleep(600)"])
    solver.submit(PlacementProblem(version=1, pods=(), adapters=()))
    while solver.pid is None:
        await asyncio.sleep(0.01)
    print(solver.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_the_child_dies_with_the_picker():
    picker = await asyncio.create_subprocess_exec(*program(PICKER), stdout=asyncio.subprocess.PIPE)
    pid = int(await asyncio.wait_for(picker.stdout.readline(), WITHIN))
    picker.kill()
    await picker.wait()
    await until(lambda: not alive(pid))


# -- the child's side


def frames(*asked):
    bodies = [msgspec.msgpack.encode(each) for each in asked]
    return io.BytesIO(b"".join(len(body).to_bytes(4, "big") + body for body in bodies))


def test_the_child_answers_each_problem_and_survives_those_without_sense():
    plans = io.BytesIO()
    endless = PlacedAdapter(adapter="a", replicas=1, load_seconds=math.nan)
    senseless = PlacementProblem(version=1, pods=problem().pods, adapters=(endless,))
    serve(frames(Asked(problem=senseless, solver="flow"), Asked(problem=problem(5), solver="rendezvous")), plans)
    plans.seek(0)
    answers = []
    while head := plans.read(4):
        answers.append(msgspec.msgpack.decode(plans.read(int.from_bytes(head, "big")), type=Answered))
    assert answers[0].plan is None and answers[0].error.startswith("RuntimeWarning: invalid value")
    assert answers[1].plan == solve(problem(5), solver="rendezvous")
