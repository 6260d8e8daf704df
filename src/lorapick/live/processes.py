"""Child processes: started, restarted when they die, ended by pid.

In: a `ChildSpec`. Out: a running process whose output goes to a file of bounded size, and a call for each exit.
Not here: what a child is for, and whether it does its work (see `live.watchdog`).

A child is its own process group, so that Ctrl-C in a terminal reaches only us and we end the children in order. It
dies with us even when we are killed (Linux). Children must be started from the main thread: the kernel ties that
promise to the thread that forked.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from lorapick.live import die_with_parent
from lorapick.model.units import Bytes, Seconds

LOG_LIMIT: Final[Bytes] = 8 * 1024 * 1024
"""Size at which a log moves to `NAME.1`, replacing the one before."""

_LOOK_AT_LOG_EVERY: Final[Seconds] = 5.0
_log = logging.getLogger(__name__)

# gRPC's handlers around fork() run in the child before it becomes another program, and now and then crash it there
# (a null pointer in an event engine's thread): Envoy then "ended while starting" without a word. Whatever we fork
# becomes another program at once, so it needs none of them. Read when gRPC is first used.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

_SETTLED_AFTER: Final[Seconds] = 10.0
"""Seconds of life after which a restart counts as a first one."""


class ChildSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One process to keep."""

    name: str
    argv: tuple[str, ...]
    log: Path
    """Takes stdout and stderr, appended."""
    restart_after: Seconds | None = 0.1
    """Seconds from a death to the next start, doubled for each quick death; None: never restarted."""
    restart_at_most: Seconds = 5.0
    environment: Mapping[str, str] = {}
    """Added to ours."""
    log_limit: Bytes = LOG_LIMIT


class ChildExit(msgspec.Struct, frozen=True, kw_only=True):
    """One death."""

    name: str
    pid: int
    code: int
    """Exit code; minus the signal's number when a signal ended it."""
    wanted: bool
    """Whether `stop` asked for it."""
    lived: Seconds


class Child:
    """One supervised process. `start` once, `stop` once; between them the process comes back when it dies."""

    def __init__(self, spec: ChildSpec, *, on_exit: Callable[[ChildExit], None] | None = None) -> None:
        self.spec = spec
        self.starts = 0
        self._on_exit = on_exit
        self._pid: int | None = None
        self._at_once = False
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Pid of the running process; None between a death and the next start, and after the end."""
        return self._pid

    @property
    def given_up(self) -> bool:
        """Whether no process runs and none will."""
        return self._task is not None and self._task.done()

    async def start(self) -> int:
        """Start the process and its supervision; return the first pid."""
        if self._task is not None:
            raise RuntimeError(f"{self.spec.name} was started before; make a new Child")
        self.spec.log.parent.mkdir(parents=True, exist_ok=True)
        process = await self._spawn()
        self._task = asyncio.create_task(self._keep(process), name=f"keep {self.spec.name}")
        return process.pid

    async def stop(self, *, grace: Seconds = 5.0) -> None:
        """End the process: SIGTERM, after `grace` seconds SIGKILL. Returns when it is gone; safe to call twice."""
        self._stopping.set()
        if self._task is None:
            return
        self.signal(signal.SIGTERM)
        done, _ = await asyncio.wait({self._task}, timeout=grace)
        if not done:
            self.signal(signal.SIGKILL)
        await self._task

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, and to all of its group when it is to end; nothing when none runs."""
        if self._pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            if number in (signal.SIGTERM, signal.SIGKILL):
                # Its own group has its pid as number; before the child has made it, the pid alone must do.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._pid, number)
                    return
            os.kill(self._pid, number)

    def kill(self) -> None:
        """Kill the process now; supervision starts another."""
        self.signal(signal.SIGKILL)

    def replace(self) -> None:
        """Kill the process and start the next without the pause that quick deaths have earned."""
        self._at_once = True
        self.kill()

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines of the log, for error messages; empty when there is none."""
        try:
            with self.spec.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 16_384))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    async def _spawn(self) -> asyncio.subprocess.Process:
        argv = (sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid()), *self.spec.argv)
        with self.spec.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.spec.environment},
                start_new_session=True,
            )
        self._pid = process.pid
        self.starts += 1
        return process

    async def _keep(self, process: asyncio.subprocess.Process) -> None:
        """Wait for the death of each process and start the next."""
        clock = asyncio.get_running_loop().time
        wait = self.spec.restart_after
        while True:
            born = clock()
            code = await self._wait(process)
            lived = clock() - born
            self._pid = None
            self._report(process.pid, code, lived)
            if self.spec.restart_after is None or wait is None:
                return
            if lived >= _SETTLED_AFTER or self._at_once:
                wait = self.spec.restart_after
            self._at_once = False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), wait)
            if self._stopping.is_set():
                return
            wait = min(wait * 2, self.spec.restart_at_most)
            started = await self._spawn_in_time(wait)
            if started is None:
                return
            process = started

    async def _spawn_in_time(self, wait: Seconds) -> asyncio.subprocess.Process | None:
        """Start the next process; when that fails (a directory gone, a disk full) try again. None: we are to stop."""
        while not self._stopping.is_set():
            try:
                self.spec.log.parent.mkdir(parents=True, exist_ok=True)
                return await self._spawn()
            except OSError as error:
                _log.error("%s cannot be started: %s; trying again in %.1f s", self.spec.name, error, wait)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), wait)
        return None

    async def _wait(self, process: asyncio.subprocess.Process) -> int:
        """Return the exit code; on the way keep the log within its bound."""
        exit_code = asyncio.ensure_future(process.wait())
        while not exit_code.done():
            await asyncio.wait({exit_code}, timeout=_LOOK_AT_LOG_EVERY)
            bound_log(self.spec.log, limit=self.spec.log_limit)
        return exit_code.result()

    def _report(self, pid: int, code: int, lived: Seconds) -> None:
        if self._on_exit is not None:
            wanted = self._stopping.is_set()
            try:
                self._on_exit(ChildExit(name=self.spec.name, pid=pid, code=code, wanted=wanted, lived=lived))
            except Exception:  # noqa: BLE001 - whoever listens (a closed terminal, say) must not end the supervision
                _log.exception("%s ended with code %d, and nobody could be told", self.spec.name, code)


async def becomes_true(check: Callable[[], Awaitable[bool]], *, within: Seconds, every: Seconds = 0.05) -> bool:
    """Ask until the answer is yes, or `within` seconds are over; return the last answer."""
    clock = asyncio.get_running_loop().time
    end = clock() + within
    while True:
        if await check():
            return True
        if clock() >= end:
            return False
        await asyncio.sleep(every)


def bound_log(path: Path, *, limit: Bytes) -> None:
    """Move a log that outgrew `limit` to `NAME.1`, keeping the file that its process writes to.

    The process appends, so after the cut it goes on at the start. A line written between copy and cut is lost.
    """
    try:
        if path.stat().st_size <= limit:
            return
        shutil.copyfile(path, path.with_name(path.name + ".1"))
    except FileNotFoundError:
        return
    except OSError as error:
        # No room for the copy: what the log said is worth less than the disk it fills.
        _log.error("%s cannot be kept (%s): it is cut", path, error)
    with contextlib.suppress(OSError):
        os.truncate(path, 0)
