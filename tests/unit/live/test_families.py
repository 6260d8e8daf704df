"""Metric families of the picker: names, labels, and gauges of one moment."""

import msgspec
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from lorapick.core.admission.pressure import Pressure
from lorapick.live.families import LATENCY_BUCKETS, STAY_BUCKETS, Families
from lorapick.live.families_gauges import POD_GAUGES, POD_SIGNALS, PRESSURE_TIERS, FleetGauges, Moment
from lorapick.live.publish import PlacementNow
from lorapick.model.alerts import Alert
from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.model.signals import FleetSignals, PodSignals, Signals
from lorapick.testing.published import small_fleet


def page(collector) -> str:
    return generate_latest(collector).decode()


def shown(**parts) -> FleetGauges:
    fleet = small_fleet()
    gauges = FleetGauges()
    gauges.take(Moment(**{"fleet": fleet.fleet_now, "signals": fleet.signals(), **parts}))
    return gauges


def test_event_families_have_the_documented_names_and_labels() -> None:
    families = Families()
    for family in (families.requests, families.picks, families.hits, families.pod_picks, families.pod_hits):
        family.add(*("x" for _ in family.labels))
    for labels in (families.swaps, families.loads, families.failures, families.coalesced, families.evictions):
        labels.add(*("x" for _ in labels.labels))
    for counts in (families.adapter_loads, families.adapter_swaps, families.adapter_evictions, families.pressure):
        counts.add(*("x" for _ in counts.labels))
    for counts in (families.alerts, families.refusals, families.adapter_failures, families.adapter_coalesced):
        counts.add("x")
    families.decisions.add("x", "x")
    families.prefills_failed.add("x", "x")
    for sums in (families.adapter_unused, families.adapter_latency):
        sums.add(1.0, "x")
    for histogram in (families.residency, families.adapter_residency, families.unused, families.hold_seconds):
        histogram.add(1.0, "x")
    families.ttft.add(1.0)
    families.freeze()
    found = {
        family.name.removeprefix("lorapick_"): set(family.samples[0].labels) - {"le"}
        for family in text_string_to_metric_families(page(families))
    }
    assert found == {
        "requests": {"outcome", "reason"},
        "decisions": {"outcome", "reason"},
        "latency_seconds": set(),
        "ttft_seconds": set(),
        "picks": {"adapter", "tier"},
        "hits": {"adapter", "tier"},
        "pod_picks": {"pod", "tier"},
        "pod_hits": {"pod", "tier"},
        "swaps": {"pod", "from"},
        "loads": {"pod", "by", "from"},
        "load_failures": {"pod"},
        "prefills_failed": {"pod", "why"},
        "loads_coalesced": {"pod"},
        "evictions": {"pod", "by"},
        "residency_seconds": {"pod"},
        "hit_to_evict_seconds": {"pod"},
        "adapter_loads": {"adapter", "from"},
        "adapter_swaps": {"adapter"},
        "adapter_evictions": {"adapter"},
        "adapter_load_failures": {"adapter"},
        "adapter_loads_coalesced": {"adapter"},
        "adapter_residency_seconds": {"adapter"},
        "adapter_hit_to_evict_seconds": {"adapter"},
        "adapter_latency_seconds": {"adapter"},
        "pressure_changes": {"pod", "tier"},
        "alerts_raised": {"alert"},
        "placement_refusals": {"reason"},
        "pick_seconds": set(),
        "hold_seconds": {"for"},
    }


def test_bounds_of_the_alerts_are_bounds_of_the_residencies() -> None:
    settings = AlertSettings()
    assert {30.0, settings.residency, settings.residency_page} <= {*STAY_BUCKETS}


@pytest.mark.parametrize("promised", [0.02, 0.7, 300.0, 900.0])
def test_what_was_promised_is_a_bound_and_another_is_above_it(promised: float) -> None:
    families = Families(SloSettings(latency_p95=promised, ttft_p95=promised))
    families.ttft.begin()
    families.freeze()
    for family in (families.latency, families.ttft):
        samples = [each for metric in family.collect() for each in metric.samples if "le" in each.labels]
        bounds = [float(each.labels["le"]) for each in samples]
        assert bounds == sorted({*bounds, *LATENCY_BUCKETS, promised, float("inf")})
        assert bounds.index(promised) < len(bounds) - 2, "else Prometheus gives it as the quantile of all that is above"


