from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.forecast.history import BIN, PER_DAY, PER_WEEK, History, bin_of
from lorapick.model.placement import DemandBin

MONDAY = 1_700_438_400.0
"""A bin's start."""


def asked(history, adapter, *, at, times=1):
    for _ in range(times):
        history.count(adapter, at)


def binned(adapter, count, *, start=MONDAY):
    return DemandBin(start=start, adapter=adapter, count=count)


def totals(history, first, last):
    sums = history.sums(first, last)
    return {name: sums[column] for name, column in history.adapters.items() if sums[column]}


def test_a_bin_is_given_out_once_when_it_is_over():
    history = History()
    asked(history, "a", at=MONDAY, times=2)
    asked(history, "b", at=MONDAY + 299)
    assert history.close(MONDAY + 299) == ()
    assert history.close(MONDAY + 300) == (binned("a", 2), binned("b", 1))
    assert history.close(MONDAY + 300) == ()


def test_a_request_in_the_next_bin_ends_the_last():
    history = History()
    asked(history, "a", at=MONDAY)
    asked(history, "a", at=MONDAY + BIN)
    assert history.close(MONDAY + BIN) == (binned("a", 1),)


def test_the_open_bin_is_in_no_sum():
    history = History()
    asked(history, "a", at=MONDAY)
    assert history.sums(bin_of(MONDAY), bin_of(MONDAY) + 1).tolist() == []
    history.close(MONDAY + BIN)
    assert totals(history, bin_of(MONDAY), bin_of(MONDAY) + 1) == {"a": 1}
    assert history.happened(bin_of(MONDAY)) == {"a": 1}
    assert history.happened(bin_of(MONDAY) + 1) == {}


def test_bins_of_before_are_recalled_and_not_given_out_again():
    history = History()
    history.recall([binned("a", 70_000), binned("b", 0)])
    assert history.close(MONDAY + 10 * BIN) == ()
    assert history.happened(bin_of(MONDAY)) == {"a": 70_000}
    history.recall([binned("a", 5)])
    assert history.happened(bin_of(MONDAY)) == {"a": 5}


def test_a_bin_cut_by_a_restart_has_both_parts():
    before = History()
    asked(before, "a", at=MONDAY, times=3)
    kept = before.so_far()
    assert kept == (binned("a", 3),)
    after = History()
    after.recall(kept)
    asked(after, "a", at=MONDAY + 60)
    assert after.so_far() == (binned("a", 4),)
    assert after.close(MONDAY + BIN) == (binned("a", 4),)


def test_a_clock_that_goes_back_reopens_its_bin():
    history = History()
    asked(history, "a", at=MONDAY)
    asked(history, "b", at=MONDAY + BIN)
    assert history.close(MONDAY + BIN) == (binned("a", 1),)
    asked(history, "a", at=MONDAY)
    assert history.close(MONDAY + 2 * BIN) == (binned("a", 2), binned("b", 1, start=MONDAY + BIN))


def test_a_clock_that_jumps_over_years_and_comes_back_loses_nothing():
    history = History(most_days=3)
    for number in range(5):
        asked(history, "a", at=MONDAY + number * BIN)
    asked(history, "a", at=MONDAY + 500 * PER_WEEK * BIN)
    asked(history, "a", at=MONDAY + 5 * BIN)
    history.close(MONDAY + 6 * BIN)
    first = bin_of(MONDAY)
    assert history.first == first
    assert [totals(history, first + n, first + n + 1) for n in range(6)] == 6 * [{"a": 1}]


def test_days_are_bounded_and_the_earliest_go():
    history = History(most_days=3)
    assert history.first is None
    for day in range(5):
        asked(history, "a", at=MONDAY + (day * PER_DAY + 7) * BIN)
    history.close(MONDAY + 5 * PER_DAY * BIN)
    monday = bin_of(MONDAY)
    assert history.first == monday + 2 * PER_DAY
    assert totals(history, monday, monday + 5 * PER_DAY) == {"a": 3}


def test_sums_and_rows_go_over_midnight_and_count_so_many_of_each_bin():
    history = History()
    last = MONDAY + (PER_DAY - 1) * BIN
    asked(history, "a", at=last, times=5)
    asked(history, "a", at=last + BIN, times=2)
    asked(history, "b", at=last + BIN)
    history.close(last + 2 * BIN)
    first = bin_of(last)
    assert history.sums(first, first + 2).tolist() == [7, 1]
    assert history.sums(first, first + 2, most=3).tolist() == [5, 1]
    assert history.rows(first - 1, first + 3, most=3).tolist() == [[0, 0], [3, 0], [2, 1], [0, 0]]
    assert history.counts(first + 1).tolist() == [2, 1]
    assert history.sums(first, first).tolist() == [0, 0]
    assert history.names == ["a", "b"]


