"""Which weights a name stood for when pods were told to load it.

In: records of names. Out: the record of a name, after restarts too if there is a store. One small file for each name,
so that pickers who share a store do not overwrite each other's; the first to tell a pod decides. Blocks: call it in a
thread. Not here: comparing files with records (see `live.catalogue.checks`).
"""

import hashlib
import os
import tempfile
from pathlib import Path
from urllib.parse import quote

import msgspec

from lorapick.live.catalogue.files import Mark
from lorapick.model.units import AdapterName

FOLDER = ".names"
_LONGEST = 150
"""Characters of a name in names of files; file systems take 255 bytes."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What pods were told under a name."""

    name: AdapterName
    source: str
    folder: str
    """What pods were told to load from."""
    fingerprint: str
    """SHA-256 of the weights."""
    digest: str
    """Of what changes answers in the configuration."""
    mark: Mark
    """Of the files when the fingerprint was taken: while it stands, nothing is read again."""


class Memory:
    """Records by name. One thread at a time may use a name; different names do not touch each other."""

    def __init__(self, store: Path | None) -> None:
        """Remember in `store`; None: until the process ends."""
        self._folder = None if store is None else store / FOLDER
        self._known: dict[AdapterName, Known] = {}

    def get(self, name: AdapterName) -> Known | None:
        """The record of a name; None: no pod was told to load it.

        Raises:
            OSError: the record cannot be read.
        """
        if name not in self._known and self._folder is not None:
            found = _read(self._folder / file_name(name), name)
            if found is not None:
                self._known[name] = found
        return self._known.get(name)

    def keep(self, known: Known) -> Known:
        """Write a record down, for good, before a pod is told; gives the one that counts: another picker was first.

        Raises:
            OSError: it cannot be written.
        """
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._folder / file_name(known.name)
            known = _write(known, file, over=_read(file, known.name))
        self._known[known.name] = known
        return known


def file_name(name: AdapterName) -> str:
    """A name of a file for a name of an adapter, whatever it has in it."""
    safe = quote(name, safe="@+=")
    if len(safe) > _LONGEST:
        safe = f"{safe[:_LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return f"{safe}.json"


def _read(file: Path, name: AdapterName) -> Known | None:
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Known)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OSError(f"{file}: no record of an adapter: {error}; delete it if no pod has {name} any more") from None
    return found if found.name == name else None


def _write(known: Known, file: Path, *, over: Known | None) -> Known:
    """Write it, unless another picker wrote other weights since `over` was read."""
    if over is not None and (over.fingerprint, over.digest) != (known.fingerprint, known.digest):
        return over
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=".", suffix=".new")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(msgspec.json.encode(known))
            stream.flush()
            os.fsync(stream.fileno())
        if over is not None:
            os.replace(temporary, file)
            return known
        try:
            os.link(temporary, file)
        except FileExistsError:
            return _read(file, known.name) or known
    finally:
        Path(temporary).unlink(missing_ok=True)
    return known
