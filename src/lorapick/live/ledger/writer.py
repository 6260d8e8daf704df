"""Writes the ledger's rows, in a thread of its own.

In: rows, which are handed over by putting them into a queue and nothing else: no lock, no wait. Out: an SQLite file
that is bounded in size and age. Not here: what rows say (see `core.ledger`).

The thread looks into the queue every `write_every` and writes what is there in one transaction, so a picker that is
killed loses that much, and the file is whole. No fault of the file reaches the picker: it is counted, said once, and
tried again; rows that find the queue full are lost and counted. A damaged ledger is moved aside and begun anew;
whatever is no ledger, or one of another format, is left alone.
"""

import fcntl
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import IO

from lorapick.live.ledger.file import DamagedError, LedgerError, check_place, cut_log, move_aside, open_to_write
from lorapick.live.ledger.schema import LOADS, RESIDENCIES, TABLES, Writing
from lorapick.live.ledger.trimming import Trust, last_seen, trim
from lorapick.model.ledger import LedgerRow, LeftWhy, LoadEnd
from lorapick.model.settings import LedgerSettings
from lorapick.model.units import Seconds

log = logging.getLogger(__name__)

MOST_QUEUED = 200_000
"""Rows that wait for a slow or missing disk."""
MOST_AT_ONCE = 10_000
"""Rows of one transaction."""
_ROW = 300
"""Bytes of a row, about."""
SEEN_EVERY: Seconds = 5.0
"""While nothing happens, that the picker still watches is written so often."""
CLOCK_SLIP: Seconds = 0.1
"""The time of day is taken anew when it has moved by so much against the monotonic clock."""

_BAD_ROW = (UnicodeError, OverflowError, sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.IntegrityError)
"""What one row can be guilty of."""


