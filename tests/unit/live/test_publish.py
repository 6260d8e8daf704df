"""Published values: they survive JSON, and the real views have their shape."""

import msgspec
import pytest

from lorapick.live.driver import Driver
from lorapick.live.envoy.counters import counters_of
from lorapick.live.envoy.watch import EnvoyWatch
from lorapick.live.metrics import Metrics
from lorapick.live.publish import AdapterRow, AlertRow, DecisionRow, FleetSnapshot, Observer, Published, Totals
from lorapick.live.published import PublishedViews
from lorapick.live.transport_counts import TransportCounts
from lorapick.model.adapters import Adapter
from lorapick.model.events import PodAppeared
from lorapick.model.pods import Pod, Role
from lorapick.model.settings import Settings
from lorapick.testing.published import small_fleet

PAGE = b"""{"stats": [
  {"name": "http.gateway.downstream_rq_total", "value": 12},
  {"name": "http.gateway.ext_proc.picker.failure_mode_allowed", "value": 4}
]}"""


def test_rows_survive_json() -> None:
    fleet = small_fleet()
    alert = AlertRow(name="convoy", since=1.0, facts={"pods": 3.0, "why": "drain"})
    for value in (fleet.fleet_now, *fleet.adapter_rows, *fleet.decision_rows, alert):
        assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value


def test_totals_of_the_example_add_up() -> None:
    totals = small_fleet().fleet_now.totals
    left = totals.served + totals.failed + totals.rejected + totals.abandoned
    assert left + totals.in_flight + totals.held == totals.arrivals


def test_what_transport_and_envoy_count_is_among_the_totals() -> None:
    transport, envoy = TransportCounts(), EnvoyWatch("unix:/nowhere")
    views = PublishedViews(driver := Driver(Settings(), seed=0), transport=transport, envoy=envoy)
    assert views.fleet().totals == Totals(
        waiting={"held_for_load": 0, "held_for_slot": 0},
        expired={"held_for_load": 0, "held_for_slot": 0},
        faults={
            "decide_failure": 0,
            "protocol_error": 0,
            "stream_error": 0,
            "event_log": 0,
            "kv_events_missed": 0,
            "kv_events_malformed": 0,
            "ledger": 0,
            "spans_lost": 0,
            "scoring_error": 0,
        },
    )
    transport.passed["no_body"] += 2
    transport.decide_failures, transport.protocol_errors, transport.stream_errors = 1, 2, 3
    transport.event_lost()
    driver.fleet.state.tally.scoring_errors = 4
    envoy.counters = counters_of(PAGE)
    totals = views.fleet().totals
    assert totals.passed == {"no_body": 2}
    assert totals.faults == {
        "decide_failure": 1,
        "protocol_error": 2,
        "stream_error": 3,
        "event_log": 1,
        "kv_events_missed": 0,
        "kv_events_malformed": 0,
        "ledger": 0,
        "spans_lost": 0,
        "scoring_error": 4,
    }
    assert (totals.envoy_requests, totals.envoy_without_picker) == (12, 4)


def test_real_views_and_metrics_fit_the_protocols() -> None:
    observer: Observer = Metrics()
    views: Published = PublishedViews(Driver(Settings(), seed=0, observers=[observer]))
    assert isinstance(views.fleet(), FleetSnapshot)
    rows: list[AdapterRow | DecisionRow | AlertRow] = [*views.adapters(), *views.decisions(10), *views.alerts()]
    assert rows == []
    assert [*views.residency()] == []
    assert views.explain("nothing") is None


@pytest.mark.parametrize(
    ("roles", "sides", "cells"),
    [
        (("prefill", "decode", "both"), {"prefill": ("pod-0",), "decode": ("pod-2",)}, ["prefill", "decode"]),
        (("both", "both", "both"), {}, [None, None]),
    ],
)
def test_adapters_and_cells_tell_the_side(
    roles: tuple[str, ...], sides: dict[str, tuple[str, ...]], cells: list[str | None]
) -> None:
    driver = Driver(Settings(adapters=(Adapter(name="legal"),)), seed=0)
    fleet = driver.fleet
    for number, role in enumerate(roles):
        pod = Pod(name=f"pod-{number}", address=f"10.0.0.{number}:8000", role=Role(role))
        fleet.apply(PodAppeared(t=0.0, id=number, pod=pod), 0.0)
    for number in (0, 2):
        fleet.state.residency.arrived(number, "legal", now=0.0, seconds=None)
    views = PublishedViews(driver)
    (adapter,) = views.adapters()
    assert adapter.sides == sides
    assert [belief.side for belief in views.residency()] == cells
