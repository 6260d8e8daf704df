"""Compressed logs: their first bytes, and whether they are whole.

In: files. Out: bytes. Not here: reading all of them, which DuckDB does.
"""

import gzip
import zlib
from pathlib import Path
from typing import IO

import zstandard

from lorapick.plan.logs.found import LogFile
from lorapick.plan.logs.options import LogError

HEAD = 2**16
"""Bytes in which a header or the begin of a JSON document is looked for."""
_WINDOW = 2**27
"""Bytes that a Zstandard frame may ask us to hold: what `zstd` itself accepts."""
_LONGEST_HEADER = 18
"""Bytes of a frame's header."""
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_RUN_LENGTH = 1
"""Kind of a block that has one byte, whatever its size says."""


def head(file: LogFile) -> bytes:
    """Its first bytes, unpacked.

    Raises:
        LogError: it cannot be read.
    """
    try:
        with file.path.open("rb") as raw:
            return _unpacked(raw, packing=Path(file.suffix).suffix)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise LogError(f"{file.name} cannot be read: {error}") from None


def _unpacked(raw: IO[bytes], *, packing: str) -> bytes:
    if packing == ".gz":
        with gzip.GzipFile(fileobj=raw) as unpacked:
            return unpacked.read(HEAD)
    if packing == ".zst":
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(raw) as stream:
            return stream.read(HEAD)
    return raw.read(HEAD)


def check_whole(file: LogFile) -> None:
    """Refuse a Zstandard file that is cut off: DuckDB takes what is left for all. Other formats, it checks itself.

    Only headers of frames and blocks are read (RFC 8878).

    Raises:
        LogError: it is cut off, or no Zstandard file.
    """
    if not file.suffix.endswith(".zst"):
        return
    try:
        size = file.path.stat().st_size
        with file.path.open("rb") as raw:
            while raw.tell() < size:
                _pass_frame(raw)
                if raw.tell() > size:
                    raise EOFError("it is cut off")
    except (OSError, EOFError, zstandard.ZstdError) as error:
        raise LogError(f"{file.name} is damaged or no .zst file: {error}") from None


def _pass_frame(raw: IO[bytes]) -> None:
    """To the frame's end, which may be beyond the file's."""
    begin = raw.tell()
    header = raw.read(_LONGEST_HEADER)
    if int.from_bytes(header[:4], "little") in _SKIPPABLE and len(header) >= 8:
        raw.seek(begin + 8 + int.from_bytes(header[4:8], "little"))
        return
    checksum = 4 if zstandard.get_frame_parameters(header).has_checksum else 0
    raw.seek(begin + zstandard.frame_header_size(header))
    last = False
    while not last:
        block = raw.read(3)
        if len(block) < 3:
            raise EOFError("it is cut off")
        told = int.from_bytes(block, "little")
        last = bool(told & 1)
        raw.seek(1 if told >> 1 & 3 == _RUN_LENGTH else told >> 3, 1)
    raw.seek(checksum, 1)
