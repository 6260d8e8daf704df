"""How rows of the ledger lie in SQLite: one table for each kind of row, one column for each field, and the runs.

In: the structs of `model.ledger`. Out: statements, and tuples in the order of their columns; and back.
Not here: files and threads (see `live.ledger.file`, `live.ledger.writer`).
"""

import enum
import types
import typing
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from lorapick.model.ledger import LedgerRow, LoadRow, MarkRow, OccupancyRow, RequestRow, ResidencyRow
from lorapick.model.units import Seconds

VERSION = 3
"""Format of the file; a file of a later one is refused."""
UPGRADES = {
    1: "ALTER TABLE requests ADD COLUMN prefilled_by TEXT;",
    2: (
        "ALTER TABLE requests ADD COLUMN arm TEXT; ALTER TABLE requests ADD COLUMN would_pod TEXT;"
        " ALTER TABLE requests ADD COLUMN would_be TEXT;"
    ),
}
"""By the format that a file has: what makes the next one of it."""
APPLICATION = 0x10_4A_1ED6
"""Says that a file is ours."""

RUN_BITS = 40
"""Numbers of loads and stays within one run are below this power of two."""
_SQL = {float: "REAL", int: "INTEGER", bool: "INTEGER", str: "TEXT", dict: "TEXT"}


def _plain(hint: Any) -> type:
    """The one type of a field beside None."""
    if isinstance(hint, types.UnionType):
        (hint,) = (each for each in typing.get_args(hint) if each is not types.NoneType)
    hint = typing.get_origin(hint) or hint
    return str if issubclass(hint, enum.StrEnum) else hint


class Table(NamedTuple):
    """Where rows of one kind lie."""

    name: str
    kind: type[msgspec.Struct]
    times: tuple[str, ...]
    """Fields that are points in time."""
    age: str
    """The field that says how old a row is."""
    numbered: bool = False
    """Whether rows have a number, under which they are told again when they are over."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All, the run first."""
        return ("run", *self.kind.__struct_fields__)

    def create(self) -> str:
        """Statements that make it."""
        hints = typing.get_type_hints(self.kind)
        columns = ", ".join(f"{name} {_SQL[_plain(hints[name])]}" for name in self.kind.__struct_fields__)
        key = ", PRIMARY KEY (run, id)) WITHOUT ROWID" if self.numbered else ")"
        return (
            f"CREATE TABLE {self.name} (run INTEGER NOT NULL, {columns}{key};\n"
            f"CREATE INDEX {self.name}_age ON {self.name} ({self.age});"
        )

    def insert(self) -> str:
        """Statement that adds a row, or says it again."""
        places = ", ".join("?" * len(self.columns))
        return f"INSERT OR REPLACE INTO {self.name} ({', '.join(self.columns)}) VALUES ({places})"  # noqa: S608 - our own names

    def select(self, where: str) -> str:
        """Statement that reads rows, the run first."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name} WHERE {where}"  # noqa: S608 - our own names


REQUESTS = Table("requests", RequestRow, ("arrived", "ended", "dispatched"), "ended")
LOADS = Table("loads", LoadRow, ("begun", "over"), "over", numbered=True)
RESIDENCIES = Table("residencies", ResidencyRow, ("since", "until", "last_request"), "until", numbered=True)
MARKS = Table("marks", MarkRow, ("t",), "t")
COUNTS = Table("occupancy", OccupancyRow, ("t",), "t")
TABLES = (REQUESTS, LOADS, RESIDENCIES, MARKS, COUNTS)

SCHEMA = "\n".join(
    (
        "PRAGMA auto_vacuum = INCREMENTAL;",
        "PRAGMA journal_mode = WAL;",
        "BEGIN;",
        "CREATE TABLE runs (run INTEGER PRIMARY KEY, started REAL NOT NULL, seen REAL NOT NULL, lost INTEGER);",
        *(table.create() for table in TABLES),
        f"PRAGMA application_id = {APPLICATION};",
        f"PRAGMA user_version = {VERSION};",
        "COMMIT;",
    )
)


class Writing:
    """Makes tuples of rows of one kind."""

    def __init__(self, table: Table) -> None:
        self.table = table
        fields = table.kind.__struct_fields__
        self._times = tuple(fields.index(name) for name in table.times)
        hints = typing.get_type_hints(table.kind)
        self._json = tuple(fields.index(name) for name in fields if _plain(hints[name]) is dict)

    def values(self, row: LedgerRow, *, run: int, offset: Seconds) -> tuple[Any, ...]:
        """The row's columns; `offset` turns the driver's clock into Unix time."""
        values: list[Any] = [*msgspec.structs.astuple(row)]
        for place in self._times:
            if values[place] is not None:
                values[place] += offset
        for place in self._json:
            values[place] = msgspec.json.encode(values[place]).decode()
        return (run, *values)


RowT = TypeVar("RowT", bound=msgspec.Struct)


class Reading:
    """Makes rows of one kind from columns."""

    def __init__(self, table: Table, *, numbers: Sequence[str] = ()) -> None:
        """`numbers` are fields with a number that is unique within a run."""
        self._kind = table.kind
        self._numbers = tuple(numbers)
        self._fields = table.kind.__struct_fields__
        hints = typing.get_type_hints(table.kind)
        self._convert = tuple((name, convert) for name in self._fields if (convert := _reader(hints[name])) is not None)

    def row(self, columns: Sequence[Any]) -> Any:
        """The row, its numbers made unique over all runs."""
        values = dict(zip(self._fields, columns[1:], strict=True))
        for name, convert in self._convert:
            if values[name] is not None:
                values[name] = convert(values[name])
        for name in self._numbers:
            if values[name] is not None:
                values[name] += columns[0] << RUN_BITS
        return self._kind(**values)


def _reader(hint: Any) -> Any:
    """What makes a field's value of SQLite's; None: nothing need be done."""
    kinds = [each for each in (typing.get_args(hint) or (hint,)) if isinstance(each, type)]
    for kind in kinds:
        if issubclass(kind, enum.StrEnum) or kind is bool:
            return kind
    return msgspec.json.decode if _plain(hint) is dict else None
