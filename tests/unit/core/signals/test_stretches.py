"""Sums of bins, stretches to compare, and by how much traffic changes by itself."""

import numpy as np
import pytest

from lorapick.core.signals.stretches import dispersion, drift, level_error, middle, since, stretches, summed
from lorapick.core.signals.traffic import BIN, TrafficBin
from lorapick.testing.courses import Course, steady, zipf


def bins(*counts):
    return [TrafficBin(number * BIN, BIN, each) for number, each in enumerate(counts)]


def test_a_sum_has_rates_and_shares():
    total = summed([*bins({"a": 3, "b": 1}, {"a": 5}), TrafficBin(600.0, 100.0, {"b": 1}, others=10)])
    assert (total.seconds, total.total, total.counts) == (700.0, 20, {"a": 8, "b": 2})
    assert total.rate("a") == 8 / 700
    assert total.share(["a", "c"]) == 0.4
    assert total.but({"a": 0}).total == 12


def test_what_was_before_can_be_taken_off():
    base = summed(bins({"a": 300}))
    assert summed(bins({"a": 200, "b": 100})).without(base, 100.0).counts == {"a": 100, "b": 100}
    assert summed(bins({"a": 200})).without(base, 299.0).counts == {"a": 200}  # too little would be left


def test_the_last_whole_bin_counts_when_the_present_one_is_young():
    young = [*bins({}, {}, {}), TrafficBin(900.0, 20.0, {})]
    assert since(young, 890.0) == young[-2:]
    assert since(young, 600.0) == young[2:]
    assert middle(young[:3]) == 450.0


def test_stretches_begin_after_the_change_and_end_now():
    many = bins(*({} for _ in range(50)))
    found = list(stretches(many, 20))
    assert len(found) == len({*found})
    assert all(20 <= start < end <= 50 for start, end in found)
    assert (20, 21) in found
    assert (44, 50) in found


def test_poisson_has_a_dispersion_of_one_and_no_drift():
    table = Course(steady(60, zipf(40)), seed=1).table(60)
    names = list(table.bins[0].counts)
    assert dispersion(table.bins, names) == pytest.approx(1.0, abs=0.15)
    assert drift(table.bins, names) * 3600 < 0.03
    assert level_error(table.bins) == 0.05


def test_bursts_and_trends_are_seen():
    chance = np.random.default_rng(2)
    bursts = np.repeat(np.exp(chance.normal(0, 0.5, (12, 40))), 5, axis=0)
    table = Course(steady(60, zipf(40)) * bursts, seed=1).table(60)
    names = list(table.bins[0].counts)
    assert dispersion(table.bins, names) > 3
    trend = 1 + np.linspace(0, 1, 60)[:, None] * np.where(np.arange(40) % 2, 0.4, -0.4)
    table = Course(steady(60, zipf(40)) * trend, seed=1).table(60)
    assert 0.2 < drift(table.bins, list(table.bins[0].counts)) * 3600 < 0.6


def test_little_is_no_error():
    assert dispersion([], []) == 1.0
    assert dispersion(bins({"a": 1}), ["a"]) == 1.0
    assert drift(bins({"a": 1}), ["a"]) == 0.0
    assert drift(bins({}, {}, {}), ["a"]) == 0.0
