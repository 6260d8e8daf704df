"""What columns a file of logs has.

In: a file. Out: its columns, and how SQL reads them. Not here: which column is which (see `mapping`), reading them all.

CSV: from its header. JSON: from its first documents, with those in documents by dotted names. Parquet: from its schema,
with those in structures.
"""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from lorapick.plan.logs.database import Database, name, text
from lorapick.plan.logs.found import LogFile
from lorapick.plan.logs.options import LogError
from lorapick.plan.logs.packed import check_whole, head

Kind: TypeAlias = Literal["text", "number", "time", "other"]
"""What a column holds; texts may hold anything."""
DOCUMENTS = 5_000
"""Of a JSON file that are looked at, at most."""
_LETTERS = 32 * 2**20
"""And so much of them."""
_DEEPEST = 5
_MOST_COLUMNS = 2_000
_DELIMITERS = ",\t;|"


class Column(NamedTuple):
    """One column."""

    name: str
    """Dotted, if it is within another."""
    sql: str
    """Of CSV and Parquet: an expression over the table. Of JSON: a pointer."""
    kind: Kind


class Shape(NamedTuple):
    """One file's form."""

    file: LogFile
    columns: tuple[Column, ...]
    dialect: str
    """Of CSV: its delimiter. Of JSON: DuckDB's name of the arrangement of documents. Else empty."""
    empty: bool = False
    """It has neither rows nor columns."""

    def names(self) -> list[str]:
        """Of the columns."""
        return [column.name for column in self.columns]


def shape(file: LogFile, database: Database, *, skip_damaged: bool = False) -> Shape:
    """The file's form.

    Raises:
        LogError: it cannot be read, or is no file of its format.
    """
    check_whole(file)
    if file.format == "csv":
        return _csv(file)
    if file.format == "json":
        return _json(file, database, skip_damaged=skip_damaged)
    found = database.columns(parquet_table(database.link(file)))
    return Shape(file, tuple(_parquet(found))[:_MOST_COLUMNS], "")


def parquet_table(links: str) -> str:
    """What Parquet is read with."""
    return f"read_parquet({links}, binary_as_string = true, hive_partitioning = false)"


def _parquet(found: list[tuple[str, Any]], outer: tuple[str, ...] = ()) -> Iterator[Column]:
    for column, kind in found:
        path = (*outer, column)
        if kind.id == "struct" and len(path) < _DEEPEST:
            yield from _parquet(list(kind.children), path)
        else:
            yield Column(".".join(path), ".".join(name(each) for each in path), _kind(kind.id))


_TIMES = {"date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"}
_NUMBERS = {
    *("tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint"),
    *("uhugeint", "float", "double", "decimal"),
}
_TEXTS = {"varchar", "enum", "uuid", "json"}


def _kind(duckdb_type: str) -> Kind:
    if duckdb_type in _TIMES:
        return "time"
    if duckdb_type in _NUMBERS:
        return "number"
    return "text" if duckdb_type in _TEXTS else "other"


def _csv(file: LogFile) -> Shape:
    begin = head(file)
    first = begin.decode("utf-8-sig", errors="replace")
    if begin[:2] in (b"\xff\xfe", b"\xfe\xff") or "\0" in first.partition("\n")[0]:
        raise LogError(f"{file.name}:1: no UTF-8 text")
    if not first.strip():
        return Shape(file, (), "", empty=True)
    delimiter = "\t" if file.suffix.startswith(".tsv") else _delimiter(first)
    try:
        header = next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter))
    except (csv.Error, StopIteration) as error:
        raise LogError(f"{file.name}:1: no header with names of columns: {error}") from None
    if len(header) > _MOST_COLUMNS:
        raise LogError(f"{file.name}:1: {len(header):,} columns; more than {_MOST_COLUMNS:,} are no log of requests")
    return Shape(file, tuple(Column(each.strip(), f"c{n}", "text") for n, each in enumerate(header)), delimiter)


def _delimiter(begin: str) -> str:
    """The one that splits the first line into most columns."""
    line = begin.splitlines()[0]
    return max(_DELIMITERS, key=lambda each: len(next(csv.reader([line], delimiter=each), ())))


def json_table(links: str, *, dialect: str, skip_damaged: bool) -> str:
    """What JSON is read with: a column `json` with a document in each row; NULL in place of a damaged line."""
    ignored = ", ignore_errors = true" if skip_damaged and dialect == "newline_delimited" else ""
    return f"read_json_objects({links}, format = {text(dialect)}{ignored})"


def _json(file: LogFile, database: Database, *, skip_damaged: bool) -> Shape:
    begin = head(file).lstrip(b"\xef\xbb\xbf \t\r\n")
    dialect = "array" if begin.startswith(b"[") else "newline_delimited"
    table = json_table(database.link(file), dialect=dialect, skip_damaged=skip_damaged)
    documents = database.run(
        f"SELECT json FROM (SELECT json, sum(length(json)) OVER (ROWS UNBOUNDED PRECEDING) AS letters "  # noqa: S608
        f"FROM (SELECT json FROM {table} LIMIT {DOCUMENTS})) WHERE letters <= {_LETTERS}"
    )
    found: dict[tuple[str, ...], None] = {}
    for (document,) in documents:
        if document is not None and len(found) < _MOST_COLUMNS:
            found.update(dict.fromkeys(_leaves(_decoded(document))))
    columns = tuple(Column(".".join(path), _pointer(path), "text") for path in found)
    return Shape(file, columns, dialect, empty=not documents)


def _decoded(document: str) -> Any:
    try:
        return json.loads(document)
    except (ValueError, RecursionError):
        return None


def _leaves(value: Any, outer: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths to what is no object."""
    if isinstance(value, dict) and value and len(outer) < _DEEPEST:
        for key, inner in value.items():
            yield from _leaves(inner, (*outer, key))
    elif outer and not isinstance(value, list | dict):
        yield outer


def _pointer(path: tuple[str, ...]) -> str:
    """RFC 6901."""
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)
