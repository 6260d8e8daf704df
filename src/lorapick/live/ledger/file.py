"""Opening a ledger's file, to write it or to read it.

In: a path. Out: a connection to a file of ours, of a format that we know. Not here: what is in it (`schema`).
"""

import sqlite3
from pathlib import Path
from urllib.parse import quote

from lorapick.live.ledger.schema import APPLICATION, SCHEMA, VERSION
from lorapick.model.units import Bytes, Seconds

BUSY: Seconds = 2.0
"""For so long somebody else's lock is waited for."""
WAL_LIMIT: Bytes = 8 * 1024 * 1024
"""Size to which the write-ahead log is cut back."""


class LedgerError(Exception):
    """The ledger cannot be used; the message names the file, the reason and what to do."""


def open_to_write(path: Path, *, max_size: Bytes) -> sqlite3.Connection:
    """Open the file, or make it.

    Raises:
        LedgerError: it is another program's, or of a later format.
        sqlite3.Error: it is damaged, locked, or cannot be made.
        OSError: its directory cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        _remove_journals(path)
    file = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    try:
        if not _known(file, path):
            file.executescript(SCHEMA)
        file.execute("PRAGMA synchronous = NORMAL")
        file.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT}")
        (page_size,) = file.execute("PRAGMA page_size").fetchone()
        # SQLite itself holds the bound, whatever we make of it.
        file.execute(f"PRAGMA max_page_count = {max(1, max_size // page_size)}")
    except BaseException:
        file.close()
        raise
    return file


def _remove_journals(path: Path) -> None:
    """Of a file that somebody deleted: SQLite would take them for those of the new one."""
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open the file, while a picker may be writing it; nothing in it is changed.

    Raises:
        LedgerError: there is none, it is no ledger, damaged, or of a later format.
    """
    if not path.is_file():
        raise LedgerError(f"no ledger at {path}; name the file of `ledger.path` with --file")
    where = f"file:{quote(str(path.absolute()))}"
    try:
        try:
            return _checked(sqlite3.connect(f"{where}?mode=ro", uri=True, timeout=BUSY, isolation_level=None), path)
        except sqlite3.OperationalError:
            # A copy in a directory that cannot be written: without a log of writes there is nothing to read but this.
            if path.with_name(f"{path.name}-wal").exists():
                raise
            return _checked(sqlite3.connect(f"{where}?mode=ro&immutable=1", uri=True, isolation_level=None), path)
    except sqlite3.Error as error:
        raise LedgerError(f"ledger {path}: {error}; is it a ledger of lorapick?") from None


def _checked(file: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    try:
        if not _known(file, path):
            raise LedgerError(f"ledger {path} is empty; has a picker begun to write it?")
    except BaseException:
        file.close()
        raise
    return file


def _known(file: sqlite3.Connection, path: Path) -> bool:
    """Whether there are tables in it, and ours; raises LedgerError when they are not."""
    application, version = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    tables = file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != APPLICATION:
        raise LedgerError(f"{path} is a database of another program; name another file in ledger.path")
    if version > VERSION:
        raise LedgerError(
            f"ledger {path} has format {version} and this program knows {VERSION}; update it, or name another file"
        )
    return bool(tables)
