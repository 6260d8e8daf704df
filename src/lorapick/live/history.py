"""Demand history on disk: bins of `core.forecast.history` in an SQLite file, so that a restart forgets nothing.

In: bins that are over, with their totals. Out: all that was kept, at the start. Not here: what they mean.

Writes are made by a thread, in transactions (one per hand-over): a slow disk delays no pick, and a killed picker leaves
every hand-over whole or not at all. A bin that is kept again has its last total. No fault of the file ever reaches the
caller: it is logged, and what could not be written is tried again with what comes next, as far as there is room.
A file that is damaged is moved aside (`.damaged`) and begun anew; one that is another program's is left alone.
A file has one picker: two would overwrite each other's totals.
"""

import logging
import queue
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from lorapick.model.placement import DemandBin
from lorapick.model.units import AdapterName, Seconds

log = logging.getLogger(__name__)

MOST_BINS = 5 * 2016
"""Five weeks of five minutes."""
MOST_ROWS = 2_000_000
"""An adapter in a bin; about 16 bytes of file each."""
_APPLICATION = 0x10_4A_D1C5
"""Says that a file is ours."""
_VERSION = 1
_BUSY: Seconds = 2.0
_PRUNE_EVERY = 288
_HAND_OVERS = 100
"""That may wait for a slow disk."""
_MOST_PENDING = 200_000
_LATEST: Seconds = 2.0**53
_SCHEMA = """
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
BEGIN;
CREATE TABLE IF NOT EXISTS adapters (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS demand (
    start INTEGER NOT NULL, adapter INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (start, adapter)
) WITHOUT ROWID;
PRAGMA application_id = {application};
PRAGMA user_version = {version};
COMMIT;
"""
_KEEP = """
INSERT INTO demand (start, adapter, count) VALUES (?, (SELECT id FROM adapters WHERE name = ?), ?)
ON CONFLICT (start, adapter) DO UPDATE SET count = excluded.count
"""
_LOAD = """
SELECT start, adapter, count FROM demand
WHERE typeof(start) = 'integer' AND typeof(count) = 'integer' AND count > 0 ORDER BY start, adapter
"""
_TOO_OLD = "DELETE FROM demand WHERE start < (SELECT DISTINCT start FROM demand ORDER BY start DESC LIMIT 1 OFFSET ?)"
_TOO_MANY = "DELETE FROM demand WHERE start <= (SELECT start FROM demand ORDER BY start DESC LIMIT 1 OFFSET ?)"
_NOBODYS = "DELETE FROM adapters WHERE id NOT IN (SELECT adapter FROM demand)"

Pending = dict[tuple[Seconds, AdapterName], DemandBin]


class _NotOursError(Exception):
    """The file is a database of something else, or of a later version."""


