"""A progress bar on stderr for work that says what share of it is done.

In: words. Out: a function to tell the share to. Not here: what the work is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lorapick.model.units import Ratio


@contextmanager
def progress_bar(words: str) -> Iterator[Callable[[Ratio], None]]:
    """A bar while the block runs, gone afterwards; on stderr, so that --json stays JSON; none without a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(words, total=1.0)
        yield lambda share: bar.update(task, completed=share)
