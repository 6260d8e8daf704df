"""Figures of a comparison, from what clients and pods saw."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.wire.exposition import ExpositionError
from lorapick.wire.report import (
    DemoReport,
    DemoSetup,
    Observed,
    Percentiles,
    PodCounts,
    percentiles,
    read_pod_counts,
    rows,
    summarise,
)

PAGE = b"""\
# HELP lorapick_pod_swaps_total Loads begun while a request waited for them.
# TYPE lorapick_pod_swaps_total counter
lorapick_pod_swaps_total 7.0
# TYPE lorapick_pod_loads_total counter
lorapick_pod_loads_total 9.0
# TYPE lorapick_pod_hits_total counter
lorapick_pod_hits_total 90.0
# TYPE lorapick_pod_misses_total counter
lorapick_pod_misses_total 10.0
# TYPE lorapick_pod_seconds_total counter
lorapick_pod_seconds_total{phase="prefill"} 1.0
lorapick_pod_seconds_total{phase="decode"} 5.0
lorapick_pod_seconds_total{phase="transfer"} 2.0
lorapick_pod_seconds_total{phase="idle"} 100.0
"""
SETUP = DemoSetup(adapters=40, pods=8, slots=4, rate=40.0, requests=4, seed=1, zipf=1.0, mode="inline")


class TestPodCounts:
    def test_from_a_page(self) -> None:
        assert read_pod_counts(PAGE) == PodCounts(swaps=7, loads=9, hits=90, misses=10, useful=6.0, busy=8.0)

    def test_page_of_something_else_counts_nothing(self) -> None:
        assert read_pod_counts(b"up 1\n") == PodCounts()

    def test_malformed_page(self) -> None:
        with pytest.raises(ExpositionError):
            read_pod_counts(b"lorapick_pod_swaps_total many\n")

    def test_sums_and_differences(self) -> None:
        one = read_pod_counts(PAGE)
        assert one + one - one == one
        assert one - one == PodCounts()
        assert (one + PodCounts(swaps=1)).swaps == 8


class TestPercentiles:
    def test_of_nothing(self) -> None:
        assert percentiles([]) is None

    def test_of_one_to_a_hundred(self) -> None:
        assert percentiles(range(100, 0, -1)) == Percentiles(p50=50, p95=95, p99=99)

    @given(st.lists(st.floats(0, 1e6), min_size=1))
    def test_they_occurred_and_that_share_is_not_above(self, values: list[float]) -> None:
        found = percentiles(values)
        assert found is not None
        for share, value in ((0.50, found.p50), (0.95, found.p95), (0.99, found.p99)):
            assert value in values
            assert sum(other <= value for other in values) >= share * len(values) - 1e-9
            assert sum(other < value for other in values) < share * len(values)


class TestSummary:
    def test_of_a_run(self) -> None:
        observed = [
            Observed(latency=0.2, ttft=0.1),
            Observed(latency=0.4, ttft=0.3),
            Observed(latency=9.0, ttft=8.0, error="the stream ended early"),
            Observed(latency=0.1, error="status 429"),
        ]
        counts = PodCounts(swaps=16, loads=20, hits=3, misses=1, useful=6.0, busy=8.0)
        result = summarise("weighted", observed, counts, seconds=4.0, pods=2)
        assert (result.requests, result.answered) == (4, 2)
        assert result.errors == {"the stream ended early": 1, "status 429": 1}
        assert (result.swaps, result.swap_rate) == (16, 2.0)
        assert (result.hit_ratio, result.swap_share, result.useful_share) == (0.75, 0.25, 0.75)
        assert result.ttft == Percentiles(p50=0.1, p95=0.3, p99=0.3)  # failed ones have no say
        assert result.latency == Percentiles(p50=0.2, p95=0.4, p99=0.4)

    def test_of_nothing_is_unknown_and_not_zero(self) -> None:
        result = summarise("weighted", [], PodCounts(), seconds=0.0, pods=2)
        assert (result.hit_ratio, result.swap_share, result.useful_share, result.ttft) == (None, None, None, None)
        assert dict([row for row in rows(DemoReport(setup=SETUP, results=(result,))) if row[0]])["hit ratio"] == "-"


def test_table_has_a_column_for_each_policy_and_a_row_for_each_error() -> None:
    good = summarise("weighted", [Observed(latency=0.0123, ttft=0.004)], PodCounts(hits=1), seconds=2.0, pods=8)
    bad = summarise("round-robin", [Observed(latency=1.0, error="status 503")], PodCounts(), seconds=2.0, pods=8)
    report = DemoReport(setup=SETUP, results=(good, bad))
    table = rows(report)
    assert table[0] == ("", "weighted", "round-robin")
    assert ("hit ratio", "100.0 %", "-") in table
    assert ("latency P50, ms", "12", "-") in table
    assert table[-1] == ("error: status 503", "0", "1")
    assert {len(row) for row in table} == {3}


def test_report_survives_json() -> None:
    report = DemoReport(
        setup=SETUP, results=(summarise("weighted", [Observed(latency=0.1)], PodCounts(), seconds=1.0, pods=8),)
    )
    assert msgspec.json.decode(msgspec.json.encode(report), type=DemoReport) == report
