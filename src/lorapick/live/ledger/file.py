"""Opening a ledger's file, to write it or to read it.

In: a path. Out: a connection to a file of ours, of a format that we know. Not here: what is in it (`schema`).
"""

import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from lorapick.live.ledger.schema import APPLICATION, SCHEMA, TABLES, UPGRADES, VERSION
from lorapick.model.units import Bytes, Seconds

BUSY: Seconds = 2.0
"""For so long somebody else's lock is waited for."""
WAL_LIMIT: Bytes = 8 * 1024 * 1024
"""Size to which the write-ahead log is cut back; nothing is written while it cannot be."""
MOST_DAMAGED = 5
"""Damaged files that are kept."""

_HEADER: Bytes = 72
_MAGIC = b"SQLite format 3\0"
_APPLICATION_AT = 68
"""Where SQLite's file format has the application's id, four bytes, the highest first."""


class LedgerError(Exception):
    """The ledger cannot be used; the message names the file, the reason and what to do."""


class DamagedError(LedgerError):
    """It is a ledger of ours, and something of it is missing."""


def check_place(path: Path) -> None:
    """Whether a ledger can be here: there is nothing, or a database.

    Raises:
        LedgerError: there is something else, which nobody meant to be written.
        OSError: it cannot be read.
    """
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(kind):
        if stat.S_ISDIR(kind):
            raise LedgerError(f"{path} is a directory; name a file in ledger.path, such as {path / 'ledger.sqlite'}")
        raise LedgerError(f"{path} is no regular file; name another in ledger.path")
    header = _header(path)
    if header and not header.startswith(_MAGIC):
        raise LedgerError(f"{path} is no ledger, and is left alone; name another file in ledger.path, or remove it")


def is_ours(path: Path) -> bool:
    """Whether the first bytes say that it is a ledger, whatever the others are."""
    header = _header(path)
    return header.startswith(_MAGIC) and header[_APPLICATION_AT:] == APPLICATION.to_bytes(4, "big")


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEADER)


def move_aside(path: Path) -> Path:
    """Rename a damaged ledger, with its journals; its new name.

    Raises:
        LedgerError: it is none of ours, or there are too many damaged ones already.
        OSError: it cannot be renamed.
    """
    if not is_ours(path):
        raise LedgerError("it is no ledger, and is left alone; name another file in ledger.path, or remove it")
    names = [f"{path.name}.damaged{'' if number == 1 else f'-{number}'}" for number in range(1, MOST_DAMAGED + 1)]
    free = [path.with_name(name) for name in names if not path.with_name(name).exists()]
    if not free:
        raise LedgerError(f"{MOST_DAMAGED} damaged ones are kept beside it already; remove some")
    for end in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            path.with_name(path.name + end).replace(free[0].with_name(free[0].name + end))
    return free[0]


def cut_log(file: sqlite3.Connection, path: Path) -> None:
    """Bound the write-ahead log, which grows for as long as somebody reads an old state of the file.

    Raises:
        LedgerError: it is beyond its bound, and has to be.
    """
    log = path.with_name(f"{path.name}-wal")
    if _size(log) <= WAL_LIMIT:
        return
    file.execute("PRAGMA busy_timeout = 0")  # who reads for long is not waited for
    try:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        file.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY)}")
    size = _size(log)
    if size > WAL_LIMIT:
        raise LedgerError(
            f"its log has {size} bytes, {WAL_LIMIT} are the most, because another program reads the ledger; end it"
        )


def _size(path: Path) -> Bytes:
    try:
        return path.stat().st_size
    except OSError:
        return 0


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
        _upgrade(file)
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


def _upgrade(file: sqlite3.Connection) -> None:
    """Bring a ledger of ours to today's format; whatever else it is stays as it is."""
    application, version = _marks(file)
    while application == APPLICATION and version in UPGRADES:
        file.executescript(f"BEGIN; {UPGRADES[version]} PRAGMA user_version = {version + 1}; COMMIT;")
        version += 1


def _marks(file: sqlite3.Connection) -> tuple[int, int]:
    """Whose it is, and its format."""
    application, version = (file.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    return application, version


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
    application, version = _marks(file)
    tables = file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != APPLICATION:
        raise LedgerError(f"{path} is a database of another program; name another file in ledger.path")
    if version > VERSION:
        raise LedgerError(
            f"ledger {path} has format {version} and this program knows {VERSION}; update it, or name another file"
        )
    if tables and version < VERSION:
        raise LedgerError(
            f"ledger {path} has the old format {version}, this program knows {VERSION}; a picker that writes it brings "
            "formats from 1 on up to date; move an older one away, or name another file in ledger.path"
        )
    if tables and (missing := _missing(file)):
        raise DamagedError(f"ledger {path} lacks {missing}; move it away, or name another file in ledger.path")
    return bool(tables)


def _missing(file: sqlite3.Connection) -> str:
    """What our tables lack first."""
    expected = {"runs": ("run", "started", "seen", "lost"), **{table.name: table.columns for table in TABLES}}
    for table, columns in expected.items():
        there = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
        for column in columns:
            if column not in there:
                return f"column {table}.{column}" if there else f"table {table}"
    return ""
