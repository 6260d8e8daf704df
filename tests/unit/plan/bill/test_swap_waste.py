"""The bill of swapping, exact and rounded as the article does; what pins take away, beside a cache that is played."""

import random
from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.plan.bill.popularity import lru_misses, zipf
from lorapick.plan.bill.waste import by_share, by_slots, waste_report

REPORT = waste_report({})


def value(name):
    return REPORT[name].value


def test_the_articles_hours():
    assert value("before: GPU seconds a day") == pytest.approx(26_000)
    assert value("after: GPU seconds a day") == pytest.approx(3_200)
    assert round(value("before: GPU hours a day"), 1) == 7.2
    assert round(value("after: GPU hours a day"), 1) == 0.9
    assert round(value("saved a day"), 3) == 6.333


def test_the_articles_money_exact_and_rounded_on_the_way():
    assert round(value("saved a day, money"), 2) == 15.83
    assert round(value("saved a year")) == 5_779
    assert value("rounded on the way: a day") == pytest.approx(15.75)
    assert value("rounded on the way: a year") == pytest.approx(5_748.75)
    assert round(value("rounded on the way: a year"), -1) == 5_750


def test_pinning_five_of_the_articles_fleets():
    """Its 50-70 % holds for 15 to 50 adapters that are wanted as 1/rank, when swaps are shared out as requests."""
    assert 0.5 < value("swaps that pinning 5 removes") < 0.7
    assert [round(by_share(count, 5, skew=1.0), 3) for count in (15, 40, 50)] == [0.688, 0.534, 0.507]


def test_slots_that_keep_the_recent_leave_less_to_pins():
    assert 0 < value("the same, slots keep the recent") < value("swaps that pinning 5 removes")


def played(popularity, slots, *, pins):
    """Misses per request of a cache of the most recent, with pins that never leave."""
    draw = random.Random(7)
    kept = OrderedDict()
    misses, requests = 0, 40_000
    for adapter in draw.choices(range(len(popularity)), popularity, k=requests):
        if adapter < pins:
            continue
        if adapter in kept:
            kept.move_to_end(adapter)
            continue
        misses += 1
        kept[adapter] = None
        if len(kept) > slots - pins:
            kept.popitem(last=False)
    return misses / requests


@pytest.mark.parametrize(("adapters", "slots", "skew"), [(50, 8, 1.0), (40, 32, 0.8), (12, 8, 1.2)])
def test_the_approximation_is_near_a_cache_that_is_played(adapters, slots, skew):
    popularity = zipf(adapters, skew)
    before, after = (played(popularity, slots, pins=pins) for pins in (0, 5))
    assert sum(lru_misses(popularity, slots)) == pytest.approx(before, abs=0.01)
    assert by_slots(adapters, 5, skew=skew, slots=slots) == pytest.approx(1 - after / before, abs=0.05)


def test_pins_without_swaps_remove_nothing():
    assert by_slots(8, 5, skew=1.0, slots=8) is None
    assert waste_report({"adapters": 5})["the same, slots keep the recent"].value is None


@given(st.integers(1, 200), st.floats(0, 5), st.integers(0, 250))
def test_misses_are_shares(adapters, skew, slots):
    popularity = zipf(adapters, skew)
    assert sum(popularity) == pytest.approx(1)
    misses = lru_misses(popularity, slots)
    assert all(0 <= miss <= share for miss, share in zip(misses, popularity, strict=True))


@settings(max_examples=20)
@given(st.integers(0, 40), st.floats(0, 1e15), st.integers(0, 40))
def test_any_numbers_are_reckoned(pins, skew, slots):
    assert waste_report({"pins": pins, "skew": skew, "slots": slots})["saved a year"].value > 0


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [("before", 1.2, "at most 1"), ("adapters", 0, "above 0"), ("adapters", 20_000, "at most 10,000")],
)
def test_impossible_numbers_are_refused_with_the_limit(name, number, words):
    with pytest.raises(ValueError, match=words):
        waste_report({name: number})


def test_more_swaps_than_before_are_called_so():
    notes = waste_report({"before": 0.05, "after": 0.3}).notes
    assert notes[0].startswith(
        "More requests swap after than before, 30.0 % against 5.0 %: nothing is saved. It takes 2.778"
    )
    assert not any("nothing is saved" in note for note in waste_report({}).notes)
