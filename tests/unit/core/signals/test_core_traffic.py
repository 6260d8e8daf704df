"""Counts per adapter and bin, first requests, and their bounds."""

from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.signals import traffic
from lorapick.core.signals.traffic import BIN, MOST_BINS, TrafficBins


def counts(table):
    return [dict(each.counts) for each in table.bins]


def test_requests_are_counted_by_bin_and_adapter():
    bins = TrafficBins()
    for t, name in ((100.0, "a"), (101.0, "b"), (399.9, "a"), (400.0, "a"), (1001.0, "c")):
        bins.arrived(name, t)
    table = bins.table(1100.0)
    assert counts(table) == [{"a": 2, "b": 1}, {"a": 1}, {}, {"c": 1}]
    assert [each.start for each in table.bins] == [100.0, 400.0, 700.0, 1000.0]
    assert [each.seconds for each in table.bins] == [BIN, BIN, BIN, 100.0]
    assert table.first_seen == {"a": 100.0, "b": 101.0, "c": 1001.0}


def test_before_the_first_request_there_is_nothing():
    assert TrafficBins().table(50.0).bins == ()


def test_a_table_does_not_change():
    bins = TrafficBins()
    bins.arrived("a", 0.0)
    table = bins.table(1.0)
    bins.arrived("a", 2.0)
    bins.arrived("b", BIN + 1)
    assert counts(table) == [{"a": 1}]


def test_old_bins_are_forgotten_and_first_requests_are_not():
    bins = TrafficBins()
    bins.arrived("old", 1.0)
    for number in range(1, MOST_BINS + 5):
        bins.arrived("steady", number * BIN + 1)
    now = (MOST_BINS + 4) * BIN + 2
    assert len(bins.table(now).bins) == MOST_BINS
    assert "old" not in bins.table(now).first_seen
    bins.arrived("old", now)
    assert bins.table(now).first_seen["old"] == 1.0


def test_after_a_long_silence_nothing_old_is_left():
    bins = TrafficBins()
    bins.arrived("a", 0.0)
    bins.arrived("b", 10 * MOST_BINS * BIN + 10.0)
    table = bins.table(10 * MOST_BINS * BIN + 20.0)
    assert counts(table) == [{"b": 1}]
    assert table.bins[0].seconds == 20.0


def test_names_beyond_the_bound_are_counted_together(monkeypatch):
    monkeypatch.setattr(traffic, "MOST_NAMES", 2)
    monkeypatch.setattr(traffic, "MOST_KNOWN", 3)
    bins = TrafficBins()
    for name in "abcdcd":
        bins.arrived(name, 5.0)
    (only,) = bins.table(6.0).bins
    assert (only.counts, only.others) == ({"a": 1, "b": 1}, 4)


@given(st.lists(st.tuples(st.floats(0, 5000), st.sampled_from("abcdefgh"))))
def test_every_request_is_counted_once_and_memory_is_bounded(steps):
    bins, now = TrafficBins(), 0.0
    kept, traffic.MOST_NAMES = traffic.MOST_NAMES, 4
    try:
        for step, name in steps:
            now += step
            bins.arrived(name, now)
        table = bins.table(now)
        recent = [each for each in table.bins if each.start > now - MOST_BINS * BIN]
        assert len(recent) == len(table.bins)
        assert sum(sum(each.counts.values()) + each.others for each in table.bins) <= len(steps)
        if now < MOST_BINS * BIN - BIN:
            assert sum(sum(each.counts.values()) + each.others for each in table.bins) == len(steps)
        assert len({name for each in table.bins for name in each.counts}) <= 4
        assert {name for each in table.bins for name in each.counts} == set(table.first_seen)
    finally:
        traffic.MOST_NAMES = kept


def test_who_is_known_from_earlier_times_is_not_new():
    bins = TrafficBins()
    bins.known(["a"])
    bins.arrived("a", 10.0)
    bins.arrived("b", 10.0)
    assert bins.table(11.0).first_seen == {"a": float("-inf"), "b": 10.0}
