"""The clairvoyant bound by hand."""

import tracemalloc

import pytest

from lorapick.sim.bounds.fewest import FewestLoads, LoadBound


def loads(requests: str, slots: int, *, begins_empty: bool = True) -> int:
    fewest = FewestLoads(slots, begins_empty=begins_empty)
    for adapter in requests:
        fewest.add(adapter)
    return fewest.loads


@pytest.mark.parametrize(
    ("requests", "slots", "least"),
    [
        ("", 1, 0),
        ("aaaa", 1, 1),
        ("abab", 1, 4),
        ("abab", 2, 2),
        ("aabb", 1, 2),
        # The textbook's: furthest next use, three slots.
        ("70120304230321201701", 3, 9),
        # c must push out a or b; both come back, one of them is kept.
        ("abcab", 2, 4),
        ("abcdabcd", 3, 5),
        ("abcdabcd", 4, 4),
        ("abcdabcd", 100, 4),
    ],
)
def test_the_fewest_loads_for_an_order(requests, slots, least):
    assert loads(requests, slots) == least


def test_holding_requests_until_they_can_share_a_load_beats_the_order_of_arrival():
    assert (loads("ababab", 1), loads("aaabbb", 1)) == (6, 2)


def test_a_stretch_from_the_middle_of_a_run_may_begin_with_anything():
    assert loads("ab", 2, begins_empty=False) == 0
    assert loads("abc", 2, begins_empty=False) == 1
    assert loads("abcabc", 2, begins_empty=False) == 2
    assert loads("aabb", 1, begins_empty=False) == 1


def test_the_number_is_right_after_every_request():
    fewest = FewestLoads(2)
    assert [fewest.add(adapter) for adapter in "abcab"] == [True, True, True, False, True]
    assert fewest.bound() == LoadBound(slots=2, requests=5, adapters=3, loads=4)


def test_serving_takes_a_slot():
    with pytest.raises(ValueError, match="0 slots: serving an adapter takes at least 1"):
        FewestLoads(0)


def test_memory_does_not_grow_with_the_requests():
    fewest = FewestLoads(8)
    names = [f"adapter-{number}" for number in range(20)]

    def feed(count: int) -> None:
        for number in range(count):
            fewest.add(names[number * 7 % 20])

    feed(2_000)
    tracemalloc.start()
    feed(50_000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert fewest.requests == 52_000
    assert kept < 20_000