def test_a_count_that_needs_more_bytes_changes_no_other():
    history = History()
    history.recall([binned("a", 9), binned("a", 2**31, start=MONDAY + BIN), binned("b", 2**40, start=MONDAY + BIN)])
    assert history.happened(bin_of(MONDAY)) == {"a": 9}
    assert history.happened(bin_of(MONDAY) + 1) == {"a": 2**31, "b": 2**32 - 1}


def test_adapters_that_come_later_find_room():
    history = History()
    for number in range(200):
        asked(history, f"adapter-{number}", at=MONDAY + number)
    asked(history, "a", at=MONDAY + BIN)
    for number in range(200, 300):
        asked(history, f"adapter-{number}", at=MONDAY + 2 * BIN)
    history.close(MONDAY + 3 * BIN)
    assert len(history.happened(bin_of(MONDAY))) == 200
    assert sum(history.sums(bin_of(MONDAY), bin_of(MONDAY) + 3)) == 301


def test_of_many_adapters_the_least_asked_are_forgotten():
    history = History(most_adapters=2)
    asked(history, "often", at=MONDAY, times=5)
    asked(history, "once", at=MONDAY)
    asked(history, "new", at=MONDAY + BIN, times=2)
    history.close(MONDAY + 2 * BIN)
    assert sorted(history.adapters) == ["new", "often"]
    assert history.columns == 2
    assert totals(history, bin_of(MONDAY), bin_of(MONDAY) + 2) == {"often": 5, "new": 2}


def test_a_flood_of_names_does_not_wash_out_who_is_asked_for():
    history = History(most_adapters=10)
    for number in range(3):
        for turn in range(200):
            asked(history, f"made-up-{number}-{turn}", at=MONDAY + number * BIN)
        asked(history, "real", at=MONDAY + number * BIN, times=2)
        history.close(MONDAY + (number + 1) * BIN)
    assert "real" in history.adapters
    assert len(history.adapters) <= 10
    assert history.columns <= 10


def test_of_too_many_recalled_adapters_the_least_asked_are_left_out():
    history = History(most_adapters=2)
    history.recall([binned("a", 1), binned("b", 9), binned("c", 5, start=MONDAY + BIN)])
    assert sorted(history.adapters) == ["b", "c"]


def test_requests_of_long_ago_keep_nobody_remembered():
    history = History(most_adapters=1)
    history.recall([binned("old", 5)])
    asked(history, "new", at=MONDAY + 5 * PER_WEEK * BIN, times=4)
    history.close(MONDAY + 6 * PER_WEEK * BIN)
    assert history.adapters == {"new": 0}


TIMES = st.integers(0, 40).map(lambda n: MONDAY + n * 100.0)
REQUESTS = st.lists(st.tuples(st.sampled_from("abc"), TIMES), max_size=60)


@given(REQUESTS, st.lists(TIMES, max_size=5))
def test_whatever_the_clock_does_the_last_totals_given_out_are_what_came(requests, closings):
    """As a store that keeps the last total of a bin sees it."""
    history, kept = History(), {}

    def keep(bins):
        kept.update({(each.start, each.adapter): each.count for each in bins})

    for turn, (adapter, wall) in enumerate(requests):
        history.count(adapter, wall)
        if turn < len(closings):
            keep(history.close(closings[turn]))
    keep(history.close(MONDAY + 100 * BIN))
    assert kept == Counter((bin_of(wall) * BIN, adapter) for adapter, wall in requests)
    assert sum(history.sums(bin_of(MONDAY), bin_of(MONDAY) + 20)) == len(requests)


@given(REQUESTS)
def test_a_restart_changes_nothing(requests):
    through, before = History(), History()
    for adapter, wall in requests:
        through.count(adapter, wall)
        before.count(adapter, wall)
    after = History()
    after.recall(before.close(MONDAY + 100 * BIN))
    through.close(MONDAY + 100 * BIN)
    first = bin_of(MONDAY)
    for number in range(first, first + 20):
        assert after.happened(number) == through.happened(number)
    assert np.sum(after.sums(first, first + 20)) == len(requests)