def test_a_pod_that_is_gone_leaves_no_series() -> None:
    families = Families()
    families.loads.add("p", "engine", "disk")
    families.residency.add(1.0, "p")
    families.residency.add(1.0, "q")
    families.forget_pod("p")
    families.freeze()
    assert 'pod="p"' not in page(families)
    assert 'pod="q"' in page(families)


def test_gauges_stand_for_one_snapshot() -> None:
    assert list(FleetGauges().collect()) == []
    gauges = shown(active={"a": 100.0})
    names = {family.name for family in gauges.collect()}
    assert {f"lorapick_{name}" for name, _, _ in (*POD_GAUGES, *POD_SIGNALS)} < names
    gauges.take(None)
    assert list(gauges.collect()) == []


def test_what_admission_did_and_which_alerts_stand() -> None:
    fleet = small_fleet().fleet_now
    totals = msgspec.structs.replace(
        fleet.totals, waiting={"held_for_slot": 1}, expired={"held_for_load": 2}, probation=3, turns=4, quarantines=5
    )
    pods = [
        msgspec.structs.replace(pod, pressure=word, loading=1)
        for pod, word in zip(fleet.pods, ("none", "critical", None), strict=True)
    ]
    now = msgspec.structs.replace(fleet, totals=totals, pods=tuple(pods))
    lines = page(shown(fleet=now, alerts=["queues"])).splitlines()
    for line in (
        'lorapick_requests_waiting{for="held_for_slot"} 1.0',
        'lorapick_holds_expired_total{for="held_for_load"} 2.0',
        "lorapick_probation_requests_total 3.0",
        "lorapick_turns_total 4.0",
        "lorapick_quarantines_total 5.0",
        'lorapick_loads_in_flight{pod="pod-07"} 1.0',
        'lorapick_pressure_tier{pod="pod-02"} 0.0',
        'lorapick_pressure_tier{pod="pod-05"} 3.0',
        'lorapick_alert{alert="queues"} 1.0',
        'lorapick_alert{alert="convoy"} 0.0',
    ):
        assert line in lines
    assert not any("pressure_tier" in line and "pod-07" in line for line in lines), "it was never scraped"
    assert sum(line.startswith("lorapick_alert{") for line in lines) == len(Alert)
    assert tuple(tier.word for tier in Pressure) == PRESSURE_TIERS


def test_what_placement_wants_and_did() -> None:
    now = PlacementNow(
        given={"load": {"pin": 3, "schedule": 1}, "touch": {"pin": 2}},
        ended={"load": {"done": 2, "failed": 1}},
        begun={"load": 3},
        seconds={"load": 1.5},
        touches=2,
        pins_wanted=4,
        pins_missing=1,
        pins_without_place=1,
        pin_missing_longest=2.5,
        moves_last_minute=7,
        orders=1,
        warming=("a", "b"),
        leaving=("c",),
    )
    lines = page(shown(fleet=msgspec.structs.replace(small_fleet().fleet_now, placement=now))).splitlines()
    for line in (
        'lorapick_placement_commands_total{kind="load",why="pin"} 3.0',
        'lorapick_placement_commands_total{kind="touch",why="pin"} 2.0',
        'lorapick_placement_command_results_total{kind="load",outcome="failed"} 1.0',
        'lorapick_placement_command_seconds_sum{kind="load"} 1.5',
        'lorapick_placement_command_seconds_count{kind="load"} 3.0',
        "lorapick_touches_total 2.0",
        "lorapick_pins_wanted 4.0",
        "lorapick_pins_missing 1.0",
        "lorapick_pins_without_place 1.0",
        "lorapick_pin_missing_seconds_max 2.5",
        "lorapick_placement_moves_last_minute 7.0",
        "lorapick_placement_orders 1.0",
        "lorapick_warming_pods 2.0",
        "lorapick_leaving_pods 1.0",
    ):
        assert line in lines, line


