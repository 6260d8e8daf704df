"""Files of logs: which there are.

In: names of files, directories, patterns. Out: files with their format. Not here: what is in them (see `shapes`).
"""

import glob
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from lorapick.plan.logs.options import LogError

Format: TypeAlias = Literal["json", "csv", "parquet"]
FORMATS: dict[str, Format] = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COMPRESSED = (".gz", ".zst")
_SHOWN = ".json, .jsonl, .ndjson, .csv, .tsv (also .gz, .zst) or .parquet"


class LogFile(NamedTuple):
    """One file."""

    name: str
    """As it was asked for, or found."""
    path: Path
    """The same file, absolute, without symbolic links."""
    format: Format
    suffix: str
    """Of the name, from the format on: `.json.gz`."""


def find_files(patterns: Sequence[str]) -> list[LogFile]:
    """Files, files below directories, and what matches patterns; each file once, in order of names within a pattern.

    Raises:
        LogError: a pattern matches nothing, or a file that is named has no format that can be read.
    """
    found: dict[Path, LogFile] = {}
    for pattern in patterns:
        before = len(found)
        many = [file for path in _paths(pattern) if (file := _log_file(path)) is not None]
        for file in many:
            found.setdefault(file.path, file)
        if not many and len(found) == before:
            raise LogError(_nothing(pattern))
    if not found:
        raise LogError("no logs are named: give files, directories or patterns such as 'logs/2026-11-*.parquet'")
    return list(found.values())


def _paths(pattern: str) -> Iterator[Path]:
    """A name that exists is no pattern."""
    try:
        path = Path(pattern)
        if path.is_dir():
            yield from _below(path)
        elif path.exists():
            if split_suffix(path.name) is None:
                raise LogError(f"{pattern}: its name does not say its format: {_SHOWN}")
            yield path
        elif glob.has_magic(pattern):
            for name in sorted(glob.glob(pattern, recursive=True)):
                match = Path(name)
                yield from _below(match) if match.is_dir() else (match,)
    except (OSError, ValueError) as error:
        if isinstance(error, LogError):
            raise
        raise LogError(f"{pattern!r} cannot be read: {error}") from None


def _below(directory: Path) -> Iterable[Path]:
    """Hidden ones, and what writers of tables begin with an underscore, are left out."""
    hidden = (".", "_")
    return sorted(
        path
        for path in directory.rglob("*")
        if path.is_file() and not any(part.startswith(hidden) for part in path.relative_to(directory).parts)
    )


def _log_file(path: Path) -> LogFile | None:
    suffix = split_suffix(path.name)
    if suffix is None or not path.is_file():
        return None
    kind = next(suffix.removesuffix(packing) for packing in (*COMPRESSED, "") if suffix.endswith(packing))
    return LogFile(name=str(path), path=path.resolve(), format=FORMATS[kind], suffix=suffix)


def split_suffix(name: str) -> str | None:
    """The part of a file's name that says its format and compression; None: it does not."""
    lower = name.lower()
    packing = next((each for each in COMPRESSED if lower.endswith(each)), "")
    kind = Path(lower.removesuffix(packing)).suffix
    if kind not in FORMATS or (packing and FORMATS[kind] == "parquet"):
        return None
    return kind + packing


def _nothing(pattern: str) -> str:
    if Path(pattern).is_dir():
        return f"{pattern}: there is no log below it: {_SHOWN}"
    if "://" in pattern:
        return f"{pattern}: only files of this machine are read: copy them, or count them where they are (--sql)"
    if glob.has_magic(pattern):
        return f"{pattern}: matches no log: {_SHOWN}"
    return f"{pattern}: there is no such file"
