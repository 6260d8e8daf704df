"""A PEFT adapter's folder: its configuration, and the header of its weights.

In: a folder. Out: an `AdapterFolder`. Never read: the weights themselves. Not here: what the files mean (see
`wire.peft`).
"""

from pathlib import Path
from typing import NamedTuple

from lorapick.wire.peft import (
    CONFIG_FILE,
    LARGEST_CONFIG,
    LENGTH_BYTES,
    WEIGHTS_FILE,
    PeftConfig,
    PeftError,
    Tensor,
    header_length,
    parse_config,
    parse_tensors,
)


class AdapterFolder(NamedTuple):
    """What is known of an adapter from its files."""

    folder: Path
    config: PeftConfig
    tensors: dict[str, Tensor] | None
    """By name, in the header's order; None: there is no `adapter_model.safetensors`."""
    file_size: int | None
    """Bytes of that file, with its header."""


def read_folder(folder: Path) -> AdapterFolder:
    """Read both files.

    Raises:
        PeftError: there is no configuration, or a file is not what it should be.
        OSError: a file cannot be read.
    """
    config = folder / CONFIG_FILE
    if not config.is_file():
        what = f"no {CONFIG_FILE}" if folder.is_dir() else "no such folder"
        raise PeftError(f"{folder}: {what}; give the folder that PEFT saved an adapter to")
    with config.open("rb") as file:
        parsed = parse_config(file.read(LARGEST_CONFIG + 1), file=str(config))
    weights = folder / WEIGHTS_FILE
    if not weights.is_file():
        return AdapterFolder(folder, parsed, None, None)
    return AdapterFolder(folder, parsed, _tensors(weights), weights.stat().st_size)


def _tensors(weights: Path) -> dict[str, Tensor]:
    size = weights.stat().st_size
    with weights.open("rb") as file:
        length = header_length(file.read(LENGTH_BYTES), file=str(weights), file_size=size)
        return parse_tensors(file.read(length), file=str(weights), file_size=size)
