"""Metrics by their definitions."""

import pytest

from lorapick.sim.histogram import Histogram
from lorapick.sim.measures import GpuTime, Measures, distribution
from lorapick.sim.metrics import METRICS, shown


def measures(**values):
    latency = Histogram()
    for value in (0.1, 0.2, 0.3):
        latency.add(value)
    nothing = distribution(Histogram())
    fields = dict.fromkeys(
        ("arrivals", "served", "failed", "rejected", "abandoned", "in_flight", "hits", "misses", "waited", "swaps"), 0
    ) | dict.fromkeys(("held", "followed", "turns", "alerts"), 0)
    return Measures(
        **{
            **fields,
            "start": 10.0,
            "end": 110.0,
            "pods": 4,
            "loads": 0,
            "peak_swap_rate": 0.5,
            "output_tokens": 700,
            "slot_seconds": 800.0,
            "latency": distribution(latency) if values.get("served") else nothing,
            "ttft": nothing,
            "first_ttft": distribution(latency) if values.get("served") else nothing,
            "held_for": distribution(latency) if values.get("held") else nothing,
            "gpu": GpuTime(prefill=20.0, decode=60.0, drain=40.0, transfer=10.0, warm_up=30.0, idle=200.0, down=40.0),
            **values,
        }
    )


BUSY = measures(
    arrivals=200,
    served=180,
    failed=2,
    rejected=6,
    abandoned=2,
    in_flight=10,
    hits=150,
    misses=40,
    waited=30,
    held=50,
    followed=12,
    cold=40,
    commanded={"pin": 2, "schedule": 3},
    touches=2,
    turns=3,
    alerts=1,
    swaps=20,
    loads=25,
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("served_rate", 1.8),
        ("p50_ms", 200.0),
        ("mean_ms", 200.0),
        ("swap_share", 0.15),
        ("swaps", 20),
        ("swaps_per_min", 12.0),
        ("swap_rate", 0.05),
        ("peak_swap_rate", 0.5),
        ("loads", 25),
        ("loads_avoided", 12),
        ("cold_starts", 200.0),
        ("first_ttft_ms", 200.0),
        ("first_ttft_p95_ms", 300.0),
        ("loads_commanded", 5),
        ("touches", 2),
        ("turns", 3),
        ("alerts", 1),
        ("held_share", 0.25),
        ("held_p95_ms", 300.0),
        ("hit_ratio", 150 / 190),
        ("residency_s", 32.0),
        ("requests_per_residency", 7.6),
        ("useful_share", 0.5),
        ("busy_share", 160 / 360),
        ("inference_share", 0.2),
        ("lost_share", 0.05),
        ("output_rate", 7.0),
        ("ttft_p95_ms", None),
    ],
)
def test_definitions(name, value):
    assert METRICS[name].of(BUSY) == (None if value is None else pytest.approx(value, rel=0.01))


def test_nothing_to_divide_by_is_none_and_never_zero():
    quiet = measures()
    for name in (
        "hit_ratio",
        "residency_s",
        "requests_per_residency",
        "swap_share",
        "lost_share",
        "p95_ms",
        "held_p95_ms",
    ):
        assert METRICS[name].of(quiet) is None, name


def test_every_metric_says_what_it_means():
    assert all(metric.name == name and metric.means and metric.label for name, metric in METRICS.items())


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "ms", "–"),
        (0.1234, "%", "12.3 %"),
        (12.345, "ms", "12.3 ms"),
        (1234.5, "ms", "1,234 ms"),
        (49_427.0, "ms", "49.4 s"),
        (0.0421, "/s/pod", "0.0421 /s/pod"),
        (7.0, "", "7"),
        (7.25, "", "7.25"),
        (123_456, "", "123,456"),
    ],
)
def test_shown(value, unit, text):
    assert shown(value, unit) == text


@pytest.mark.parametrize(("mean", "half", "text"), [(10_400.0, 783.0, "0.783 s"), (9000.0, 12_000.0, "12,000 ms")])
def test_an_interval_is_shown_in_the_unit_of_its_mean(mean, half, text):
    assert shown(half, "ms", beside=mean) == text


def test_gpu_time_adds_and_subtracts():
    one = GpuTime(prefill=1.0, idle=2.0)
    assert one.plus(one).less(one) == one
    assert (one.total, len(one.parts())) == (3.0, 10)
