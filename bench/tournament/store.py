"""Figures of runs that were played before, so that a tournament may be stopped and gone on with.

In: tasks, figures. Out: figures of those that are there. A file of JSON lines; a line that was cut off is played again.
A run is known by its task and by the state of the code that it was played with (`code`): one who changes a policy keeps
the runs of those that it does not touch by saying so (`keeps`).
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.tournament.play import Figures, Task

SOURCE = Path(__file__).parent.parent.parent / "src" / "lorapick"
PARTS = ("core", "model", "pod", "sim")
"""Packages that a run executes."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    cell: str
    rate: float | None
    limit: float | None
    policy: str
    seed: int
    code: str
    figures: Figures


def code() -> str:
    """A digest of all that a run executes."""
    found = hashlib.sha256()
    for part in PARTS:
        for path in sorted((SOURCE / part).rglob("*.py")):
            found.update(path.relative_to(SOURCE).as_posix().encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:12]


class Store:
    """Runs by task.

    Args:
        path: the file; None: nothing is kept.
        keeps: policies whose runs count whatever the code was; None: none.
    """

    def __init__(self, path: Path | None, *, keeps: Sequence[str] = ()) -> None:
        self._path, self._code = path, code()
        self._runs: dict[tuple[object, ...], Figures] = {}
        for line in _lines(path):
            if line.code == self._code or line.policy in keeps:
                self._runs[line.cell, line.rate, line.limit, line.policy, line.seed] = line.figures

    def get(self, task: Task) -> Figures | None:
        """What it came to; None: not known."""
        return self._runs.get((task.cell.name, task.rate, task.limit, task.policy, task.seed))

    def add(self, tasks: Sequence[Task], figures: Sequence[Figures]) -> None:
        """These were played."""
        for task, found in zip(tasks, figures, strict=True):
            self._runs[task.cell.name, task.rate, task.limit, task.policy, task.seed] = found
        if self._path is None or not tasks:
            return
        lines = [
            Line(
                cell=task.cell.name, rate=task.rate, limit=task.limit,
                policy=task.policy, seed=task.seed, code=self._code, figures=found,
            )
            for task, found in zip(tasks, figures, strict=True)
        ]  # fmt: skip
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def _lines(path: Path | None) -> list[Line]:
    found: list[Line] = []
    if path is None or not path.is_file():
        return found
    for raw in path.read_bytes().splitlines():
        try:
            found.append(msgspec.json.decode(raw, type=Line))
        except msgspec.DecodeError:
            continue
    return found
