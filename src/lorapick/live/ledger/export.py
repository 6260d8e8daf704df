"""The ledger as Parquet, one file for each table.

In: a ledger's file, a directory or a `.parquet` file. Out: `requests.parquet` and so on, or the requests alone.
Not here: a reader of Parquet. Written with DuckDB, which reads lines of JSON that are made of SQLite's rows, so that
no table need fit into memory.
"""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from lorapick.live.ledger.file import LedgerError, open_to_read
from lorapick.live.ledger.schema import REQUESTS, TABLES, Table

_TYPES = {"REAL": "DOUBLE", "INTEGER": "BIGINT", "TEXT": "VARCHAR"}
_ROWS_AT_ONCE = 10_000


def export(path: Path, target: Path) -> dict[Path, int]:
    """Write the tables into a directory, or the requests into a file; rows by file.

    Raises:
        LedgerError: the ledger cannot be read, the target not written, or DuckDB is not installed.
    """
    duckdb = _duckdb()
    one = target.suffix == ".parquet"
    wanted = {target: REQUESTS} if one else {target / f"{table.name}.parquet": table for table in TABLES}
    (target.parent if one else target).mkdir(parents=True, exist_ok=True)
    written: dict[Path, int] = {}
    with closing(open_to_read(path)) as file, tempfile.TemporaryDirectory() as scratch:
        try:
            file.execute("BEGIN")  # one state of the file for all tables
            for place, table in wanted.items():
                lines = Path(scratch) / f"{table.name}.csv"
                written[place] = _write_lines(file, table, to=lines)
                _convert(duckdb, lines, to=place, columns=_columns(file, table))
        except (sqlite3.Error, duckdb.Error) as error:
            raise LedgerError(f"ledger {path}: cannot be exported: {error}") from None
    return written


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise LedgerError(
            "Parquet is written with DuckDB, which is not installed: pip install 'lorapick[parquet]'"
        ) from None
    return duckdb


def _columns(file: sqlite3.Connection, table: Table) -> dict[str, str]:
    """Types by column."""
    return {name: _TYPES[kind] for _, name, kind, *_ in file.execute(f"PRAGMA table_info({table.name})")}


def _write_lines(file: sqlite3.Connection, table: Table, *, to: Path) -> int:
    cursor = file.execute(table.select("TRUE"))
    encoder = msgspec.json.Encoder()
    count = 0
    with to.open("wb") as out:
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            count += len(rows)
            out.writelines(encoder.encode(dict(zip(table.columns, row, strict=True))) + b"\n" for row in rows)
    return count


def _convert(duckdb: Any, lines: Path, *, to: Path, columns: dict[str, str]) -> None:
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        read = database.read_json(str(lines), format="newline_delimited", columns=columns)
        read.write_parquet(str(to), compression="zstd")
