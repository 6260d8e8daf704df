"""Logs of all formats brought into one table.

In: files. Out: the table `staged` in a database, and what was left out. Not here: counting (see `counting`).

A row is (adapter or NULL, time_seconds or NULL, prompt_tokens or NULL, output_tokens or NULL, whether the line is
damaged). Conversions never fail: what cannot be read is NULL.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lorapick.model.units import Ratio
from lorapick.plan.logs.database import Database, text
from lorapick.plan.logs.found import LogFile
from lorapick.plan.logs.mapping import OPTIONS, Roles, assign, taken
from lorapick.plan.logs.options import LogError, LogOptions
from lorapick.plan.logs.shapes import Column, Shape, json_table, parquet_table, shape

_TABLE = (
    "CREATE TABLE staged (adapter VARCHAR, time_seconds DOUBLE, prompt_tokens BIGINT, output_tokens BIGINT, "
    "damaged BOOLEAN)"
)
_AT_ONCE = 256
"""Files in one statement."""
_LAST_TIME = 253_402_300_800
"""The year 10000, in seconds since 1970."""
_MOST_TOKENS = 1_000_000_000
_LINES_OF_WEB_SERVERS = "%d/%b/%Y:%H:%M:%S %z"


class Staged(NamedTuple):
    """What came of it."""

    columns: dict[str, str]
    """By role."""
    damaged: int
    """Lines left out."""
    skipped: tuple[str, ...]
    """Files left out, or of which only a part was read."""


class _Lot(NamedTuple):
    """Files that are read by one statement."""

    shapes: tuple[Shape, ...]
    roles: Roles

    @property
    def first(self) -> Shape:
        return self.shapes[0]

    def words(self) -> str:
        more = len(self.shapes) - 1
        return self.first.file.name + (f" and {more:,} more of its form" if more else "")


def stage(
    files: Sequence[LogFile], database: Database, *, options: LogOptions, progress: Callable[[Ratio], None]
) -> Staged:
    """Read all files.

    Raises:
        LogError: a file cannot be read, or has no column of times or adapters.
    """
    staging = _Staging(database, options)
    shapes = [found for file in files if (found := staging.shape(file)) is not None]
    if not shapes:
        raise LogError(f"{files[0].name}{' and all others' if len(files) > 1 else ''}: no rows")
    roles = assign(shapes, options)
    database.run(_TABLE)
    lots = _lots(shapes, roles)
    for number, lot in enumerate(lots):
        staging.read(lot, progress=_part(progress, number, of=len(lots)))
        progress((number + 1) / len(lots))
    return Staged(columns=taken(roles), damaged=staging.damaged, skipped=tuple(staging.skipped))


def _part(progress: Callable[[Ratio], None], number: int, *, of: int) -> Callable[[Ratio], None]:
    return lambda share: progress((number + share) / of)


def _lots(shapes: Sequence[Shape], roles: Sequence[Roles]) -> list[_Lot]:
    alike: dict[tuple[object, ...], list[Shape]] = {}
    keys: dict[tuple[object, ...], Roles] = {}
    for each, role in zip(shapes, roles, strict=True):
        # Files of JSON are alike where the columns that are read have the same names; others where all have.
        columns = () if each.file.format == "json" else each.columns
        key = (each.file.format, each.dialect, columns, role)
        keys[key] = role
        alike.setdefault(key, []).append(each)
    return [
        _Lot(tuple(many[begin : begin + _AT_ONCE]), keys[key])
        for key, many in alike.items()
        for begin in range(0, len(many), _AT_ONCE)
    ]


class _Staging:
    """Reads lot by lot, and counts what it leaves out."""

    def __init__(self, database: Database, options: LogOptions) -> None:
        self._database = database
        self._options = options
        self.damaged = 0
        self.skipped: list[str] = []

    def shape(self, file: LogFile) -> Shape | None:
        """None: it is empty, or damaged and to be left out."""
        try:
            found = shape(file, self._database, skip_damaged=self._options.skip_damaged)
        except LogError:
            if not self._options.skip_damaged:
                raise
            self.skipped.append(file.name)
            return None
        return None if found.empty else found

    def read(self, lot: _Lot, *, progress: Callable[[Ratio], None] | None = None) -> None:
        """Rows into the table. With damaged files left out, a lot that fails is read file by file.

        Raises:
            LogError: a file is damaged, and none is to be left out; or no row has a time.
        """
        try:
            rows, timed = self._insert(lot, progress=progress)
        except LogError:
            if not self._options.skip_damaged:
                raise
            if len(lot.shapes) == 1:
                self.skipped.append(lot.first.file.name)
                return
            for each in lot.shapes:
                self.read(_Lot((each,), lot.roles))
            return
        if rows and not timed:
            raise LogError(self._without_times(lot))

    def _insert(self, lot: _Lot, *, progress: Callable[[Ratio], None] | None) -> tuple[int, int]:
        """Rows, and how many of them have a time."""
        run = self._database.run
        before = run("SELECT count(time_seconds) FROM staged")[0][0]
        rows = run(f"INSERT INTO staged {self._select(lot)}", progress=progress)[0][0]
        if self._options.skip_damaged and lot.first.file.format == "csv":
            self.damaged += run("SELECT count(DISTINCT (file_id, line)) FROM reject_errors")[0][0]
            run("DROP TABLE reject_errors")
            run("DROP TABLE reject_scans")
        return rows, run("SELECT count(time_seconds) FROM staged")[0][0] - before

    def _select(self, lot: _Lot) -> str:
        table, values = self._source(lot)
        roles = lot.roles
        return (
            f"SELECT adapter, CASE WHEN seconds >= 0 AND seconds < {_LAST_TIME} THEN seconds END, prompt_tokens, "  # noqa: S608 - names are quoted
            "output_tokens, damaged FROM (SELECT "
            f"{_adapter(roles.adapter, values, base=self._options.base)} AS adapter, "
            f"{_seconds(roles.time, values)} AS seconds, {_tokens(roles.prompt_tokens, values)} AS prompt_tokens, "
            f"{_tokens(roles.output_tokens, values)} AS output_tokens, {values.get('', 'FALSE')} AS damaged "
            f"FROM {table} AS logs)"
        )

    def _source(self, lot: _Lot) -> tuple[str, dict[str, str]]:
        """What to read from, and expressions by those of columns; that of an empty one: whether a row is damaged."""
        links = "[" + ", ".join(self._database.link(each.file) for each in lot.shapes) + "]"
        if lot.first.file.format == "parquet":
            return parquet_table(links), {}
        if lot.first.file.format == "csv":
            return _csv_table(links, lot.first, skip_damaged=self._options.skip_damaged), {}
        table = json_table(links, dialect=lot.first.dialect, skip_damaged=self._options.skip_damaged)
        pointers = list(dict.fromkeys(column.sql for column in lot.roles if column is not None))
        listed = ", ".join(text(pointer) for pointer in pointers)
        values = {pointer: f"found[{number + 1}]" for number, pointer in enumerate(pointers)}
        # All at once: each call would parse the document again.
        inner = f"(SELECT json IS NULL AS damaged, json_extract_string(json, [{listed}]) AS found FROM {table})"  # noqa: S608
        return inner, {**values, "": "damaged"}

    def _without_times(self, lot: _Lot) -> str:
        table, values = self._source(lot)
        column = lot.roles.time
        value = values.get(column.sql, column.sql)
        some = self._database.run(
            f"SELECT CAST({value} AS VARCHAR) FROM {table} AS logs WHERE {value} IS NOT NULL LIMIT 1"  # noqa: S608
        )
        has = f"holds no times, but {some[0][0][:60]!r}, say" if some else "is empty"
        names = [name for name in lot.first.names() if name != column.name]
        others = f"; other columns: {', '.join(names[:30])}" if names else ""
        return f"{lot.words()}: column {column.name!r} {has}; say which has ({OPTIONS['time']}){others}"


def _csv_table(links: str, form: Shape, *, skip_damaged: bool) -> str:
    columns = ", ".join(f"{column.sql}: 'VARCHAR'" for column in form.columns)
    rejects = ", store_rejects = true" if skip_damaged else ""
    return (
        f"read_csv({links}, auto_detect = false, header = true, delim = {text(form.dialect)}, quote = '\"', "
        f"escape = '\"', columns = {{{columns}}}{rejects})"
    )


def _adapter(column: Column | None, values: dict[str, str], *, base: Sequence[str]) -> str:
    if column is None:
        return "NULL"
    value = f"CAST({values.get(column.sql, column.sql)} AS VARCHAR)"
    others = ", ".join(text(name) for name in ("", *base))
    return f"CASE WHEN {value} NOT IN ({others}) THEN {value} END"


def _seconds(column: Column, values: dict[str, str]) -> str:
    value = values.get(column.sql, column.sql)
    if column.kind == "time":
        return f"epoch({value})"
    if column.kind == "number":
        return _by_magnitude(f"CAST({value} AS DOUBLE)")
    return (
        f"coalesce({_by_magnitude(f'TRY_CAST({value} AS DOUBLE)')}, epoch(TRY_CAST({value} AS TIMESTAMPTZ)), "
        f"epoch(try_strptime({value}, {text(_LINES_OF_WEB_SERVERS)})))"
    )


def _by_magnitude(value: str) -> str:
    """Seconds of a number: seconds up to the year 5138, else milliseconds from 1973 on, micro- or nanoseconds."""
    return (
        f"CASE WHEN {value} < 1e11 THEN {value} WHEN {value} < 1e14 THEN {value} / 1e3 "
        f"WHEN {value} < 1e17 THEN {value} / 1e6 WHEN {value} < 1e20 THEN round({value} / 1e3) / 1e6 END"
    )


def _tokens(column: Column | None, values: dict[str, str]) -> str:
    if column is None:
        return "NULL"
    value = f"TRY_CAST({values.get(column.sql, column.sql)} AS DOUBLE)"
    return f"CASE WHEN {value} >= 0 AND {value} <= {_MOST_TOKENS} THEN CAST(round({value}) AS BIGINT) END"
