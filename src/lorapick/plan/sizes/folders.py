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
    facts,
    header_length,
    parse_config,
    parse_header,
    parse_tensors,
)

MOST_PER_BYTE = 8
"""Numbers of a tensor; of types that are not known, too."""


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
    if not weights.exists():
        return AdapterFolder(folder, parsed, None, None)
    if not weights.is_file():
        raise PeftError(f"{weights}: no regular file; put the adapter's own there")
    tensors = _tensors(weights)
    _require_alike(parsed, tensors, folder=folder)
    return AdapterFolder(folder, parsed, tensors, weights.stat().st_size)


def _require_alike(config: PeftConfig, tensors: dict[str, Tensor], *, folder: Path) -> None:
    """That the weights are LoRA's, take the room that their shapes need, and are of this configuration."""
    weights = folder / WEIGHTS_FILE
    if not any(".lora_" in name for name in tensors):
        raise PeftError(f"{weights}: has no tensors of LoRA ({len(tensors)} others); save the adapter again")
    for name, tensor in tensors.items():
        if tensor.elements > MOST_PER_BYTE * tensor.size:
            raise PeftError(
                f"{weights}: tensor {name!r} of shape {tensor.shape} and type {tensor.dtype} has {tensor.size} bytes; "
                "save it again"
            )
    size = weights.stat().st_size
    with weights.open("rb") as file:
        header = file.read(header_length(file.read(LENGTH_BYTES), file=str(weights), file_size=size))
    facts(config, parse_header(header, file=str(weights), file_size=size), file=str(folder / CONFIG_FILE))


def _tensors(weights: Path) -> dict[str, Tensor]:
    size = weights.stat().st_size
    with weights.open("rb") as file:
        length = header_length(file.read(LENGTH_BYTES), file=str(weights), file_size=size)
        return parse_tensors(file.read(length), file=str(weights), file_size=size)
