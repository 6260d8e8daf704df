"""Words for model servers: one list, whoever says them."""

import pytest

from lorapick.model.pods import Engine
from lorapick.wire.config.engine_words import ENGINE_LABELS, OF_WORD, engine_label

NEW, OLD = ENGINE_LABELS


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({}, None),
        ({NEW: "triton-tensorrt-llm"}, (NEW, Engine.TRITON)),
        ({OLD: "trtllm-serve"}, (OLD, Engine.TRTLLM)),
        ({OLD: "vllm", NEW: "SGLang"}, (NEW, Engine.SGLANG)),
        ({NEW: "mystery"}, (NEW, None)),
    ],
)
def test_labels_say_engines(labels, said):
    assert engine_label(labels) == said


def test_every_engine_has_a_word_of_its_own_name():
    assert all(OF_WORD[engine.value] is engine for engine in Engine)
