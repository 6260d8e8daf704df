"""What slots cost."""

import pytest
from pictures_kit import adapter, healthy, pod

from lorapick.core.doctor.picture import Picture
from lorapick.core.doctor.prices import SlotPrice, in_words, slot_price, tokens_of_sequence


def test_of_a_known_model_everything_is_known():
    price = slot_price(healthy())
    assert (price.memory, price.tokens, price.at_least) == (83_886_080, 640, False)
    assert price.sequences == pytest.approx(640 / 3200)
    assert tokens_of_sequence(healthy()) == pytest.approx(3200)


def test_the_model_may_be_known_from_adapters():
    rows = [pod(number, base_model="base") for number in range(8)]
    named = [adapter(0, base_model="meta-llama/Llama-3.1-8B"), adapter(1, base_model="/models/x")]
    assert slot_price(healthy(pod_rows=rows, adapters=named)).memory == 83_886_080
    mixed = [adapter(0, base_model="meta-llama/Llama-3.1-8B"), adapter(1, base_model="meta-llama/Llama-3.1-70B")]
    assert slot_price(healthy(pod_rows=rows, adapters=mixed)).at_least


def test_a_slot_is_reserved_for_the_largest_rank_whatever_is_loaded():
    rows = [pod(0, base_model="base", max_rank=64)]
    found = slot_price(healthy(pod_rows=rows, adapters=[adapter(0, size=10_000_000, rank=16)]))
    assert (found.memory, found.at_least, found.tokens) == (40_000_000, True, None)


def test_unknown_is_said():
    assert slot_price(Picture()) == SlotPrice()
    assert "memory unknown" in in_words(Picture(), 4)
    assert tokens_of_sequence(Picture()) is None
    idle = healthy(pod_rows=[pod(0, running=0, kv_usage=0.0)])
    assert "sequences unknown" in in_words(idle, 4)
