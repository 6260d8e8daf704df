"""DuckDB over files of logs, kept small and to itself.

In: files, options. Out: a database that reads those files and nothing else; its errors in our words. Not here: what it
is asked (see `staging`, `queries`).

Files are known to it by links with plain names, so that no text of a file's name gets into statements that read. It may
open these files and its own folder, no others; it loads no extensions, so it has no network. What does not fit into
memory is in a private folder, which goes with the database.
"""

import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from lorapick.model.units import Ratio, Seconds
from lorapick.plan.logs.found import LogFile
from lorapick.plan.logs.options import LogError, LogOptions

MISSING = "logs are counted with DuckDB, which is not installed: pip install 'lorapick[logs]'"
_LINE = re.compile(r"(CSV Error on Line: |in line |in record/value )(\d+)", re.IGNORECASE)
_KIND = re.compile(r"^[A-Z][A-Za-z ]{2,30} Error: ")
_BYTE = re.compile(r'^Malformed JSON in file ".*?", at byte (\d+) in [a-z/]+ \d+: ', re.DOTALL)
_ADVICE = ("Possible ", "* ", "LINE ", "Try ", "file = ", "file=", "This limit ")
_LONGEST = 400
_REMEDY = "--skip-damaged leaves out what cannot be read"
_TEXT_ERRORS = (RuntimeError, UnicodeError)
"""What DuckDB's binding raises for names and values that Python cannot have as texts."""
_EVERY: Seconds = 0.2


class Database:
    """Runs SQL."""

    def __init__(self, connection: Any, links: dict[Path, str], *, duckdb: Any) -> None:
        self._error: type[Exception] = duckdb.Error
        self._memory: type[Exception] = duckdb.OutOfMemoryException
        self._connection = connection
        self._links = links
        self._names: dict[str, str] = {}

    def link(self, file: LogFile) -> str:
        """The file as a literal of SQL."""
        link = self._links[file.path]
        self._names[link] = file.name
        return text(link)

    def run(self, sql: str, *, progress: Callable[[Ratio], None] | None = None) -> list[tuple[Any, ...]]:
        """Rows of a statement's result; `progress` is told, from another thread, the share that is done.

        Raises:
            LogError: it fails; with file and line, where DuckDB tells them.
        """
        try:
            with _watched(self._connection, progress):
                rows: list[tuple[Any, ...]] = self._connection.execute(sql).fetchall()
        except self._memory:
            raise LogError("DuckDB needs more memory than it may take (--memory), or its folder is full") from None
        except (self._error, *_TEXT_ERRORS) as error:
            raise LogError(self._in_words(error, sql=sql)) from None
        return rows

    def columns(self, table: str) -> list[tuple[str, Any]]:
        """Columns of what can be read from, with DuckDB's types.

        Raises:
            LogError: it cannot be read.
        """
        try:
            relation = self._connection.sql(f"SELECT * FROM {table}")  # noqa: S608 - of our own making
            return list(zip(relation.columns, relation.types, strict=True))
        except (self._error, *_TEXT_ERRORS) as error:
            raise LogError(self._in_words(error, sql=table)) from None

    def _in_words(self, error: Exception, *, sql: str) -> str:
        """`file:line: what is wrong`.

        Raises:
            KeyboardInterrupt: the statement was interrupted, which DuckDB's binding says in a way of its own.
        """
        if isinstance(error, RuntimeError) and "interrupted" in str(error):
            raise KeyboardInterrupt
        message = "a text that is no UTF-8" if isinstance(error, _TEXT_ERRORS) else str(error)
        files = [name for link, name in self._names.items() if link in message]
        files += [name for link, name in self._names.items() if link in sql]
        file = files[0] if files else "the logs"
        line = _LINE.search(message)
        place = file if line is None else self._place(line, file)
        plain = _BYTE.sub(r"at byte \1 no JSON: ", _KIND.sub("", message))
        for link, name in self._names.items():
            plain = plain.replace(link, name)
        told = [each.strip() for each in plain.splitlines()]
        kept = [each for each in told if each and not each.startswith(_ADVICE) and not _LINE.match(each)]
        remedy = "" if line is None else f"; {_REMEDY}"
        return f"{place}: {'; '.join(kept[:3])[:_LONGEST].rstrip('.')}{remedy}"

    def _place(self, line: re.Match[str], file: str) -> str:
        """`file:line` of a damaged line, or the number of a damaged document in an array.

        Of JSON, DuckDB names the document after the damaged one, and counts no lines without any.
        """
        kind, number = line[1].lower().strip(), int(line[2])
        if kind.startswith("csv"):
            return f"{file}:{number}"
        if kind != "in line":
            return f"{file}: document {number - 1} of the array"
        path = next((path for path, link in self._links.items() if self._names.get(link) == file), None)
        return f"{file}:{_line_of(path, number - 1)}"


