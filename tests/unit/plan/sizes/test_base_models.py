"""The table of common models, and `config.json` files."""

import json

import pytest

from lorapick.plan.sizes.models import UnknownModelError, built_in, model_names, read_model
from lorapick.wire.model_config import ModelConfigError
from lorapick.wire.model_modules import projections

SMALL = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 4, "vocab_size": 100}  # fmt: skip
BILLIONS = {
    "llama-2-7b": 6.74, "llama-3.1-8b": 8.03, "llama-3.1-70b": 70.55, "llama-3.1-405b": 405.85, "tinyllama-1.1b": 1.10,
    "mistral-7b-v0.3": 7.25, "mistral-nemo-12b": 12.25, "mistral-small-24b": 23.57, "mistral-large-123b": 122.61,
    "mixtral-8x7b": 46.70, "mixtral-8x22b": 140.63, "qwen2.5-72b": 72.70, "qwen3-32b": 32.76, "qwen3-30b-a3b": 30.53,
    "qwen3-235b-a22b": 235.09, "qwen1.5-moe-a2.7b": 14.32, "qwen2-57b-a14b": 57.41, "phi-2": 2.78, "phi-3-mini": 3.82,
    "phi-3-medium": 13.96, "phi-3.5-moe": 41.87, "phi-4": 14.66,
}  # fmt: skip
"""Parameters that the publishers state, of models whose embeddings and head are two matrices."""
TIED = {"gemma-7b": 8.54, "gemma-2-9b": 9.24, "gemma-2-27b": 27.23, "gemma-3-1b": 1.00, "gemma-3-27b": 27.01,
        "llama-3.2-1b": 1.24, "llama-3.2-3b": 3.21,
        "qwen2.5-0.5b": 0.49, "qwen3-4b": 4.02, "phi-4-mini": 3.84}  # fmt: skip
"""The same, of models that use one matrix for both."""


@pytest.mark.parametrize(("name", "billions"), [*BILLIONS.items(), *TIED.items()])
def test_models_have_the_parameters_that_their_publishers_state(name, billions):
    shape = read_model(name).shape
    ends = (1 if name in TIED else 2) * shape.vocabulary * shape.hidden
    inner = sum(each.inputs * each.outputs for each in projections(shape))
    assert round((inner + ends) / 1e9, 2) == pytest.approx(billions, abs=0.011)


def test_every_model_of_the_table_has_a_source():
    assert len(model_names()) == len({*model_names()}) >= 50
    for name in model_names():
        model = built_in(name)
        assert model is not None and model.name == name
        assert model.source.startswith("https://huggingface.co/") and model.source.endswith("/config.json")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("meta-llama/Llama-3.1-70B", "llama-3.1-70b"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("Llama_3.1_70B", "llama-3.1-70b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("microsoft/Phi-3-mini-128k-instruct", "phi-3-mini"),
    ],
)
def test_names_as_repositories_have_them(name, found):
    assert read_model(name).name == found


def test_an_unknown_name_has_near_ones():
    with pytest.raises(UnknownModelError, match=r"'lama-3.1-70': no model .*; near: llama-3.1-70b, .*one of: llama-2"):
        read_model("lama-3.1-70")
    with pytest.raises(UnknownModelError, match="none is near"):
        read_model("§§§")
    assert built_in("") is None


def test_a_file_and_its_folder(tmp_path):
    file = tmp_path / "base" / "config.json"
    file.parent.mkdir()
    file.write_text(json.dumps(SMALL))
    for path in (file, file.parent):
        model = read_model(str(path))
        assert (model.name, model.shape.hidden, model.source) == ("base", 64, str(file))
    file.write_bytes(b" " * (1024 * 1024 + 1))
    with pytest.raises(ModelConfigError, match="larger than 1048576"):
        read_model(str(file))
    with pytest.raises(UnknownModelError):
        read_model(str(tmp_path))
