"""The same work on many things, in parallel processes.

In: a function of a module, tasks. Out: its results, in the order of the tasks. Not here: what the work is.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from typing import Any, TypeAlias, TypeVar

from lorapick.model.units import Ratio

Task = TypeVar("Task")
Result = TypeVar("Result")
Progress: TypeAlias = Callable[[Ratio], None]
"""Told the share of the work that is done."""


class WorkerDied(RuntimeError):  # noqa: N818 - what happened
    """A process ended without an answer."""

    def __init__(self, workers: int) -> None:
        super().__init__(
            f"one of {workers} processes ended without an answer, perhaps for want of memory: take fewer (--workers 1)"
        )


_POLL = 0.2
"""Seconds between two looks at the workers' progress."""


def spread(
    work: Callable[[Task, Progress], Result],
    tasks: Sequence[Task],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> tuple[Result, ...]:
    """Do all tasks, in up to `workers` processes (default: one per core); with one, in this process.

    Raises:
        WorkerDied: a process was killed.
        Whatever `work` raises.
    """
    most = workers if workers is not None else cores()
    count = max(1, min(most, len(tasks)))
    if count > 1:
        return _in_processes(work, tasks, workers=count, progress=progress)
    told = progress or _ignore
    return tuple(work(task, _part(told, number, of=len(tasks))) for number, task in enumerate(tasks))


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ignore(_: Ratio) -> None:
    pass


def _part(told: Progress, number: int, *, of: int) -> Progress:
    return lambda share: told((number + share) / of)


# -- in other processes

_shares: Any = None
"""In a worker: how much of each task is done, in memory that parent and workers share."""


def _begin(shares: Any, parent: int) -> None:
    global _shares
    _shares = shares
    # Ctrl-C in a terminal reaches all processes; the parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A parent that was killed cannot end its workers; they see that they have another one."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _do(work: Callable[[Task, Progress], Result], task: Task, *, number: int) -> Result:
    def told(share: Ratio) -> None:
        _shares[number] = share

    return work(task, told)


def _in_processes(
    work: Callable[[Task, Progress], Result], tasks: Sequence[Task], *, workers: int, progress: Progress | None
) -> tuple[Result, ...]:
    # Never forked: the command line may have threads (a progress bar), and a fork copies their locks as they are.
    context = multiprocessing.get_context("spawn")
    shares = context.Array("d", len(tasks), lock=False)
    with _pool(workers, shares, context=context) as pool:
        futures = [pool.submit(_do, work, task, number=number) for number, task in enumerate(tasks)]
        try:
            _follow(futures, shares, progress=progress or _ignore)
            return tuple(future.result() for future in futures)
        except BrokenProcessPool:
            raise WorkerDied(workers) from None


@contextmanager
def _pool(workers: int, shares: Any, *, context: SpawnContext) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(shares, os.getpid()))
    try:
        yield pool
    except BaseException:
        # Ctrl-C, or an error of one: nobody waits for the others to finish their runs.
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _follow(futures: Sequence[Future[Result]], shares: Any, *, progress: Progress) -> None:
    """Tell the progress until all is done; raises what the first failed one raised, whatever others still do."""
    open_ones = list(futures)
    while open_ones:
        done, rest = wait(open_ones, timeout=_POLL)
        open_ones = [future for future in open_ones if future in rest]
        progress(sum(shares) / len(shares))
        for future in done:
            future.result()
