"""One look at one adapter: where its files are, what they say, whether anybody may load them.

In: a declaration, the look before. Out: a `Look`. Blocks (stat each time, reads when that changed, hashes when somebody
is to load it): call it in a thread, one at a time for each name. Not here: when to look (see
`live.catalogue.catalogue`), what has to be true (see `live.catalogue.checks`).
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from lorapick.live.catalogue.cache import hub_folder, snapshot
from lorapick.live.catalogue.checks import check, check_same
from lorapick.live.catalogue.fetch import Limits, Order, fetch, store_name
from lorapick.live.catalogue.files import Contents, Mark, files_of, fingerprint, mark_of, read_contents
from lorapick.live.catalogue.memory import Known, Memory
from lorapick.model.adapters import Adapter
from lorapick.model.placement import AdapterFacts
from lorapick.model.settings import Settings
from lorapick.wire.adapter_source import (
    AdapterSourceError,
    LocalPath,
    Remote,
    Source,
    SourceReason,
    allowed,
    parse_source,
)
from lorapick.wire.hf_cache import CachedRepo


class Look(NamedTuple):
    """What was seen. Without a path and a problem: the weights are elsewhere and were not fetched yet."""

    adapter: Adapter
    path: str | None = None
    mark: Mark = ()
    """Of the files; empty: there are none to be seen here."""
    facts: AdapterFacts = AdapterFacts()
    problem: AdapterSourceError | None = None


class _Place(NamedTuple):
    """Where an adapter's files are."""

    folder: Path | None = None
    """None: not here."""
    told: str | None = None
    """What pods are told; None: fetch it first."""


