"""Pickers of profiles."""

from collections import Counter

import pytest

from lorapick.testing.profiles import book_with, profile, spec


def picked(book, count):
    found = Counter()
    for number in range(count):
        book.arrive("base", id=f"asked{number}")
        found[book.effects[0].target.pod] += 1
        book.end(f"asked{number}")
    return found


def book(picker, seed=0):
    fleet = book_with(profile(spec("kv-cache-utilization-scorer", weight=2.0), picker=picker), pods="abc", seed=seed)
    for pod, usage in (("a", 0.0), ("b", 0.75), ("c", 1.0)):
        fleet.report(pod, kv_usage=usage)
    return fleet


def test_the_highest_score_always():
    assert picked(book("max-score-picker"), 20) == {"a": 20}


def test_equals_by_chance():
    fleet = book_with(profile("queue-scorer"), pods="abc")
    assert set(picked(fleet, 60)) == {"a", "b", "c"}


def test_by_chance_whatever_the_score():
    found = picked(book("random-picker"), 300)
    assert all(70 < found[pod] < 130 for pod in "abc")


def test_as_likely_as_its_share_of_all_scores():
    found = picked(book("weighted-random-picker"), 400)
    assert found["c"] == 0
    assert found["a"] / found["b"] == pytest.approx(4.0, rel=0.35)


def test_by_chance_when_nobody_has_a_score():
    fleet = book_with(profile(picker="weighted-random-picker"), pods="abc")
    assert all(found > 10 for found in picked(fleet, 90).values())


@pytest.mark.parametrize("picker", ["max-score-picker", "random-picker", "weighted-random-picker"])
def test_the_same_request_is_picked_the_same_pod(picker):
    assert [picked(book(picker), 1) for _ in range(3)] == [picked(book(picker), 1)] * 3


def test_another_seed_is_another_chance():
    assert len({*(next(iter(picked(book("random-picker", seed=seed), 1))) for seed in range(20))}) == 3
