"""Keeps a ledger's file within its bounds, a small step at a time.

In: an open file. Out: the oldest rows are gone, when the file is nearly full or they are too old. One time bounds all
tables, so that what is left is whole. Not here: SQLite's own bound, which is set when the file is opened.
"""

import sqlite3

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


def trim(file: sqlite3.Connection, settings: LedgerSettings, *, now: Seconds, most: int = 0) -> int:
    """Remove what is too old or too much, at most `most` rows of each table (but `LEAST_STEP`); rows removed."""
    step = max(LEAST_STEP, most)
    horizon = now - settings.keep
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
    return float("-inf")


def _key(numbered: bool) -> str:
    return "(run, id)" if numbered else "rowid"


def _keys(numbered: bool) -> str:
    return "run, id" if numbered else "rowid"
