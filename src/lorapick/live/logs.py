"""Logs of the parts: one run, one log.

In: a log's path. Out: the same, free for a new run. Not here: who writes into it (see `live.processes`).
"""

import contextlib
from pathlib import Path


def new_log(path: Path) -> Path:
    """Put the last run's log aside as `NAME.old`, so that what is shown of this one is of this run."""
    with contextlib.suppress(OSError):
        path.replace(path.with_name(f"{path.name}.old"))
    return path