class LedgerWriter:
    """One file and one thread."""

    def __init__(
        self,
        path: Path,
        settings: LedgerSettings,
        *,
        clock: Callable[[], Seconds],
        wall: Callable[[], Seconds] = time.time,
    ) -> None:
        """Nothing is opened before `start`.

        Args:
            path: the file.
            settings: its bounds.
            clock: the driver's, which rows have their times from.
            wall: Unix time.
        """
        self.lost = 0
        """Rows that are not, and will not be, in the file."""
        self.failures = 0
        """Writes that failed."""
        self.written = 0
        """Rows in the file since the start, those told again included."""
        self.path = path
        self._settings = settings
        self._clock, self._wall = clock, wall
        # A small file must have room for a whole transaction while it is being trimmed.
        self._at_once = max(100, min(MOST_AT_ONCE, settings.max_size // 20 // _ROW))
        self._offset = wall() - clock()
        self._trust = Trust(settings.keep)
        self._rows: deque[LedgerRow] = deque()
        self._batch: list[LedgerRow] = []
        """Taken from the queue, and not written yet."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._file: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._lock: IO[str] | None = None
        self._run: int | None = None
        self._started = wall()
        self._wrote_at: Seconds = -inf
        self._failing = False
        self._writing = {table.kind: Writing(table) for table in TABLES}

    # -- from the picker's loop

    def put(self, rows: Iterable[LedgerRow]) -> None:
        """Hand rows over; never waits."""
        queued = self._rows
        if len(queued) < MOST_QUEUED:
            queued.extend(rows)
        else:
            self.lost += len([*rows])

    def faults(self) -> int:
        """Writes that failed, and rows that were lost."""
        return self.failures + self.lost

    def start(self) -> None:
        """Begin to write."""
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)
        self._thread.start()

    def close(self, timeout: Seconds = 5.0) -> None:
        """Write what is left; a disk that hangs is not waited for any longer."""
        self._stop.set()
        if self._thread is None:
            self._drop_file()
        else:
            self._thread.join(timeout)
            if self._thread.is_alive():
                log.warning("ledger %s: not all was written", self.path)

    # -- the thread

    def _work(self) -> None:
        ending = False
        while not ending:
            ending = self._stop.wait(self._settings.write_every)
            self.turn()
        self._drop_file()

    def turn(self) -> None:
        """Write what is there. Called by the thread, and by nobody else once it has started."""
        idle = not self._batch and not self._rows and not self._stop.is_set()
        if idle and self._clock() - self._wrote_at < SEEN_EVERY:
            return
        while True:
            self._take()
            if not self._try() or not self._rows:
                return

    def _take(self) -> None:
        rows, batch = self._rows, self._batch
        while rows and len(batch) < self._at_once:
            batch.append(rows.popleft())

    def _try(self) -> bool:
        try:
            self._write(self._opened())
        except (sqlite3.Error, OSError, LedgerError) as error:
            self._failed(error)
            return False
        except Exception:
            if not self._failing:
                log.exception("ledger %s: a fault of ours; requests are served, and rows are lost", self.path)
            self._surprised()
            return False
        if self._failing:
            self._failing = False
            log.info("ledger %s: is written again; %d rows are lost", self.path, self.lost)
        return True

    def _write(self, file: sqlite3.Connection) -> None:
        offset = self._time_of_day()
        cut_log(file, self.path)
        now = self._trust.now(self._clock(), offset, seen=last_seen(file))
        trim(file, self._settings, now=now, most=2 * len(self._batch))
        file.execute("BEGIN IMMEDIATE")
        try:
            run = self._run_of(file, now=self._clock() + offset)
            for kind, rows in _by_kind(self._batch).items():
                self._insert(file, self._writing[kind], rows=rows, run=run, offset=offset)
            file.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                file.execute("ROLLBACK")
            raise
        self._run, self._wrote_at = run, self._clock()
        self.written += len(self._batch)
        self._batch.clear()

    def _insert(
        self, file: sqlite3.Connection, writing: Writing, *, rows: Sequence[LedgerRow], run: int, offset: Seconds
    ) -> None:
        statement = writing.table.insert()
        tuples = [writing.values(row, run=run, offset=offset) for row in rows]
        file.execute("SAVEPOINT together")
        try:
            file.executemany(statement, tuples)
        except _BAD_ROW:
            file.execute("ROLLBACK TO together")
            for values in tuples:
                try:
                    file.execute(statement, values)
                except _BAD_ROW as error:
                    self.lost += 1
                    log.warning("ledger %s: a row of %s is left out: %s", self.path, writing.table.name, error)

    def _time_of_day(self) -> Seconds:
        """What turns the driver's clock into Unix time."""
        offset = self._wall() - self._clock()
        if abs(offset - self._offset) > CLOCK_SLIP:
            self._offset = offset
        return self._offset

    def _run_of(self, file: sqlite3.Connection, *, now: Seconds) -> int:
        """This run's number, with what is known of it brought up to date."""
        if self._run is not None:
            known = file.execute(
                # A clock that is set back takes the begin with it.
                "UPDATE runs SET started = min(started, ?1), seen = ?1, lost = ?2 WHERE run = ?3",
                (now, self.lost, self._run),
            ).rowcount
            if known:
                return self._run
        _close_open(file)
        added = file.execute(
            "INSERT INTO runs (started, seen, lost) VALUES (?, ?, ?)", (min(self._started, now), now, self.lost)
        )
        assert added.lastrowid is not None
        return added.lastrowid

    # -- the file

    def _opened(self) -> sqlite3.Connection:
        """The file; opened anew when it is not the one that is there now."""
        if self._file is not None and self._inode == _inode(self.path):
            return self._file
        self._drop_file()
        check_place(self.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.path)
        self._file = open_to_write(self.path, max_size=self._settings.max_size)
        self._inode = _inode(self.path)
        return self._file

    def _drop_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(sqlite3.Error):
                file.close()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        self._drop_file()
        if type(error) is sqlite3.DatabaseError or isinstance(error, DamagedError):
            self._move_aside(error)
        else:
            self._say("%s; requests are served, and what is not written is tried again", error)
        self._failing = True

    def _surprised(self) -> None:
        """A fault of ours: the rows at hand are given up, which may be what it comes from."""
        self.failures += 1
        self.lost += len(self._batch)
        self._batch.clear()
        self._drop_file()
        if not self._failing:
            log.exception(
                "ledger %s: cannot be written; requests are served, and %d rows are lost", self.path, self.lost
            )
        self._failing = True

    def _say(self, text: str, *values: object) -> None:
        """Once, until it is written again."""
        if not self._failing:
            log.error(f"ledger %s: {text}", self.path, *values)

    def _move_aside(self, error: Exception) -> None:
        try:
            moved = move_aside(self.path)
        except (OSError, LedgerError) as fault:
            self._say("%s; it is not moved aside: %s", error, fault)
        else:
            log.error("ledger %s: is damaged (%s); moved to %s, and begun anew", self.path, error, moved.name)


def _close_open(file: sqlite3.Connection) -> None:
    """What earlier runs had open when they ended: nobody knows what became of it."""
    seen = "(SELECT seen FROM runs WHERE runs.run = {0}.run)"
    file.execute(
        f"UPDATE {LOADS.name} SET over = {seen.format(LOADS.name)}, result = ? WHERE result IS NULL",  # noqa: S608
        (LoadEnd.UNKNOWN,),
    )
    file.execute(
        f"UPDATE {RESIDENCIES.name} SET until = {seen.format(RESIDENCIES.name)}, why = ? WHERE until IS NULL",  # noqa: S608
        (LeftWhy.UNKNOWN,),
    )


def _by_kind(rows: Iterable[LedgerRow]) -> dict[type[LedgerRow], list[LedgerRow]]:
    found: dict[type[LedgerRow], list[LedgerRow]] = {}
    for row in rows:
        found.setdefault(type(row), []).append(row)
    return found


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _locked(path: Path) -> IO[str]:
    """A lock that the system gives back when the process ends; two writers would close each other's rows."""
    lock = path.with_name(f"{path.name}.lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise LedgerError("another picker writes it; name another file in ledger.path") from None
    return lock
