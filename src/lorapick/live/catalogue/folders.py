"""Adapters found in a folder (`adapters.catalogue` of the configuration).

In: a directory of PEFT adapters, each in a folder of its name, or a Hugging Face cache. Out: declared adapters with
rank, targets and size. A folder `legal@7` is the adapter `legal@7` with revision 7. Not here: weights (never read, but
for the header that names them), remote sources, and whether files change later (see `live.catalogue.catalogue`).
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lorapick.live.catalogue.cache import is_hub, snapshots
from lorapick.live.catalogue.files import read_config, read_tensors
from lorapick.model.adapters import Adapter
from lorapick.model.placement import AdapterFacts
from lorapick.model.settings import Settings
from lorapick.wire.adapter_source import AdapterSourceError
from lorapick.wire.hf_cache import DEFAULT_REVISION
from lorapick.wire.peft import CONFIG_FILE, WEIGHTS_FILE, PeftError, facts


class CatalogueError(Exception):
    """The catalogue cannot be read; the message names file, value and what would be right."""


def read_catalogue(folder: Path) -> tuple[Adapter, ...]:
    """Every adapter in `folder`, by name.

    Weights that are missing or broken leave the size unknown: they may be on their way, and the picker tells of them
    while it runs.

    Raises:
        CatalogueError: the folder is missing, or an adapter's configuration is unreadable.
    """
    if not folder.is_dir():
        raise CatalogueError(f"adapters.catalogue: {folder} is no directory; name one that holds PEFT adapter folders")
    try:
        return tuple(_cached(folder) if is_hub(folder) else _in_folders(folder))
    except AdapterSourceError as error:
        raise CatalogueError(str(error)) from error


def with_catalogue(settings: Settings, *, beside: Path) -> Settings:
    """Add the adapters of the catalogue folder (relative to the configuration file) to those declared by name.

    Raises:
        CatalogueError: the folder or an adapter in it cannot be read.
    """
    if settings.catalogue is None:
        return settings
    found = {adapter.name: adapter for adapter in read_catalogue(beside / settings.catalogue)}
    found.update({adapter.name: adapter for adapter in settings.adapters})
    return msgspec.structs.replace(settings, adapters=tuple(found.values()))


def _in_folders(folder: Path) -> Iterator[Adapter]:
    for file in sorted(folder.glob(f"*/{CONFIG_FILE}")):
        name = file.parent.name
        if "," in name:
            raise CatalogueError(f"{file.parent}: adapter names must not hold a comma; vLLM joins names with one")
        if not name.isprintable() or " " in name:
            shown = str(file.parent).encode("utf-8", "backslashreplace").decode()
            raise CatalogueError(f"{shown}: adapter names are printable and without blanks; rename the folder")
        yield _declared(name, file.parent, revision=name.partition("@")[2] or None)


def _cached(hub: Path) -> Iterator[Adapter]:
    for found in snapshots(hub):
        repo = found.repo
        name = repo.repo if repo.revision == DEFAULT_REVISION else f"{repo.repo}@{repo.revision}"
        yield _declared(name, found.folder, revision=found.commit)


def _declared(name: str, folder: Path, *, revision: str | None) -> Adapter:
    known = _facts(folder)
    return Adapter(
        name=name,
        source=str(folder.absolute()),
        revision=revision,
        rank=known.rank,
        targets=known.targets,
        size=known.size,
        declared=True,
    )


def _facts(folder: Path) -> AdapterFacts:
    file = folder / CONFIG_FILE
    config = read_config(file)
    with contextlib.suppress(PeftError, AdapterSourceError):
        return facts(config, read_tensors(folder / WEIGHTS_FILE), file=str(file))
    return facts(config, None, file=str(file))
