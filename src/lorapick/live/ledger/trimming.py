"""Keeps a ledger's file within its bounds, a small step at a time.

In: an open file. Out: the oldest rows are gone, when the file is nearly full or they are too old. One time bounds all
tables, so that what is left is whole. Not here: SQLite's own bound, which is set when the file is opened.
"""

import sqlite3
from math import inf

from lorapick.live.ledger.schema import LOADS, REQUESTS, RESIDENCIES, TABLES
from lorapick.model.settings import LedgerSettings
from lorapick.model.units import Bytes, Ratio, Seconds

LEAST_STEP = 500
"""Rows of one table that go at once at least."""
FULL: Ratio = 0.9
"""Of the size, from which on the oldest go."""
_PAGES_AT_ONCE = 256
_FREE_PAGES = 4 * _PAGES_AT_ONCE
"""Free pages up to so many wait for new rows; more are given back."""


TRUSTED_AFTER: Seconds = 86_400.0
"""A time of day that does not agree with what was written is trusted when it has gone on for so long."""
_AGREES: Seconds = 3600.0
"""What it may differ by: summer time is none of Unix time, and a picker is seldom away for longer."""


class Trust:
    """Whether the time of day can be trusted with removing rows: a clock that is wrong for a while must remove none."""

    def __init__(self, keep: Seconds) -> None:
        self._after = min(TRUSTED_AFTER, keep)
        self._offset: Seconds | None = None
        self._doubted_at: Seconds = -inf

    def now(self, clock: Seconds, offset: Seconds, *, seen: Seconds | None) -> Seconds | None:
        """Unix time; None: it is not trusted yet.

        Args:
            clock: a monotonic one.
            offset: from it to Unix time.
            seen: when the ledger was last written, in Unix time; None: it is new.
        """
        if self._offset is None:
            agrees = seen is None or abs(clock + offset - seen) <= _AGREES
        else:
            agrees = abs(offset - self._offset) <= _AGREES
        self._offset = offset
        if not agrees:
            self._doubted_at = clock
        return clock + offset if clock - self._doubted_at >= self._after else None


def last_seen(file: sqlite3.Connection) -> Seconds | None:
    """When it was last written, as its last run has it. None: it is new."""
    row = file.execute("SELECT seen FROM runs ORDER BY run DESC LIMIT 1").fetchone()
    return None if row is None else float(row[0])


def trim(file: sqlite3.Connection, settings: LedgerSettings, *, now: Seconds | None, most: int = 0) -> int:
    """Remove what is too old or too much, at most `most` rows of each table (but `LEAST_STEP`); rows removed.

    Without a `now` nothing is too old.
    """
    step = max(LEAST_STEP, most)
    horizon = -inf if now is None else now - settings.keep
    if used(file) > FULL * settings.max_size:
        horizon = max(horizon, _after_oldest(file, step))
    gone = 0
    for table in TABLES:
        gone += file.execute(
            f"DELETE FROM {table.name} WHERE {_key(table.numbered)} IN "  # noqa: S608 - our own names
            f"(SELECT {_keys(table.numbered)} FROM {table.name} WHERE {table.age} < ? ORDER BY {table.age} LIMIT ?)",
            (horizon, step),
        ).rowcount
    if gone:
        file.execute(
            "DELETE FROM runs WHERE seen < ? AND run NOT IN (SELECT run FROM requests)"
            " AND run < (SELECT max(run) FROM runs)",
            (horizon,),
        )
    if file.execute("PRAGMA freelist_count").fetchone()[0] > _FREE_PAGES:
        # As a script: `execute` stops at its first row of no columns, and so after one page.
        file.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
    return gone


def used(file: sqlite3.Connection) -> Bytes:
    """Bytes of the file that hold something."""
    pages, free, size = (
        file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _after_oldest(file: sqlite3.Connection, step: int) -> Seconds:
    """The time before which the oldest `step` requests ended; without requests, loads or stays."""
    for table in (REQUESTS, LOADS, RESIDENCIES):
        age, name = table.age, table.name
        row = file.execute(
            f"SELECT {age} FROM {name} WHERE {age} IS NOT NULL ORDER BY {age} LIMIT 1 OFFSET ?",  # noqa: S608
            (step,),
        ).fetchone()
        if row is not None:
            return float(row[0])
    return -inf


def _key(numbered: bool) -> str:
    return "(run, id)" if numbered else "rowid"


def _keys(numbered: bool) -> str:
    return "run, id" if numbered else "rowid"