class HistoryStore:
    """Keeps bins in a file."""

    def __init__(self, path: Path, *, most_bins: int = MOST_BINS, most_rows: int = MOST_ROWS) -> None:
        """Nothing is opened before it is needed.

        Args:
            path: the file; made when it is not there, with its directory.
            most_bins: how many bins are kept; the earliest go first.
            most_rows: how many rows (an adapter in a bin) are kept; whole bins go, the earliest first.
        """
        self._path = path
        self._most_bins = most_bins
        self._most_rows = most_rows
        self._queue: queue.Queue[Sequence[DemandBin] | threading.Event | None] = queue.Queue(_HAND_OVERS)
        self._pending: Pending = {}
        self._failing = False
        self._kept = 0
        self._thread: threading.Thread | None = None

    def load(self) -> tuple[DemandBin, ...]:
        """All that is kept, the earliest first; nothing, when the file cannot be read (which is logged)."""
        try:
            return self._read()
        except (sqlite3.Error, OSError, _NotOursError) as error:
            self._mend(error)
            log.error("demand history %s: %s; beginning without it", self._path, error)
            return ()

    def keep(self, bins: Iterable[DemandBin]) -> None:
        """Write these, soon; returns at once. One that is kept already is replaced."""
        handed = tuple(bins)
        if not handed:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, name="demand-history", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait(handed)
        except queue.Full:
            log.error("demand history %s: the disk is too slow; %d bins are lost", self._path, len(handed))

    def flush(self, timeout: Seconds = 5.0) -> bool:
        """Wait until all that was handed over was written, or had its try; whether it was."""
        if self._thread is None:
            return True
        done = threading.Event()
        try:
            self._queue.put(done, timeout=timeout)
        except queue.Full:
            return False
        return done.wait(timeout) and not self._pending

    def close(self, timeout: Seconds = 5.0) -> None:
        """Write what is left; a disk that hangs is not waited for any longer."""
        if not self.flush(timeout):
            log.warning("demand history %s: not all was written", self._path)
        if self._thread is not None:
            try:
                self._queue.put_nowait(None)
            except queue.Full:
                return
            self._thread.join(timeout)
            self._thread = None

    # -- the thread

    def _write_all(self) -> None:
        while (handed := self._queue.get()) is not None:
            if isinstance(handed, threading.Event):
                handed.set()
            else:
                self._write(handed)

    def _write(self, bins: Sequence[DemandBin]) -> None:
        self._pending.update({(each.start, each.adapter): each for each in bins if _fits(each)})
        try:
            self._commit()
        except (sqlite3.Error, OSError, _NotOursError) as error:
            self._mend(error)
            self._failed(error)
        else:
            if self._failing:
                log.info("demand history %s: is written again", self._path)
            self._failing = False

    def _commit(self) -> None:
        bins = self._pending.values()
        with closing(self._connect()) as file:
            with file:
                names = dict.fromkeys(each.adapter for each in bins)
                file.executemany("INSERT OR IGNORE INTO adapters (name) VALUES (?)", [(name,) for name in names])
                file.executemany(_KEEP, [(int(each.start), each.adapter, each.count) for each in bins])
            self._pending = {}
            if self._kept % _PRUNE_EVERY == 0:
                self._prune(file)
            self._kept += 1

    def _prune(self, file: sqlite3.Connection) -> None:
        with file:
            gone = file.execute(_TOO_OLD, (self._most_bins - 1,)).rowcount
            gone += file.execute(_TOO_MANY, (self._most_rows,)).rowcount
            if gone:
                file.execute(_NOBODYS)
        if gone:
            # As a script: `execute` stops at its first row of no columns, and so after one page.
            file.executescript("PRAGMA incremental_vacuum")

    def _failed(self, error: Exception) -> None:
        if not self._failing:
            log.error("demand history %s: %s; what is not written is tried again", self._path, error)
        self._failing = True
        for key in list(self._pending)[: max(0, len(self._pending) - _MOST_PENDING)]:
            del self._pending[key]

    # -- the file

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = sqlite3.connect(self._path, timeout=_BUSY)
        try:
            self._prepare(file)
        except BaseException:
            file.close()
            raise
        return file

    def _prepare(self, file: sqlite3.Connection) -> None:
        application, version = (
            file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        tables = file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != _APPLICATION:
            raise _NotOursError("is a database of another program; name another file in placement.history")
        if version > _VERSION:
            raise _NotOursError(f"has format {version} and this program reads {_VERSION}; name another file, or update")
        if not tables:
            file.executescript(_SCHEMA.format(application=_APPLICATION, version=_VERSION))
        file.execute("PRAGMA synchronous = NORMAL")

    def _read(self) -> tuple[DemandBin, ...]:
        if not self._path.exists():
            return ()
        with closing(self._connect()) as file:
            names = dict(file.execute("SELECT id, name FROM adapters").fetchall())
            rows = file.execute(_LOAD)
            return tuple(
                DemandBin(start=float(start), adapter=names[adapter], count=count)
                for start, adapter, count in rows
                if adapter in names
            )

    def _mend(self, error: Exception) -> None:
        """Move a damaged file aside, with its journals; a file that is locked, or on a full disk, is not damaged."""
        if type(error) is not sqlite3.DatabaseError:
            return
        try:
            for end in ("", "-wal", "-shm"):
                part = self._path.with_name(self._path.name + end)
                if part.exists():
                    part.replace(self._path.with_name(f"{self._path.name}.damaged{end}"))
        except OSError as fault:
            log.error("demand history %s: cannot be moved aside: %s", self._path, fault.strerror)
        else:
            log.error("demand history %s: is damaged; moved to %s.damaged", self._path, self._path.name)


def _fits(each: DemandBin) -> bool:
    """Whether SQLite can take it: JSON allows names that are no text, and a wild clock is beyond its integers."""
    return abs(each.start) < _LATEST and not any("\ud800" <= letter <= "\udfff" for letter in each.adapter)
