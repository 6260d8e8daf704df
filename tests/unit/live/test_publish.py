"""Published values: they survive JSON, and the real views have their shape."""

import msgspec

from lorapick.live.driver import Driver
from lorapick.live.metrics import Metrics
from lorapick.live.publish import AdapterRow, AlertRow, DecisionRow, FleetSnapshot, Observer, Published
from lorapick.live.published import PublishedViews
from lorapick.model.settings import Settings
from lorapick.testing.published import small_fleet


def test_rows_survive_json() -> None:
    fleet = small_fleet()
    alert = AlertRow(name="convoy", since=1.0, facts={"pods": 3.0, "why": "drain"})
    for value in (fleet.fleet_now, *fleet.adapter_rows, *fleet.decision_rows, alert):
        assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value


def test_totals_of_the_example_add_up() -> None:
    totals = small_fleet().fleet_now.totals
    left = totals.served + totals.failed + totals.rejected + totals.abandoned
    assert left + totals.in_flight + totals.held == totals.arrivals


def test_real_views_and_metrics_fit_the_protocols() -> None:
    observer: Observer = Metrics()
    views: Published = PublishedViews(Driver(Settings(), seed=0, observers=[observer]))
    assert isinstance(views.fleet(), FleetSnapshot)
    rows: list[AdapterRow | DecisionRow | AlertRow] = [*views.adapters(), *views.decisions(10), *views.alerts()]
    assert rows == []
    assert [*views.residency()] == []
    assert views.explain("nothing") is None