class Inspector:
    """Looks at adapters."""

    def __init__(self, settings: Settings, *, beside: Path, hub: Path | None, stopped: Callable[[], bool]) -> None:
        """Read nothing yet; `hub` None: where the environment says. `stopped`: whether to give up."""
        placement = settings.placement
        self._beside = beside.absolute()
        self._hub = hub or hub_folder(os.environ)
        self._base_model = settings.base_model
        self._prefixes = placement.sources
        self._from_file = {adapter.source for adapter in settings.adapters}
        self._stopped = stopped
        self.store = None if placement.store is None else self._beside / placement.store
        self._memory = Memory(self.store)

    def unchanged(self, last: Look) -> bool:
        """Whether another look would see the same; stats two files."""
        try:
            place = self._place(last.adapter)
            mark = () if place.folder is None else mark_of(files_of(place.folder))
        except AdapterSourceError as error:
            return str(error) == str(last.problem)
        except OSError:
            return False
        return mark == last.mark and (last.problem is None or bool(mark)) and place.told in (last.path, None)

    def look(self, adapter: Adapter, last: Look | None, *, load: bool) -> Look:
        """Look at an adapter; `load`: a pod is about to be told of it, which is written down."""
        mark: Mark = ()
        told: str | None = None
        try:
            place = self._place(adapter)
            told = place.told
            if place.folder is None or told is None:
                return Look(adapter, told, facts=AdapterFacts(path=told))
            files = files_of(place.folder)
            mark = mark_of(files)
            if last is not None and self._stands(last, adapter, mark=mark, told=told, load=load):
                return last
            contents = self._read(adapter, place.folder, mark=mark, load=load)
            check(adapter, contents, known=self._memory.get(adapter.name), base_model=self._base_model)
            if load:
                self._remember(adapter, place.folder, contents=contents, mark=mark)
        except AdapterSourceError as error:
            return Look(adapter, told, mark, problem=error)
        except OSError as error:
            return Look(adapter, told, mark, problem=_broken(error))
        return Look(adapter, told, mark, msgspec.structs.replace(contents.facts, path=told))

    def fetch(self, adapter: Adapter, *, limits: Limits) -> Look:
        """Bring an adapter from elsewhere into the store, for a pod that is about to be told of it.

        Raises:
            AdapterSourceError: it cannot be had, or must not be used.
        """
        remote = parse_source(adapter.source or "")
        if not isinstance(remote, Remote) or self.store is None:
            raise AdapterSourceError(SourceReason.NO_STORE, "nothing to be fetched")
        try:
            known = self._memory.get(adapter.name)
            order = Order(
                adapter.name,
                remote,
                check=lambda contents: check(adapter, contents, known=known, base_model=self._base_model),
            )
            found = fetch(order, store=self.store, limits=limits, stopped=self._stopped)
            mark = mark_of(files_of(found.folder))
            self._remember(adapter, found.folder, contents=found.contents, mark=mark)
        except OSError as error:
            raise _broken(error) from error
        path = str(found.folder)
        return Look(adapter, path, mark, msgspec.structs.replace(found.contents.facts, path=path))

    def _stands(self, last: Look, adapter: Adapter, *, mark: Mark, told: str, load: bool) -> bool:
        """Whether what was seen last is what would be seen now; a load needs a fingerprint, and its record."""
        same = last.adapter == adapter and last.mark == mark and last.path == told
        if not same or last.problem is not None or not load:
            return same
        known = self._memory.get(adapter.name)
        return known is not None and known.fingerprint == last.facts.fingerprint

    def _place(self, adapter: Adapter) -> _Place:
        """Where the files are; nothing is fetched.

        Raises:
            AdapterSourceError: nowhere, or nowhere that is allowed.
        """
        text = adapter.source
        if text is None:
            raise AdapterSourceError(SourceReason.UNDECLARED, "declared without a source; say where it is from")
        source = parse_source(text)
        self._check_allowed(adapter, source)
        match source:
            case LocalPath():
                return self._local(adapter, source)
            case CachedRepo():
                folder = snapshot(source, hub=self._hub).folder
                return _Place(folder, str(folder))
            case Remote():
                return self._fetched(adapter, source)

    def _check_allowed(self, adapter: Adapter, source: Source) -> None:
        if self._prefixes:
            good, what = allowed(source, self._prefixes, beside=str(self._beside)), "add a prefix of it to"
        else:
            good, what = adapter.source in self._from_file, "declare it in the configuration, or name prefixes in"
        if not good:
            raise AdapterSourceError(
                SourceReason.NOT_ALLOWED,
                f"pods may not be told to load from {adapter.source}; {what} placement.sources",
            )

    def _local(self, adapter: Adapter, source: LocalPath) -> _Place:
        """A path whose parent is not here either is one that only pods see: they are told it as it is written."""
        folder = Path(os.path.normpath(self._beside / source.path))
        if folder.parent.is_dir() or self._memory.get(adapter.name) is not None:
            return _Place(folder, str(folder))
        if adapter.sha256 is not None:
            raise AdapterSourceError(
                SourceReason.MISSING,
                f"declared with a sha256, and {folder} cannot be seen here to compare; "
                "mount it where the picker runs too, or leave the sha256 out",
            )
        return _Place(None, source.path)

    def _fetched(self, adapter: Adapter, remote: Remote) -> _Place:
        """Where it was fetched to: as written down, or by the fingerprint that is declared."""
        if self.store is None:
            raise AdapterSourceError(
                SourceReason.NO_STORE,
                f"{remote.url} has to be fetched; set placement.store to a folder that pods read too",
            )
        known = self._memory.get(adapter.name)
        if known is not None and known.source == adapter.source and Path(known.folder).is_dir():
            return _Place(Path(known.folder), known.folder)
        if adapter.sha256 is not None:
            folder = self.store / store_name(adapter.name, adapter.sha256)
            if folder.is_dir():
                return _Place(folder, str(folder))
        return _Place()

    def _read(self, adapter: Adapter, folder: Path, *, mark: Mark, load: bool) -> Contents:
        """Read the header; hash the weights when they are to be compared or remembered, and are not known yet."""
        files = files_of(folder)
        contents = read_contents(files)
        known = self._memory.get(adapter.name)
        if known is not None and (known.folder, known.mark) == (str(folder), mark):
            return contents.with_fingerprint(known.fingerprint)
        if not load and known is None and adapter.sha256 is None:
            return contents
        found = fingerprint(files.weights, go_on=self._go_on)
        if mark_of(files) != mark:
            raise AdapterSourceError(
                SourceReason.UNREADABLE, f"{folder}: changes while it is read; looked at again when it rests"
            )
        return contents.with_fingerprint(found)

    def _remember(self, adapter: Adapter, folder: Path, *, contents: Contents, mark: Mark) -> None:
        """Write down what a pod is about to be told.

        Raises:
            AdapterSourceError: another picker told pods of other weights under this name.
        """
        known = Known(
            name=adapter.name,
            source=adapter.source or "",
            folder=str(folder),
            fingerprint=contents.facts.fingerprint or "",
            digest=contents.digest,
            mark=mark,
        )
        if known != self._memory.get(adapter.name):
            check_same(adapter, contents, known=self._memory.keep(known))

    def _go_on(self) -> None:
        if self._stopped():
            raise AdapterSourceError(SourceReason.UNREADABLE, "given up, the picker ends")


def _broken(error: OSError) -> AdapterSourceError:
    return AdapterSourceError(SourceReason.UNREADABLE, str(error))
