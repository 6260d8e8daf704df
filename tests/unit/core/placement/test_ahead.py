"""Loads ahead of need, by what was asked for before."""

from placement_kit import fleet, placement, tick, told

from lorapick.core.forecast.history import BIN
from lorapick.model import events
from lorapick.model.effects import KeepDemand
from lorapick.model.placement import DemandBin, Why

WALL = 1_760_054_400.0
"""A multiple of a bin."""


def recalled(book, *names, count=300):
    """So many requests in each of the bins of the last hour."""
    times = [WALL - BIN * back for back in range(1, 13)]
    bins = tuple(DemandBin(start=start, adapter=name, count=count) for start in times for name in names)
    book.apply(events.DemandRecalled, bins=bins)


def at(book, seconds):
    """The time of day comes with ticks."""
    book.now = seconds
    book.apply(events.Ticked, wall=WALL + seconds)
    return told(book)


def test_whom_the_last_hour_asked_for_is_loaded_though_nobody_asks_now():
    book = fleet("a", forecast="last_hour")
    recalled(book, "x")
    assert at(book, 1.0) == [("Load", "a", "x")]
    assert placement(book).wanted == {0: {"x": Why.FORECAST}}


def test_without_the_time_of_day_nobody_is_forecast():
    book = fleet("a", forecast="last_hour")
    recalled(book, "x")
    assert tick(book) == []


def test_a_bin_that_is_over_is_given_out_to_be_kept():
    book = fleet("a", forecast="last_hour")
    at(book, 1.0)
    for _ in range(3):
        book.use("y", "a")
    at(book, BIN)
    kept = [each for answer in book.answers for each in answer if isinstance(each, KeepDemand)]
    assert [(one.adapter, one.count) for one in kept[-1].bins] == [("y", 3)]


def test_a_forecast_is_no_reason_to_bring_what_no_pod_knows():
    book = fleet("a", forecast="last_hour")
    recalled(book, "gone")
    assert at(book, 1.0) == []


def test_what_is_there_stays_where_it_is():
    book = fleet("a", "b", forecast="last_hour")
    recalled(book, "x")
    book.use("x", "b")
    assert at(book, 1.0) == [("Touch", "b", "x")], "it is not loaded, but made the last to go"
    assert placement(book).wanted == {1: {"x": Why.FORECAST}}
