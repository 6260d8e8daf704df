"""Adapters that PEFT itself saved: what is reckoned from their configuration is what is in their files."""

from pathlib import Path

import pytest

from lorapick.plan.sizes.adapters import measured, reckoned
from lorapick.plan.sizes.advice import scales
from lorapick.plan.sizes.folders import read_folder
from lorapick.plan.sizes.models import read_model

DATA = Path(__file__).parents[3] / "data" / "peft"
TRAINED = {
    "llama-patterns": (560, (0.5, 2.0, 4.0)),
    "llama-layers": (928, (2.0,)),
    "gemma2-regex": (560, (1.0,)),
    "mixtral-all-linear": (1480, (2.0,)),
    "qwen2_moe-all-linear": (750, (4.0,)),
    "phi3-rslora": (896, (4.0,)),
    "phi-head": (200, (4.0,)),
}
"""Parameters that PEFT said it trains, and the factors that it multiplies by."""


def test_each_is_used():
    assert {path.name for path in DATA.iterdir() if path.is_dir()} == {*TRAINED}


@pytest.mark.parametrize("name", TRAINED)
def test_sizes_are_those_of_the_file(name):
    folder = read_folder(DATA / name)
    content = (DATA / name / "adapter_model.safetensors").read_bytes()
    assert folder.tensors is not None
    found = measured(folder.config, folder.tensors, file="w")
    by = reckoned(folder.config, read_model(str(DATA / name)).shape, dtype="float32", file="c")
    assert found.size == by.size == len(content) - 8 - int.from_bytes(content[:8], "little")
    assert [(each.module, each.count, each.rank, each.parameters, each.size) for each in ordered(found)] == [
        (each.module, each.count, each.rank, each.parameters, each.size) for each in ordered(by)
    ]
    trained, factors = TRAINED[name]
    assert sum(each.parameters for each in by.modules if each.name != "base_layer") == trained
    assert scales(found) == scales(by) == factors


def ordered(size):
    return sorted(size.modules, key=lambda each: (each.module, each.rank or 0, each.scale or 0.0))
