from math import inf

import pytest
from retention_kit import batch

from lorapick.core.retention.recency import Recency


def recency(*times, adapter="a"):
    found = Recency()
    for now in times:
        found.add(adapter, now)
    return found


def test_one_request_is_no_stretch():
    assert recency(1.0).stretch("a", 1.0) == 0.0
    assert recency().stretch("a", 1.0) == 0.0


def test_two_requests_are_one():
    assert recency(0.0, 4.0).stretch("a", 5.0) == 1 / 4


def test_a_rate_is_no_more_than_one_in_the_silence():
    assert recency(0.0, 4.0).stretch("a", 12.0) == 1 / 8


def test_it_ends_after_five_gaps():
    stretch = recency(0.0, 4.0)
    assert stretch.stretch("a", 24.0) > 0
    assert stretch.stretch("a", 24.1) == 0.0


def test_a_batch_is_over_two_seconds_after_its_last_request():
    stretch = Recency()
    for now, adapter in batch("rare", at=10.0):
        stretch.add(adapter, now)
    last = 10.0 + 2.0 * 199 / 200
    assert stretch.stretch("rare", last) == pytest.approx(100.0)
    assert stretch.stretch("rare", last + 1.9) > 0
    assert stretch.stretch("rare", last + 2.1) == 0.0


def test_the_next_one_begins_anew():
    stretch = recency(0.0, 1.0, 2.0, 100.0)
    assert stretch.stretch("a", 100.0) == 0.0
    stretch.add("a", 104.0)
    assert stretch.stretch("a", 104.0) == 1 / 4


def test_the_usual_gap_follows_slowly():
    assert recency(0.0, 1.0, 3.0).stretch("a", 3.0) == 1 / (1 + 0.125)


def test_requests_at_one_instant():
    assert recency(1.0, 1.0, 1.0).stretch("a", 1.0) == 100.0


def test_a_silence_bounds_the_rate():
    known = recency(0.0)
    assert known.most("a", 30.0) == 0.1
    assert known.most("a", 0.0) == 300.0
    assert known.most("unknown", 30.0) == inf
