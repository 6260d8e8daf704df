"""SGLang's account of its settings, in the forms of 0.4.9 to 0.5.23, written after its server arguments."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.wire.engines.listing import EngineSettings
from lorapick.wire.engines.sglang_info import EngineSettingsError, parse
from lorapick.wire.models_list import MOST_MODELS

PAGE = b"""{
  "model_path": "meta-llama/Llama-3.1-8B-Instruct", "host": "127.0.0.1", "port": 30000, "tp_size": 1, "dp_size": 1,
  "enable_lora": true, "max_lora_rank": 64, "lora_target_modules": ["q_proj", "v_proj"],
  "lora_paths": [
    {"lora_id": "5f1c", "lora_name": "legal", "lora_path": "/adapters/legal", "pinned": true},
    {"lora_id": "9a30", "lora_name": "code", "lora_path": "/adapters/code", "pinned": false}
  ],
  "max_loaded_loras": 16, "max_loras_per_batch": 8, "lora_eviction_policy": "lru", "lora_backend": "csgmv",
  "status": "ready", "max_total_num_tokens": 302000, "version": "0.5.23",
  "internal_states": [{"last_gen_throughput": 0.0, "memory_usage": {"weight": 15.0, "kvcache": 30.1}}]
}"""


def test_one_slot_is_the_base_models() -> None:
    assert parse(PAGE) == EngineSettings(max_loras=7, max_cpu_loras=16, pinned=("legal",))


@pytest.mark.parametrize(
    ("body", "settings"),
    [
        (b"{}", EngineSettings()),
        (b'{"max_loras_per_batch": 1}', EngineSettings(max_loras=1, max_cpu_loras=MOST_MODELS)),
        (b'{"max_loras_per_batch": 4, "lora_paths": null}', EngineSettings(max_loras=3, max_cpu_loras=MOST_MODELS)),
        (
            b'{"max_loras_per_batch": 4, "max_loaded_loras": 4, "lora_paths": ["a=/a", {"pinned": true}]}',
            EngineSettings(max_loras=3, max_cpu_loras=4),
        ),
        (
            b'{"max_loras_per_batch": 2, "lora_paths": {"a": {"lora_name": "a", "pinned": true}, "b": "/b"}}',
            EngineSettings(max_loras=1, max_cpu_loras=MOST_MODELS, pinned=("a",)),
        ),
    ],
    ids=["no adapters", "one slot", "none at the start", "not read yet", "a mapping"],
)
def test_other_forms(body: bytes, settings: EngineSettings) -> None:
    assert parse(body) == settings


LISTS = st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5)


@given(st.binary() | LISTS.map(msgspec.json.encode))
def test_anything_else_is_refused_or_says_nothing(body: bytes) -> None:
    try:
        found = parse(body)
    except EngineSettingsError:
        return
    assert found == EngineSettings()


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "max_loras_per_batch": st.integers(-2, 2**64 - 1) | st.text(),
            "max_loaded_loras": st.none() | st.integers(-2, 2**64 - 1),
            "lora_paths": st.recursive(
                st.none() | st.booleans() | st.text(),
                lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["lora_name", "pinned", "x"]), inner),
                max_leaves=6,
            ),
        },
    )
)
def test_strange_figures_give_sizes_of_one_or_more(body: dict[str, object]) -> None:
    try:
        found = parse(msgspec.json.encode(body))
    except EngineSettingsError:
        return
    assert all(size is None or size >= 1 for size in (found.max_loras, found.max_cpu_loras))
