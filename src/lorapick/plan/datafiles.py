"""Files of lines, compressed or not, and where the project's own are.

In: paths. Out: lines of bytes, one at a time; memory does not grow with the file. Not here: what lines mean
(`wire.traces`).
"""

import gzip
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

import zstandard

from lorapick.model.units import Bytes

LONGEST_LINE = 2**20
"""Bytes; a longer line is no line of a trace, and would have to be held."""
_WINDOW = 2**27
"""Bytes that a Zstandard frame may ask us to hold: what `zstd` itself accepts."""
_CHUNK = 2**16
_COMPRESSED_CHUNK = 2**10
"""Small, since a kilobyte of repetitions can become 32 MB."""
_PLACES = (Path(__file__).resolve().parents[3] / "data", Path(sys.prefix).resolve() / "share" / "lorapick")
"""In the repository, and where a wheel puts it."""


class DataFileError(OSError):
    """A file cannot be read: its path, and why."""


def data_path(name: str) -> Path:
    """Where a file that comes with the project is; `name` is its path under `data/`.

    Raises:
        DataFileError: there is none of that name; the message lists those there are.
    """
    for place in _PLACES:
        path = (place / name).resolve()
        if path.is_relative_to(place) and path.is_file():
            return path
    raise DataFileError(f"no file {name} comes with lorapick; there are {', '.join(data_names()) or 'none'}")


def data_names() -> list[str]:
    """Names that `data_path` knows, in order."""
    found = [path.relative_to(place) for place in _PLACES for path in place.glob("*/*") if path.is_file()]
    return sorted({path.as_posix() for path in found})


def open_named(name: str, *, beside: str | None = None) -> Iterator[bytes]:
    """Lines of the file that another file names: beside that one, else of those that come with the project.

    Raises:
        DataFileError: there is none, or see `open_lines`.
    """
    near = Path(beside).parent / name if beside is not None else Path(name)
    return open_lines(near if near.is_file() or Path(name).is_absolute() else data_path(name))


def open_lines(path: str | Path, *, longest: Bytes = LONGEST_LINE) -> Iterator[bytes]:
    """Lines of a plain, `.gz` or `.zst` file with their ends, as they are read; the file is closed at the last.

    Raises:
        DataFileError: it cannot be opened, is no such file or damaged, or has a line of more than `longest` bytes.
    """
    path = Path(path)
    try:
        with path.open("rb") as raw:
            yield from _lines(_CONTENTS.get(path.suffix, _plain)(raw), path, longest=longest)
    except (zstandard.ZstdError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise DataFileError(f"{path} is damaged or no {path.suffix} file: {error}") from error
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {error.strerror or error}") from error


def _plain(raw: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: raw.read(_CHUNK), b"")


def _gzip(raw: IO[bytes]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=raw) as file:
        yield from iter(lambda: file.read(_CHUNK), b"")


def _zstandard(raw: IO[bytes]) -> Iterator[bytes]:
    # By frames: the library's file object takes a file that is cut off for a whole one.
    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    frame = decompressor.decompressobj()
    while compressed := raw.read(_COMPRESSED_CHUNK):
        while compressed:
            if frame.eof:
                frame = decompressor.decompressobj()
            yield frame.decompress(compressed)
            compressed = frame.unused_data
    if not frame.eof:
        raise EOFError("it is cut off")


_CONTENTS: Mapping[str, Callable[[IO[bytes]], Iterator[bytes]]] = {".gz": _gzip, ".zst": _zstandard}


def _lines(contents: Iterable[bytes], path: Path, *, longest: Bytes) -> Iterator[bytes]:
    number, rest = 0, b""
    for content in contents:
        *whole, rest = (rest + content).split(b"\n")
        for line in whole:
            number += 1
            yield line + b"\n"
        if len(rest) > longest:
            more = f"{path}:{number + 1}: a line of more than {longest:,} bytes"
            raise DataFileError(f"{more}; is this a file of lines?")
    if rest:
        yield rest
