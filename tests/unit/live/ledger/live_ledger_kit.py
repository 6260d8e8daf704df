"""Ledgers of a few made-up rows."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from lorapick.live.ledger.writer import LedgerWriter
from lorapick.model.ledger import LedgerRow, LoadRow, RequestRow, ResidencyRow
from lorapick.model.requests import Outcome
from lorapick.model.settings import LedgerSettings

OFFSET = 1_000_000.0
"""From the driver's clock to Unix time."""


class Clock:
    """Both clocks, moved by hand."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now
        self.offset = OFFSET

    def driver(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now + self.offset


MADE: list[LedgerWriter] = []
"""Writers of the test that runs; a fixture closes them."""


def writer(path: Path, clock: Clock, **settings: Any) -> LedgerWriter:
    """One whose turns are taken by hand."""
    made = LedgerWriter(path, LedgerSettings(path=str(path), **settings), clock=clock.driver, wall=clock.wall)
    MADE.append(made)
    return made


def request(number: int, ended: float, **fields: Any) -> RequestRow:
    given: dict[str, Any] = {"arrived": ended - 1.0, "model": "x", "adapter": "x", "pod": "a", "served": 1.0}
    given |= {"dispatched": ended - 1.0, "hit": True, "outcome": Outcome.SERVED}
    return RequestRow(id=f"r{number}", ended=ended, **(given | fields))


def load(number: int, **fields: Any) -> LoadRow:
    given: dict[str, Any] = {"pod": "a", "adapter": "x", "begun": 50.0, "tier": "disk", "caused_by": "request"}
    return LoadRow(id=number, **(given | fields))


def stay(number: int, **fields: Any) -> ResidencyRow:
    return ResidencyRow(id=number, **({"pod": "a", "adapter": "x", "since": 50.0} | fields))


@contextmanager
def query(path: Path) -> Iterator[Callable[..., list[Any]]]:
    """SQL on a file, by somebody else."""
    with closing(sqlite3.connect(path)) as file:
        yield lambda text, *values: file.execute(text, values).fetchall()


def rows(path: Path, text: str, *values: Any) -> list[Any]:
    """What one query gives."""
    with query(path) as ask:
        return ask(text, *values)


def write(path: Path, some: list[LedgerRow], clock: Clock | None = None) -> LedgerWriter:
    """A ledger with these rows."""
    made = writer(path, clock or Clock())
    made.put(some)
    made.turn()
    return made
