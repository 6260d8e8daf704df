"""A progress bar on stderr for work that says what share of it is done.

In: words. Out: a function to tell the share to. Not here: what the work is.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lorapick.model.units import Ratio, Seconds

EVERY: Seconds = 10.0
"""Between two lines where there is no terminal."""


@contextmanager
def progress_bar(words: str) -> Iterator[Callable[[Ratio], None]]:
    """A bar while the block runs, gone afterwards; on stderr, so that --json stays JSON; lines without a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(words)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(words, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _lines(words: str) -> Callable[[Ratio], None]:
    """Say now and then in a log that something still happens."""
    last = time.monotonic()

    def told(share: Ratio) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY:
            last = now
            print(f"{words}: {share:.0%}", file=sys.stderr, flush=True)

    return told
