"""Adapters found in a folder of PEFT adapters (`adapters.catalogue` of the configuration).

In: a directory whose subdirectories hold `adapter_config.json`. Out: declared adapters with rank and targets.
Not here: weights (never read), sizes from safetensors headers (the planner's), remote sources.
"""

from pathlib import Path

import msgspec

from lorapick.model.adapters import Adapter
from lorapick.model.settings import Settings

LARGEST = 1024 * 1024
"""Bytes of an `adapter_config.json` that is still believed."""


class CatalogueError(Exception):
    """The catalogue cannot be read; the message names file, value and what would be right."""


class _PeftConfig(msgspec.Struct):
    """What we read of PEFT's `adapter_config.json`."""

    r: int
    target_modules: list[str] | str | None = None
    base_model_name_or_path: str | None = None


def read_catalogue(folder: Path) -> tuple[Adapter, ...]:
    """Every adapter in `folder`, by name; the folder's name is the adapter's.

    Raises:
        CatalogueError: the folder is missing, or an adapter's configuration is unreadable.
    """
    if not folder.is_dir():
        raise CatalogueError(f"adapters.catalogue: {folder} is no directory; name one that holds PEFT adapter folders")
    return tuple(_read(file) for file in sorted(folder.glob("*/adapter_config.json")))


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


def _read(file: Path) -> Adapter:
    name = file.parent.name
    if "," in name:
        raise CatalogueError(f"{file.parent}: adapter names must not hold a comma; vLLM joins names with one")
    try:
        if file.stat().st_size > LARGEST:
            raise CatalogueError(f"{file}: larger than {LARGEST} bytes, so not an adapter_config.json of PEFT")
        config = msgspec.json.decode(file.read_bytes(), type=_PeftConfig)
    except (OSError, msgspec.DecodeError) as error:
        raise CatalogueError(f"{file}: {error}; a PEFT adapter_config.json has at least `r` (the rank)") from error
    targets = config.target_modules
    return Adapter(
        name=name,
        source=str(file.parent),
        rank=config.r,
        targets=tuple(targets) if isinstance(targets, list) else (targets,) if targets else (),
        declared=True,
    )