def _line_of(path: Path | None, document: int) -> int:
    """Number of the line with this document, both from 1; packed files are taken to have no empty lines."""
    if path is None or path.suffix in (".gz", ".zst"):
        return document
    with path.open("rb") as lines:
        numbers = (number for number, line in enumerate(lines, start=1) if line.strip())
        return next(islice(numbers, document - 1, None), document)


@contextmanager
def _watched(connection: Any, progress: Callable[[Ratio], None] | None) -> Iterator[None]:
    """Ask how far the statement of the block is, now and then."""
    if progress is None:
        yield
        return
    over = threading.Event()
    watching = {"progress": progress, "over": over}
    thread = threading.Thread(target=_watch, args=(connection,), kwargs=watching, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(connection: Any, *, progress: Callable[[Ratio], None], over: threading.Event) -> None:
    most = 0.0
    while not over.wait(_EVERY):
        share = connection.query_progress() / 100  # below 0: it cannot say
        if most < share <= 1.0:
            most = share
            progress(share)


def text(value: str) -> str:
    """A text as a literal of SQL."""
    if "\0" in value:
        raise LogError(f"{value!r}: a name has no character of number 0")
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """A name, of a column say, as SQL has it."""
    return '"' + value.replace('"', '""') + '"'


@contextmanager
def opened(files: Sequence[LogFile], *, options: LogOptions) -> Iterator[Database]:
    """A database that is gone after the block, with all that it wrote.

    Raises:
        LogError: DuckDB is not installed, or its folder cannot be made.
    """
    duckdb = _duckdb()
    try:
        folder = tempfile.TemporaryDirectory(prefix="lorapick-logs-", ignore_cleanup_errors=True)
    except OSError as error:
        raise LogError(f"no temporary folder (TMPDIR): {error}") from None
    with folder:
        place = Path(folder.name).resolve()
        links = {file.path: _link(file, place / f"log-{number:06}{file.suffix}") for number, file in enumerate(files)}
        try:
            with duckdb.connect(str(place / "counting.duckdb"), config=_settings(place, options)) as connection:
                connection.execute(_closed(files, place))
                yield Database(connection, links, duckdb=duckdb)
        except (duckdb.Error, OSError) as error:
            raise LogError(f"DuckDB cannot work in {place} (TMPDIR): {error}") from None


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise LogError(MISSING) from None
    return duckdb


def _link(file: LogFile, link: Path) -> str:
    link.symlink_to(file.path)
    return str(link)


def _settings(place: Path, options: LogOptions) -> dict[str, Any]:
    return {
        "threads": options.threads,
        "memory_limit": f"{options.memory}B",
        "temp_directory": str(place / "spilled"),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }


def _closed(files: Sequence[LogFile], place: Path) -> str:
    """Statements after which only these files can be opened.

    Times without a zone are taken for UTC. How far a statement is, is known, and not printed.
    """
    paths = ", ".join(text(str(file.path)) for file in files)
    return (
        "SET TimeZone = 'UTC'; SET enable_progress_bar = true; SET enable_progress_bar_print = false; "
        f"SET allowed_directories = [{text(f'{place}/')}]; SET allowed_paths = [{paths}]; "
        "SET enable_external_access = false; SET lock_configuration = true"
    )
