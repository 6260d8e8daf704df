"""Stand-ins for tokenizer and model: counts, blocks and words depend on the input and nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from lorapick.live.podserver.prompts import Prompt, Voice

prompts = st.one_of(st.text(max_size=400).map(Prompt.of_text), st.lists(st.integers(0, 2**40)).map(Prompt.of_ids))
adapters = st.one_of(st.none(), st.text(min_size=1, max_size=10))


def test_four_bytes_are_a_token_and_an_id_is_one() -> None:
    assert [Prompt.of_text("x" * length).tokens for length in (0, 1, 4, 5, 8)] == [0, 1, 1, 2, 2]
    assert Prompt.of_ids([5, 6, 7]).tokens == 3


@given(prompts, adapters, st.integers(1, 32))
def test_only_full_blocks_count(prompt: Prompt, adapter: str | None, block_size: int) -> None:
    full = len(prompt.data) // (block_size * prompt.width)
    assert len(prompt.blocks(adapter, block_size=block_size)) == full


@given(st.text(max_size=300), st.text(max_size=300), adapters)
def test_a_common_beginning_gives_common_blocks(head: str, tail: str, adapter: str | None) -> None:
    short = Prompt.of_text(head).blocks(adapter, block_size=4)
    long = Prompt.of_text(head + tail).blocks(adapter, block_size=4)
    assert long[: len(short)] == short


def test_blocks_are_chained_and_belong_to_one_adapter() -> None:
    one, other = Prompt.of_text("a" * 64 + "b" * 64), Prompt.of_text("c" * 64 + "b" * 64)
    assert one.blocks("ad0", block_size=16)[1] != other.blocks("ad0", block_size=16)[1]
    mine, yours = one.blocks("ad0", block_size=16), one.blocks("ad1", block_size=16)
    assert not set(mine) & set(yours)


@given(prompts, adapters, st.integers(0, 20), st.integers(0, 20))
def test_text_in_pieces_is_the_text_as_a_whole(prompt: Prompt, adapter: str | None, cut: int, more: int) -> None:
    voice = Voice(adapter, prompt)
    assert voice.text(0, cut) + voice.text(cut, cut + more) == Voice(adapter, prompt).text(0, cut + more)
    assert voice.text(0, cut).count(" ") == cut
    assert 32 <= voice.natural_length() < 128


def test_adapters_say_different_things_and_each_the_same_again() -> None:
    prompt = Prompt.of_text("def main(")
    said = [Voice(adapter, prompt).text(0, 8) for adapter in (None, *(f"ad{n}" for n in range(200)))]
    assert len(set(said)) == len(said)
    assert said[1] == Voice("ad0", Prompt.of_text("def main(")).text(0, 8)
    assert Voice("ad0", Prompt.of_text("def main{")).text(0, 8) != said[1]


@given(prompts, st.integers(0, 50))
def test_embeddings_are_numbers_between_minus_one_and_one(prompt: Prompt, count: int) -> None:
    numbers = Voice("ad0", prompt).numbers(count)
    assert len(numbers) == count
    assert all(-1.0 <= number <= 1.0 for number in numbers)
