"""KV events as vLLM publishes them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.wire.kv_events import Batch, KvEventsError, Stored, decode, encode

STORED = {
    "type": "BlockStored",
    "block_hashes": [4763707181064868162, 12838485761130618807],
    "parent_block_hash": None,
    "token_ids": [*range(256)],
    "block_size": 128,
    "lora_id": 1,
    "medium": "GPU",
    "lora_name": "ad0",
    "extra_keys": [["ad0"], ["ad0"]],
    "group_idx": 0,
    "kv_cache_spec_kind": "full_attention",
}
"""As vLLM 0.32 writes it for a prompt of 300 tokens."""
BASE = {**STORED, "lora_id": None, "lora_name": None, "extra_keys": [None, None]}


def message(*events: Any, sequence: int = 7) -> list[bytes]:
    return [b"kv@8102", sequence.to_bytes(8, "big"), msgspec.msgpack.encode([1.7e9, list(events), 0])]


def test_a_stored_block_names_its_adapter() -> None:
    assert decode(message(STORED)) == Batch(sequence=7, adapters=("ad0",), stored=2)
    assert decode(message(BASE)) == Batch(sequence=7, stored=2), "the base model is nobody's evidence"


def test_the_adapter_that_came_last_stands_last() -> None:
    other = {**STORED, "lora_name": "ad1"}
    assert decode(message(STORED, other, BASE, STORED)).adapters == ("ad1", "ad0")


def test_the_other_kinds() -> None:
    removed = {"type": "BlockRemoved", "block_hashes": [1, 2, 3], "medium": "GPU"}
    assert decode(message(removed, {"type": "AllBlocksCleared"})) == Batch(sequence=7, removed=3, cleared=True)


def test_older_versions_write_arrays_and_byte_hashes() -> None:
    events = (
        ["BlockStored", [b"\x01" * 32], None, [1, 2], 16, 3, "GPU", "ad0"],
        ["BlockStored", [5], 4, [1, 2], 16, 3],
        ["BlockRemoved", [b"\x01" * 32], "GPU"],
        ["AllBlocksCleared"],
    )
    assert decode(message(*events)) == Batch(
        sequence=7, adapters=("ad0",), stored=2, removed=1, cleared=True, unnamed=1
    ), "a number alone does not say whose block it is"


def test_what_nobody_knows_is_counted_and_the_rest_is_taken() -> None:
    strange = ({"type": "BlockMoved", "block_hashes": []}, 5, None, ["BlockStored"], {**STORED, "block_hashes": "x"})
    assert decode(message(*strange, STORED)) == Batch(sequence=7, adapters=("ad0",), stored=2, unknown=5)


@pytest.mark.parametrize(
    "frames",
    [[], [b"t", b"0" * 8], [b"t", b"123", b"\x93"], [b"t", b"0" * 8, b""], [b"t", b"0" * 8, b"\xc0"]],
    ids=["nothing", "two frames", "short number", "empty", "no batch"],
)
def test_no_batch_is_refused(frames: list[bytes]) -> None:
    with pytest.raises(KvEventsError):
        decode(frames)


def test_a_huge_batch_is_refused() -> None:
    with pytest.raises(KvEventsError, match="65537 events; the limit is 65536"):
        decode(message(*[None] * 65_537))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=4) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*STORED]), inner, max_size=4),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=4) | st.just([STORED]), st.binary(max_size=40) | st.none(), st.integers(0, 40))
def test_nothing_breaks_the_decoder(events: list[Any], noise: bytes | None, cut: int) -> None:
    frames = message(*events)
    if noise is not None:
        frames[2] = frames[2][:cut] + noise
    try:
        found = decode(frames)
    except KvEventsError:
        assert noise is not None
        return
    assert found.sequence == 7 and found.stored >= 0


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**64 - 1)), st.none() | st.text(min_size=1))
def test_what_is_written_is_read(sequence: int, hashes: list[int], name: str | None) -> None:
    event = Stored(
        block_hashes=hashes,
        parent_block_hash=None,
        token_ids=[],
        block_size=16,
        lora_id=None if name is None else 1,
        medium="GPU",
        lora_name=name,
        extra_keys=[None if name is None else (name,)] * len(hashes),
    )
    frames = encode(sequence, [event], topic="kv@pod", wall=1.7e9)
    adapters = () if name is None else (name,)
    assert decode(frames) == Batch(sequence=sequence, adapters=adapters, stored=len(hashes))


def test_an_event_is_written_with_vllms_fields_in_vllms_order() -> None:
    event = Stored(
        block_hashes=[1], parent_block_hash=None, token_ids=[], block_size=128, lora_id=1, medium="GPU",
        lora_name="ad0", extra_keys=[("ad0",)],
    )  # fmt: skip
    _, _, payload = encode(0, [event], topic="", wall=1.0)
    assert [*msgspec.msgpack.decode(payload)[1][0]] == [*STORED]
