"""Metric families: names, and counts that can be read while counting goes on."""

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from lorapick.core.admission.pressure import Pressure
from lorapick.live.families import POD_GAUGES, PRESSURE_TIERS, Counts, Families, FleetGauges, WithoutCreated
from lorapick.live.publish import PlacementNow
from lorapick.model.alerts import Alert
from lorapick.testing.published import small_fleet


def page(registry: CollectorRegistry) -> str:
    return generate_latest(WithoutCreated(registry)).decode()


def test_counts_show_what_was_frozen() -> None:
    registry = CollectorRegistry()
    counts = Counts("things", "Things.", labels=("kind",))
    registry.register(counts)
    counts.add("a")
    counts.freeze()
    counts.add("a")
    counts.add("b")
    assert 'lorapick_things_total{kind="a"} 1.0' in page(registry)
    assert "b" not in page(registry).splitlines()[-1]
    counts.freeze()
    assert 'lorapick_things_total{kind="a"} 2.0' in page(registry)


def test_event_families_have_the_documented_names_and_labels() -> None:
    registry = CollectorRegistry()
    families = Families(registry)
    families.requests.add("served", "none")
    families.picks.add("a", "disk")
    families.hits.add("a", "gpu_idle")
    families.swaps.add("p", "disk")
    families.loads.add("p", "inferred", "disk")
    families.failures.add("p")
    families.coalesced.add("p")
    families.pressure.add("p", "hard")
    families.alerts.add("convoy")
    families.refusals.add("pod_busy")
    families.hold_seconds.labels("held_for_load").observe(0.1)
    families.freeze()
    found = {family.name: set(family.samples[0].labels) for family in text_string_to_metric_families(page(registry))}
    assert found == {
        "lorapick_requests": {"outcome", "reason"},
        "lorapick_picks": {"adapter", "tier"},
        "lorapick_hits": {"adapter", "tier"},
        "lorapick_swaps": {"pod", "from"},
        "lorapick_loads": {"pod", "by", "from"},
        "lorapick_load_failures": {"pod"},
        "lorapick_loads_coalesced": {"pod"},
        "lorapick_pressure_changes": {"pod", "tier"},
        "lorapick_alerts_raised": {"alert"},
        "lorapick_placement_refusals": {"reason"},
        "lorapick_pick_seconds": {"le"},
        "lorapick_hold_seconds": {"for", "le"},
    }


def test_gauges_stand_for_one_snapshot() -> None:
    gauges = FleetGauges()
    assert list(gauges.collect()) == []
    gauges.take(small_fleet().fleet_now, {"a": 100.0})
    names = {family.name for family in gauges.collect()}
    assert {f"lorapick_{name}" for name, _, _ in POD_GAUGES} < names
    gauges.take(None, {})
    assert list(gauges.collect()) == []


def test_what_admission_did_and_which_alerts_stand() -> None:
    fleet = small_fleet().fleet_now
    registry, gauges = CollectorRegistry(), FleetGauges()
    registry.register(gauges)
    totals = msgspec.structs.replace(
        fleet.totals, waiting={"held_for_slot": 1}, expired={"held_for_load": 2}, probation=3, turns=4, quarantines=5
    )
    pods = [
        msgspec.structs.replace(pod, pressure=word, loading=1)
        for pod, word in zip(fleet.pods, ("none", "critical", None), strict=True)
    ]
    gauges.take(msgspec.structs.replace(fleet, totals=totals, pods=tuple(pods)), {}, alerts=["queues"])
    lines = page(registry).splitlines()
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
    registry, gauges = CollectorRegistry(), FleetGauges()
    registry.register(gauges)
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
    gauges.take(msgspec.structs.replace(small_fleet().fleet_now, placement=now), {})
    lines = page(registry).splitlines()
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
    registry, gauges = CollectorRegistry(), FleetGauges()
    registry.register(gauges)
    totals = msgspec.structs.replace(fleet.totals, passed={"no_body": 3}, faults={"stream_error": 0})
    gauges.take(msgspec.structs.replace(fleet, totals=totals), {})
    assert 'lorapick_passed_total{why="no_body"} 3.0' in page(registry)
    assert 'lorapick_faults_total{kind="stream_error"} 0.0' in page(registry)
    assert "envoy" not in page(registry)
    known = msgspec.structs.replace(totals, envoy_requests=12, envoy_without_picker=0)
    gauges.take(msgspec.structs.replace(fleet, totals=known), {})
    assert "lorapick_envoy_requests_total 12.0" in page(registry)
    assert "lorapick_envoy_without_picker_total 0.0" in page(registry)


def test_the_help_of_the_queue_says_what_the_code_does() -> None:
    """The plain formula of the specification leaves the batch's free seats out (docs/adr/0004)."""
    [text] = [text for name, text, _ in POD_GAUGES if name == "queue_depth"]
    assert "free seats" in text
