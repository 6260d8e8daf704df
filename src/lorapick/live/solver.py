"""Placements solved beside the picker: in one child process with one thread, so that no pick waits for a plan.

In: `submit(problem)`, which returns at once. Out: a call with each plan, on the event loop. While a problem is being
solved, the last one submitted waits and any before it is dropped. When the child dies, says no or takes too long, it is
ended by its pid, the plan is made by rendezvous hashing instead, and the next problem gets a new child.

Run as a program (`python -m lorapick.live.solver`) it is the child: problems on stdin, plans on stdout, each as its
length in four bytes and MessagePack. It ends with its input, and with the picker however that ends (Linux).
Not here: what a plan means (`core.placement`).
"""

import asyncio
import contextlib
import logging
import os
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO, Final

import msgspec

from lorapick.core.placement.plans import PlacementPlan
from lorapick.core.placement.solving import FLOW, RENDEZVOUS, solve
from lorapick.live import die_with_parent
from lorapick.model.placement import PlacementProblem
from lorapick.model.units import Seconds

TIMEOUT: Final[Seconds] = 15.0
"""For one problem, the child's start included. A thousand adapters on two hundred pods take about half a second."""
_LENGTH: Final = struct.Struct("!I")
_LARGEST: Final = 256 * 1024 * 1024
_NICE: Final = 10
"""The child gives way to the picker where both want the same core."""
_log = logging.getLogger(__name__)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """To the child."""

    problem: PlacementProblem
    solver: str


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """From the child: a plan, or why there is none."""

    plan: PlacementPlan | None = None
    error: str = ""


class _Failed(Exception):  # noqa: N818 - what it is, not that it is one
    """No plan came from the child."""


class SolverProcess:
    """Solves problems in turn. Made and used on one event loop, in the main thread; `close` it once."""

    def __init__(
        self,
        on_plan: Callable[[PlacementPlan], None],
        *,
        solver: str = FLOW,
        timeout: Seconds = TIMEOUT,
        command: Sequence[str] | None = None,
    ) -> None:
        """`on_plan` is called for each problem that is not dropped; it must not raise.

        Args:
            on_plan: Takes the plan; its `solver` says whether it is the one that was asked for.
            solver: `flow` or `rendezvous`.
            timeout: For one problem.
            command: The child; None: this module.
        """
        self.solver = solver
        self._on_plan = on_plan
        self._timeout = timeout
        self._command = tuple(command or (sys.executable, "-m", __name__))
        self._next: PlacementProblem | None = None
        self._task: asyncio.Task[None] | None = None
        self._child: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The child's; None: there is none now."""
        return None if self._child is None else self._child.pid

    def submit(self, problem: PlacementProblem) -> None:
        """Have it solved, instead of any that waits."""
        self._next = problem
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work(), name="solver")

    async def close(self) -> None:
        """End the child; no plan comes any more."""
        self._next = None
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._end()

    async def _work(self) -> None:
        while (problem := self._next) is not None:
            self._next = None
            self._on_plan(await self._plan(problem))

    async def _plan(self, problem: PlacementProblem) -> PlacementPlan:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._solved(problem)
        except TimeoutError:
            why = f"no answer within {self._timeout:g} s"
        except (_Failed, OSError, EOFError, msgspec.MsgspecError) as error:
            why = str(error) or type(error).__name__
        await self._end()
        _log.warning("placement %d is made by rendezvous hashing: the solver failed: %s", problem.version, why)
        return await asyncio.to_thread(solve, problem, solver=RENDEZVOUS)

    async def _solved(self, problem: PlacementProblem) -> PlacementPlan:
        child = await self._running()
        assert child.stdin is not None and child.stdout is not None
        body = msgspec.msgpack.encode(Asked(problem=problem, solver=self.solver))
        child.stdin.write(_LENGTH.pack(len(body)) + body)
        await child.stdin.drain()
        (length,) = _LENGTH.unpack(await child.stdout.readexactly(_LENGTH.size))
        if length > _LARGEST:
            raise _Failed(f"its answer claims {length} bytes, at most {_LARGEST} are read")
        answer = msgspec.msgpack.decode(await child.stdout.readexactly(length), type=Answered)
        if answer.plan is None:
            raise _Failed(answer.error)
        return answer.plan

    async def _running(self) -> asyncio.subprocess.Process:
        """The child; a new one when there is none."""
        if self._child is not None and self._child.returncode is None:
            return self._child
        await self._end()
        self._child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *self._command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C in a terminal reaches only us
        )
        return self._child

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdin is not None:
            child.stdin.close()
        if child.returncode is None:
            # Not child.kill(), which may take the exit code away from whoever waits for it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        await child.wait()


def serve(problems: BinaryIO, plans: BinaryIO) -> None:
    """Answer problems until there are no more: what the child does."""
    while len(head := problems.read(_LENGTH.size)) == _LENGTH.size:
        asked = msgspec.msgpack.decode(problems.read(_LENGTH.unpack(head)[0]), type=Asked)
        body = msgspec.msgpack.encode(_answer(asked))
        plans.write(_LENGTH.pack(len(body)) + body)
        plans.flush()


def _answer(asked: Asked) -> Answered:
    try:
        return Answered(plan=solve(asked.problem, solver=asked.solver))
    except Exception as error:  # noqa: BLE001 - whatever went wrong, the picker shall hear of it and go on
        return Answered(error=f"{type(error).__name__}: {error}")


def main() -> None:
    """The child. What libraries print goes to stderr, since stdout carries plans."""
    os.nice(_NICE)
    plans = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        serve(sys.stdin.buffer, plans)


if __name__ == "__main__":
    main()
