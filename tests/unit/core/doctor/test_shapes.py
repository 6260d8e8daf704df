"""Shapes of base models and what follows for memory."""

import pytest

from lorapick.core.doctor.shapes import SHAPES, shape_of
from lorapick.sim.hardware import PRESETS


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3-8B", "llama-3-8b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("Qwen/Qwen2.5-7B", "qwen2.5-7b"),
        ("llama-2-70b-hf", "llama-2-70b"),
    ],
)
def test_names_of_repositories_are_understood(name, key):
    assert shape_of(name) == SHAPES[key]


@pytest.mark.parametrize("name", [None, "", "base", "Llama-3.1-80B", "org/unknown"])
def test_others_are_unknown(name):
    assert shape_of(name) is None


def test_memory_agrees_with_what_was_measured():
    small, large = SHAPES["llama-3.1-8b"], SHAPES["llama-3.1-70b"]
    assert small.kv_bytes_per_token == PRESETS["h100-llama8b"].kv_bytes_per_token
    assert large.kv_bytes_per_token == PRESETS["h100-llama70b-int4"].kv_bytes_per_token
    measured = 753 * small.kv_bytes_per_token
    assert small.slot_bytes_per_rank * 16 == pytest.approx(measured, rel=0.2)
