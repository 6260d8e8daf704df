"""Counts, sums and histograms that can be read while counting goes on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Histogram as TheirHistogram
from prometheus_client import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from lorapick.live.families_kinds import Counts, Histograms, Sums


def page(*families: Collector) -> list[str]:
    return [line for family in families for line in generate_latest(family).decode().splitlines()]


def test_counts_show_what_was_frozen() -> None:
    counts = Counts("things", "Things.", labels=("kind",))
    counts.add("a")
    counts.freeze()
    counts.add("a")
    counts.add("b")
    assert 'lorapick_things_total{kind="a"} 1.0' in page(counts)
    assert not [line for line in page(counts) if '"b"' in line]
    counts.freeze()
    assert 'lorapick_things_total{kind="a"} 2.0' in page(counts)


def test_sums_count_and_add_up() -> None:
    sums = Sums("waits_seconds", "Waits.", labels=("who",))
    for value in (0.5, 1.0):
        sums.add(value, "a")
    sums.freeze()
    sums.add(9.0, "a")
    assert page(sums)[2:] == ['lorapick_waits_seconds_count{who="a"} 2.0', 'lorapick_waits_seconds_sum{who="a"} 1.5']


@given(values=st.lists(st.floats(0.0, 20.0), max_size=30))
def test_histograms_are_those_of_the_library(values: list[float]) -> None:
    bounds = (0.5, 1.0, 10.0)
    registry = CollectorRegistry()
    theirs = TheirHistogram("lorapick_x_seconds", "X.", buckets=bounds, registry=registry)
    ours = Histograms("x_seconds", "X.", buckets=bounds)
    ours.begin()
    for value in [*values, *bounds]:  # a bound belongs to its own bucket
        theirs.observe(value)
        ours.add(value)
    ours.freeze()
    ours.add(1.0)
    expected = {(s.name, s.labels.get("le")): s.value for family in registry.collect() for s in family.samples}
    found = {(s.name, s.labels.get("le")): s.value for family in ours.collect() for s in family.samples}
    assert found == pytest.approx({key: value for key, value in expected.items() if not key[0].endswith("_created")})


def test_series_of_a_label_value_are_dropped() -> None:
    histograms = Histograms("x_seconds", "X.", buckets=(1.0,), labels=("pod", "by"))
    for pod in ("p", "q"):
        histograms.add(0.5, pod, "me")
    histograms.drop("pod", "p")
    histograms.drop("adapter", "q")
    histograms.freeze()
    assert {line.split('pod="')[1][0] for line in page(histograms)[2:]} == {"q"}
