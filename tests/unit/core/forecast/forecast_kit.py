"""Demand for tests: made-up days of it."""

from lorapick.core.forecast.history import BIN, PER_DAY, History
from lorapick.model.placement import DemandBin

FIRST = 2_900 * 7 * PER_DAY
"""Number of the bin in which histories of tests begin."""


def wall(number):
    """When a bin begins, counted from `FIRST`."""
    return (FIRST + number) * BIN


def history(bins, **counts):
    """A history of so many bins; by adapter, a function from the bin's number to requests in it."""
    found = History()
    add(found, range(bins), **counts)
    return found


def add(found, numbers, **counts):
    found.recall(
        [
            DemandBin(start=wall(number), adapter=name, count=count(number))
            for number in numbers
            for name, count in counts.items()
        ]
    )


def always(count):
    return lambda _: count


def daily(count, *, begin, bins=12):
    """So many requests in each bin of one hour of the day."""
    return lambda number: count if begin <= number % PER_DAY < begin + bins else 0
