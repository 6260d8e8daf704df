"""Tiny PEFT adapters, as bytes and as folders."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lorapick.wire.peft import CONFIG_FILE, WEIGHTS_FILE

WIDTH = 4
"""Of the imagined base model's layers."""


def config_bytes(*, rank: int = 8, targets: Sequence[str] = ("q_proj", "v_proj"), **more: Any) -> bytes:
    """An `adapter_config.json`; `more` are further keys of it."""
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": 2 * rank, "target_modules": [*targets], **more}
    return json.dumps(config).encode()


def safetensors_bytes(tensors: Mapping[str, Sequence[int]], *, fill: int = 0) -> bytes:
    """A safetensors file of two-byte elements: names to shapes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, shape in tensors.items():
        size = 2
        for side in shape:
            size *= side
        header[name] = {"dtype": "BF16", "shape": [*shape], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes([fill]) * at


def weights_bytes(*, rank: int = 8, targets: Sequence[str] = ("q_proj", "v_proj"), fill: int = 0) -> bytes:
    """An `adapter_model.safetensors` of one layer: 2 * 2 * rank * WIDTH bytes for each target."""
    tensors: dict[str, Sequence[int]] = {}
    for target in targets:
        module = f"base_model.model.model.layers.0.self_attn.{target}"
        tensors[f"{module}.lora_A.weight"] = (rank, WIDTH)
        tensors[f"{module}.lora_B.weight"] = (WIDTH, rank)
    return safetensors_bytes(tensors, fill=fill)


def write_adapter(folder: Path, *, rank: int = 8, fill: int = 0, **more: Any) -> Path:
    """Make a folder with both files; the weights consist of `fill`; `more` are keys of the configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG_FILE).write_bytes(config_bytes(rank=rank, **more))
    (folder / WEIGHTS_FILE).write_bytes(weights_bytes(rank=rank, fill=fill))
    return folder
