"""Reads a ledger's file: rows of a window for a report, and rows as they are.

In: an open file, a question. Out: rows with numbers that are unique over all runs of the picker.
Not here: the report's arithmetic (`core.ledger.report`).
"""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from lorapick.core.ledger.conservation import Occupied, Watched
from lorapick.core.ledger.report import Asked, Rows, make_report
from lorapick.live.ledger.file import LedgerError, open_to_read
from lorapick.live.ledger.schema import COUNTS, LOADS, REQUESTS, RESIDENCIES, RUN_BITS, Reading, Table
from lorapick.model.ledger import LeftWhy, LoadRow, RequestRow, ResidencyRow
from lorapick.model.ledger_report import LedgerReport
from lorapick.model.units import Seconds

MOST_REQUESTS = 1_000_000
"""Of one report."""
_IDS_AT_ONCE = 500
_LINKS = ("id", "load", "drain_load", "after_stay", "evicted_by_load")


def report_of(path: Path, asked: Asked) -> LedgerReport:
    """Answer a question from a file. Raises LedgerError."""
    with closing(open_to_read(path)) as file:
        try:
            return make_report(_rows(file, asked), asked)
        except sqlite3.Error as error:
            raise LedgerError(f"ledger {path}: {error}") from None


def listed(path: Path, table: Table, *, asked: Asked) -> tuple[Any, ...]:
    """Rows of a table that ended in the window, the latest first. Raises LedgerError."""
    where, values = _filters(table, asked, where=f"{table.age} >= ? AND {table.age} < ?")
    if table is RESIDENCIES:
        where += f" AND why IN ({', '.join(repr(str(why)) for why in LeftWhy if why.evicted)})"
    with closing(open_to_read(path)) as file:
        try:
            latest = f"{where} ORDER BY {table.age} DESC LIMIT ?"
            return tuple(_read(file, table, where=latest, values=(*values, asked.most)))
        except sqlite3.Error as error:
            raise LedgerError(f"ledger {path}: {error}") from None


def requests_of(path: Path, *, since: Seconds, until: Seconds) -> Sequence[RequestRow]:
    """Requests that left within a time (Unix time). Raises LedgerError."""
    with closing(open_to_read(path)) as file:
        try:
            return _requests(file, Asked(since, until), since=since, until=until)
        except sqlite3.Error as error:
            raise LedgerError(f"ledger {path}: {error}") from None


def _filters(table: Table, asked: Asked, *, where: str) -> tuple[str, tuple[Any, ...]]:
    values: list[Any] = [asked.since, asked.until]
    for column, wanted in (("adapter", asked.adapter), ("pod", asked.pod), ("outcome", asked.outcome)):
        if wanted is not None and column in table.columns:
            where += f" AND {column} = ?"
            values.append(str(wanted))
    return where, tuple(values)


def _rows(file: sqlite3.Connection, asked: Asked) -> Rows:
    file.execute("BEGIN")  # one state of the file for all of it
    requests = _requests(file, asked, since=asked.since, until=asked.until)
    loads = _loads(file, asked, requests=requests)
    return Rows(
        requests=requests,
        before=_requests(file, asked, since=asked.since - asked.before, until=asked.since),
        loads=loads,
        made_necessary_by=_stays_by_number(file, [load.after_stay for load in loads if load.after_stay is not None]),
        stays=_stays(file, asked),
        counts=_counts(file, asked) if asked.adapter is None and asked.pod is None else (),
        watched=[Watched(*run) for run in file.execute("SELECT min(started, seen), seen FROM runs ORDER BY run")],
        watched_since=file.execute("SELECT min(min(started, seen)) FROM runs").fetchone()[0],
        rows_lost=file.execute("SELECT coalesce(sum(lost), 0) FROM runs").fetchone()[0],
    )


def _requests(file: sqlite3.Connection, asked: Asked, *, since: Seconds, until: Seconds) -> Sequence[RequestRow]:
    where, values = _filters(REQUESTS, asked._replace(since=since, until=until), where="ended >= ? AND ended < ?")
    (count,) = file.execute(f"SELECT count(*) FROM requests WHERE {where}", values).fetchone()  # noqa: S608 - our words
    if count > MOST_REQUESTS:
        raise LedgerError(
            f"{count} requests ended in this time, at most {MOST_REQUESTS} are read; ask for a shorter one"
        )
    return [*_read(file, REQUESTS, where=where, values=values)]


def _loads(file: sqlite3.Connection, asked: Asked, *, requests: Sequence[RequestRow]) -> Sequence[LoadRow]:
    """Those that were under way while any of these requests was here."""
    first = min((row.arrived for row in requests), default=asked.since)
    where = "(over IS NULL OR over >= ?) AND (begun IS NULL OR begun < ?)"
    return [*_read(file, LOADS, where=where, values=(first, asked.until))]


def _stays(file: sqlite3.Connection, asked: Asked) -> Sequence[ResidencyRow]:
    """Those in slots at some time in the window; what is there now ends when its run was last seen."""
    where, values = _filters(RESIDENCIES, asked, where="(until IS NULL OR until >= ?) AND since < ?")
    seen = dict(file.execute("SELECT run, seen FROM runs").fetchall())
    return [
        row if row.until is not None else msgspec.structs.replace(row, until=max(row.since, seen[row.id >> RUN_BITS]))
        for row in _read(file, RESIDENCIES, where=where, values=values)
    ]


def _stays_by_number(file: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, ResidencyRow]:
    found: dict[int, ResidencyRow] = {}
    wanted = [*dict.fromkeys(numbers)]
    for first in range(0, len(wanted), _IDS_AT_ONCE):
        some = wanted[first : first + _IDS_AT_ONCE]
        places = ", ".join(["(?, ?)"] * len(some))
        keys = [part for number in some for part in (number >> RUN_BITS, number & ((1 << RUN_BITS) - 1))]
        where = f"(run, id) IN (VALUES {places})"
        found |= {row.id: row for row in _read(file, RESIDENCIES, where=where, values=keys)}
    return found


def _counts(file: sqlite3.Connection, asked: Asked) -> Sequence[Occupied]:
    """Those of the window, and one on either side of it, as written: the time of day may have been set back."""
    statement = (
        "SELECT run, t, used, slot_seconds FROM occupancy"
        " WHERE t >= coalesce((SELECT max(t) FROM occupancy WHERE t < ?), ?)"
        " AND t <= coalesce((SELECT min(t) FROM occupancy WHERE t >= ?), ?) ORDER BY rowid"
    )
    values = (asked.since, asked.since, asked.until, asked.until)
    return [Occupied(*row) for row in file.execute(statement, values)]


def _read(file: sqlite3.Connection, table: Table, *, where: str, values: Sequence[Any]) -> Iterable[Any]:
    numbers = [name for name in _LINKS if name in table.columns and (table.numbered or name != "id")]
    reading = Reading(table, numbers=numbers)
    return map(reading.row, file.execute(table.select(where), values))


__all__ = ["COUNTS", "LOADS", "REQUESTS", "RESIDENCIES", "listed", "report_of", "requests_of"]
