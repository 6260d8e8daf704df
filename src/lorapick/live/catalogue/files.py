"""One adapter's folder on a file system, as facts.

In: a folder. Out: its files, a mark that changes when they do, what they say, the SHA-256 of the weights; or
`AdapterSourceError`. Everything here blocks: call it in a thread. Not here: what the files have to be (see
`wire.peft`), and whether they are what was declared (see `live.catalogue.checks`).
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from lorapick.model.placement import AdapterFacts
from lorapick.wire.adapter_source import AdapterSourceError, SourceReason
from lorapick.wire.peft import (
    CONFIG_FILE,
    LARGEST_CONFIG,
    LENGTH_BYTES,
    WEIGHTS_FILE,
    PeftConfig,
    PeftError,
    Tensors,
    facts,
    header_length,
    parse_config,
    parse_header,
)

PICKLED_FILE = "adapter_model.bin"
"""Weights of old versions of PEFT. Engines read it; we do not, so its tensors are unknown."""
_AT_ONCE = 1024 * 1024
Mark = tuple[int, ...]
"""Of both files: other times, sizes or inodes mean other files."""


class Files(NamedTuple):
    """The two files of an adapter that engines read."""

    config: Path
    weights: Path

    @property
    def pickled(self) -> bool:
        """Whether only an engine can say what tensors there are."""
        return self.weights.name == PICKLED_FILE


class Contents(NamedTuple):
    """What the files say."""

    facts: AdapterFacts
    digest: str
    """Of what changes answers in the configuration."""

    def with_fingerprint(self, fingerprint: str | None) -> "Contents":
        """The same, with the SHA-256 of the weights."""
        return self._replace(facts=msgspec.structs.replace(self.facts, fingerprint=fingerprint))


def files_of(folder: Path) -> Files:
    """The files of an adapter's folder.

    Raises:
        AdapterSourceError: one of them is missing.
    """
    config = folder / CONFIG_FILE
    weights = next((file for name in (WEIGHTS_FILE, PICKLED_FILE) if (file := folder / name).is_file()), None)
    missing = CONFIG_FILE if not config.is_file() else WEIGHTS_FILE if weights is None else None
    if missing is not None or weights is None:
        what = f"no {missing}" if folder.is_dir() else "no such folder"
        raise AdapterSourceError(
            SourceReason.MISSING, f"{folder}: {what}; put the adapter that PEFT saved there, or correct its source"
        )
    return Files(config, weights)


def mark_of(files: Files) -> Mark:
    """What changes when a file does.

    Raises:
        AdapterSourceError: a file cannot be looked at.
    """
    found: list[int] = []
    for file in files:
        try:
            stat = file.stat()
        except OSError as error:
            raise _unreadable(file, error) from None
        found += [stat.st_mtime_ns, stat.st_size, stat.st_ino]
    return tuple(found)


def read_contents(files: Files) -> Contents:
    """Read the configuration, and the header of the weights.

    Raises:
        AdapterSourceError: a file cannot be read, or is not what it should be.
    """
    config = read_config(files.config)
    tensors = None if files.pickled else read_tensors(files.weights)
    try:
        found = facts(config, tensors, file=str(files.config))
    except PeftError as error:
        raise AdapterSourceError(SourceReason.UNREADABLE, str(error)) from None
    return Contents(found, config.digest)


def _require_regular(file: Path) -> None:
    """A pipe would keep whoever opens it waiting."""
    if file.exists() and not file.is_file():
        raise AdapterSourceError(SourceReason.UNREADABLE, f"{file}: no regular file; put the adapter's own there")


def read_config(file: Path) -> PeftConfig:
    """Read an `adapter_config.json`.

    Raises:
        AdapterSourceError: it is none, or cannot be read.
    """
    try:
        _require_regular(file)
        with file.open("rb") as stream:
            content = stream.read(LARGEST_CONFIG + 1)
        return parse_config(content, file=str(file))
    except OSError as error:
        raise _unreadable(file, error) from None
    except PeftError as error:
        raise AdapterSourceError(SourceReason.UNREADABLE, str(error)) from None


def read_tensors(file: Path) -> Tensors:
    """Read the header of a safetensors file; no weights.

    Raises:
        AdapterSourceError: it is none, or cannot be read.
    """
    try:
        _require_regular(file)
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            length = header_length(stream.read(LENGTH_BYTES), file=str(file), file_size=size)
            header = stream.read(length)
        return parse_header(header, file=str(file), file_size=size)
    except OSError as error:
        raise _unreadable(file, error) from None
    except PeftError as error:
        raise AdapterSourceError(SourceReason.UNREADABLE, str(error)) from None


def fingerprint(file: Path, *, go_on: Callable[[], object]) -> str:
    """SHA-256 of a file in hexadecimal digits. `go_on` is called for each MiB, and may raise.

    Raises:
        AdapterSourceError: it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with file.open("rb", buffering=0) as stream:
            while block := stream.read(_AT_ONCE):
                digest.update(block)
                go_on()
    except OSError as error:
        raise _unreadable(file, error) from None
    return digest.hexdigest()


def _unreadable(file: Path, error: OSError) -> AdapterSourceError:
    missing = isinstance(error, FileNotFoundError)
    reason = SourceReason.MISSING if missing else SourceReason.UNREADABLE
    return AdapterSourceError(reason, f"{file}: {error.strerror or error}; the picker has to be able to read it")
