"""Chained prefix blocks."""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh64_intdigest

from lorapick.wire.prefix import BLOCK_BYTES, MAX_BLOCKS, prefix_blocks


def blocks(model: str, *pieces: bytes) -> tuple[int, ...]:
    return prefix_blocks(model, pieces)


def slow_blocks(model: str, text: bytes) -> tuple[int, ...]:
    """The definition, written down again."""
    out: list[int] = []
    previous = xxh64_intdigest(model.encode())
    for start in range(0, len(text) - 63, 64):
        previous = xxh64_intdigest(text[start : start + 64], seed=previous)
        out.append(previous)
    return tuple(out[:256])


def test_only_whole_blocks_count() -> None:
    assert blocks("ad0", b"x" * 63) == ()
    assert len(blocks("ad0", b"x" * 64)) == 1
    assert len(blocks("ad0", b"x" * 64 * 3 + b"y")) == 3


def test_repeated_text_gives_different_blocks() -> None:
    first, second = blocks("ad0", b"x" * 128)
    assert first != second


def test_adapters_never_share_blocks() -> None:
    assert not {*blocks("ad0", b"x" * 6400)} & {*blocks("ad1", b"x" * 6400)}


def test_the_prompt_is_not_read_beyond_the_bound() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"x" * (BLOCK_BYTES * MAX_BLOCKS - 1)
        yield b"yz" * 1000
        raise AssertionError("asked for more than fits")

    assert len(prefix_blocks("ad0", pieces())) == MAX_BLOCKS


@given(st.binary(max_size=700), st.lists(st.integers(0, 700), max_size=6), st.text(max_size=5))
def test_pieces_do_not_matter(text: bytes, cuts: list[int], model: str) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts})
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    assert blocks(model, *pieces) == slow_blocks(model, text)


@given(st.binary(min_size=0, max_size=300), st.binary(max_size=200), st.binary(max_size=200))
def test_an_equal_prefix_gives_equal_leading_blocks(shared: bytes, one: bytes, other: bytes) -> None:
    common = len(shared) // BLOCK_BYTES
    assert blocks("ad0", shared, one)[:common] == blocks("ad0", shared, other)[:common]


@settings(max_examples=25)
@given(st.integers(16_000, 17_000), st.integers(1, 500))
def test_the_bound_holds_at_any_piece(size: int, step: int) -> None:
    text = bytes(range(256)) * (size // 256 + 1)
    assert blocks("m", *(text[:size][a : a + step] for a in range(0, size, step))) == slow_blocks("m", text[:size])
