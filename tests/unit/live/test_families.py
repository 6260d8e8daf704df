"""Metric families: names, and counts that can be read while counting goes on."""

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from lorapick.live.families import POD_GAUGES, Counts, Families, FleetGauges, WithoutCreated
from lorapick.testing.published import small_fleet


def page(registry: CollectorRegistry) -> str:
    return generate_latest(WithoutCreated(registry)).decode()


def test_counts_show_what_was_frozen() -> None:
    registry = CollectorRegistry()
    counts = Counts("things", "Things.", ("kind",))
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