def test_what_is_not_known_of_envoy_has_no_sample() -> None:
    fleet = small_fleet().fleet_now
    totals = msgspec.structs.replace(fleet.totals, passed={"no_body": 3}, faults={"stream_error": 0})
    found = page(shown(fleet=msgspec.structs.replace(fleet, totals=totals)))
    assert 'lorapick_passed_total{why="no_body"} 3.0' in found
    assert 'lorapick_faults_total{kind="stream_error"} 0.0' in found
    assert not [line for line in found.splitlines() if line.startswith("lorapick_envoy")]
    known = msgspec.structs.replace(totals, envoy_requests=12, envoy_without_picker=0)
    found = page(shown(fleet=msgspec.structs.replace(fleet, totals=known)))
    assert "lorapick_envoy_requests_total 12.0" in found
    assert "lorapick_envoy_without_picker_total 0.0" in found


def test_what_shows_thrash() -> None:
    pods = (
        PodSignals(
            pod="p", swaps_per_second=0.5, loads_per_second=0.5, evictions_per_second=0.1, mean_residency=40.0,
            residency_p50=30.0, residency_p95=90.0, swap_queue=3, useful_share=0.15, queue_critical=True,
        ),
        PodSignals(pod="q", swaps_per_second=0.0, loads_per_second=0.0, evictions_per_second=0.0),
    )  # fmt: skip
    fleet = FleetSignals(
        requests_per_second=1.0, swaps_per_second=0.25, new_adapters=4, new_traffic_share=0.3, active_per_slot=1.5,
        useful_share=0.15, critical_queues=1,
    )  # fmt: skip
    lines = page(
        shown(
            signals=Signals(now=100.0, fleet=fleet, pods=pods),
            slots={"legal": 2, "other": 5},
            waiting={"legal": 1},
            times={"p": (100.0, 15.0)},
            slo=SloSettings(latency_p95=2.0),
        )
    ).splitlines()
    for line in (
        'lorapick_swap_queue_depth{pod="p"} 3.0',
        'lorapick_mean_residency_seconds{pod="p"} 40.0',
        'lorapick_residency_quantile_seconds{pod="p",quantile="0.95"} 90.0',
        'lorapick_useful_time_ratio{pod="p"} 0.15',
        'lorapick_queue_critical{pod="p"} 1.0',
        'lorapick_queue_critical{pod="q"} 0.0',
        "lorapick_new_adapters 4.0",
        "lorapick_new_adapters_traffic_share 0.3",
        "lorapick_slot_pressure 1.5",
        "lorapick_fleet_useful_time_ratio 0.15",
        "lorapick_critical_queues 1.0",
        'lorapick_busy_seconds_total{pod="p"} 100.0',
        'lorapick_useful_seconds_total{pod="p"} 15.0',
        'lorapick_slo_seconds{objective="latency_p95"} 2.0',
        'lorapick_adapter_slots_used{adapter="other"} 5.0',
        'lorapick_adapter_requests_waiting{adapter="legal"} 1.0',
    ):
        assert line in lines, line
    idle = [line.split("{")[0] for line in lines if 'pod="q"' in line]
    assert idle == ["lorapick_swap_queue_depth", "lorapick_queue_critical"]
    assert not [line for line in lines if "ttft_p95" in line], "nobody promised it"


def test_new_adapters_are_not_known_in_the_first_hour() -> None:
    fleet = FleetSignals(requests_per_second=1.0, swaps_per_second=0.0)
    lines = page(shown(signals=Signals(now=1.0, fleet=fleet))).splitlines()
    assert not [line for line in lines if line.startswith("lorapick_new_adapters")]


def test_the_help_of_the_queue_says_what_the_code_does() -> None:
    """The plain formula of the specification leaves the batch's free seats out (docs/adr/0004)."""
    [text] = [text for name, text, _ in POD_GAUGES if name == "queue_depth"]
    assert "free seats" in text
