"""One line about the fleet, worst first."""

import msgspec
import pytest

from lorapick.live.publish import AlertRow
from lorapick.live.verdict import FleetHealth, verdict
from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.model.signals import FleetSignals
from lorapick.testing.published import small_fleet

FLEET = small_fleet().fleet_now
BUSY = FleetSignals(requests_per_second=50.0, swaps_per_second=0.02, hit_ratio=0.97)
BAD = FleetSignals(
    requests_per_second=50.0, swaps_per_second=0.62, mean_residency=41.0, useful_share=0.15, latency_p95=8.2
)
PAGE = AlertRow(name="latency", since=1.0, severity="page")
THRASH = AlertRow(name="thrash", since=1.0, severity="page")
WARN = AlertRow(name="swap_rate", since=1.0)


HARMFUL = FleetSignals(
    requests_per_second=4.0, swaps_per_second=0.02, error_ratio=0.11, latency_p95=25.3, active_adapters=39, slots=32,
    active_per_slot=39 / 32,
)  # fmt: skip
PROMISED = msgspec.structs.replace(FLEET, slo=SloSettings(latency_p95=2.0))


@pytest.mark.parametrize(
    ("alerts", "health", "text"),
    [
        ([WARN, PAGE, THRASH], FleetHealth.THRASH,
         "thrash: 0.62 swaps/s per pod, adapters stay 41 s, 15 % of busy time is inference, P95 8.2 s"),
        ([WARN, PAGE], FleetHealth.HARMED, "users are harmed: latency, swap rate (0.62/s per pod)"),
        ([WARN], FleetHealth.WATCH,
         "nobody is harmed yet, but look at: swap rate (0.62/s per pod), residency (41 s in the mean)"),
    ],
)  # fmt: skip
def test_alerts_come_first(alerts: list[AlertRow], health: FleetHealth, text: str) -> None:
    found = verdict(FLEET, BAD, alerts=alerts)
    assert (found.health, found.text) == (health, text)


def test_what_is_beyond_its_bound_is_said_before_its_alert_stands() -> None:
    more = msgspec.structs.replace(BUSY, active_adapters=39, slots=32, active_per_slot=39 / 32)
    found = verdict(FLEET, more, alerts=[])
    assert found.health is FleetHealth.WATCH
    assert found.text == "nobody is harmed yet, but look at: active adapters (39 on 32 slots)"
    loose = msgspec.structs.replace(FLEET, bounds=AlertSettings(active_per_slot=1.5))
    assert verdict(loose, more, alerts=[]).health is FleetHealth.HEALTHY
    settled = msgspec.structs.replace(FLEET, started_at=FLEET.wall - 3600)
    wasted = msgspec.structs.replace(BUSY, hit_ratio=0.7, useful_share=0.4, mean_residency=200.0)
    assert verdict(settled, wasted, alerts=[]).text == (
        "nobody is harmed yet, but look at: residency (3 min in the mean), "
        "hit ratio (70 % found their adapter on the GPU), useful time (40 % of busy time is inference)"
    )
    assert verdict(FLEET, wasted, alerts=[]).health is FleetHealth.HEALTHY, "slots fill in the first minutes"


def test_what_users_notice_is_never_called_harmless() -> None:
    assert verdict(PROMISED, HARMFUL, alerts=[]).text == (
        "users notice: error rate (11 % of the requests fail or are refused), latency (P95 25 s, promised 2.0 s); "
        "look at: active adapters (39 on 32 slots)"
    )
    assert "11 % of the requests" in verdict(PROMISED, HARMFUL, alerts=[PAGE]).text
    assert "11 % of the requests" in verdict(PROMISED, HARMFUL, alerts=[THRASH]).text
    assert verdict(PROMISED, HARMFUL, alerts=[WARN]).text.startswith("users notice: error rate")
    few = msgspec.structs.replace(HARMFUL, requests_per_second=0.1, latency_p95=1.0, active_per_slot=0.5)
    assert verdict(PROMISED, few, alerts=[]).health is FleetHealth.HEALTHY, "one of six says nothing"


def test_healthy_says_by_what() -> None:
    found = verdict(FLEET, BUSY, alerts=[])
    assert found.health is FleetHealth.HEALTHY
    assert found.text == "healthy: 50.0 requests/s, 97 % found their adapter on the GPU, 0.02 swaps/s per pod"


def test_nothing_is_said_before_there_are_figures() -> None:
    young = msgspec.structs.replace(FLEET, started_at=FLEET.wall - 12)
    assert verdict(young, BUSY, alerts=[]).text == "warming up: figures are of 60 s, 12 s are over"
    assert verdict(young, BAD, alerts=[WARN]).health is FleetHealth.WATCH


def test_idle_is_not_healthy() -> None:
    quiet = FleetSignals(requests_per_second=0.0, swaps_per_second=0.0)
    assert verdict(FLEET, quiet, alerts=[]).health is FleetHealth.IDLE


def test_no_pod_is_worse_than_any_alert() -> None:
    none = msgspec.structs.replace(FLEET, pods=())
    assert verdict(none, BUSY, alerts=[THRASH]).text == "no pod: discovery has found none"
    out = msgspec.structs.replace(FLEET, pods=FLEET.pods[2:])
    assert verdict(out, BUSY, alerts=[]).text == "no pod is ready: 0 of 1 (stale)"


def test_what_is_unknown_is_left_out() -> None:
    unknown = FleetSignals(requests_per_second=1.0, swaps_per_second=0.6)
    assert verdict(FLEET, unknown, alerts=[THRASH]).text == "thrash: 0.60 swaps/s per pod"
    assert verdict(FLEET, unknown, alerts=[]).text.endswith("look at: swap rate (0.60/s per pod)")
    calm = FleetSignals(requests_per_second=1.0, swaps_per_second=0.1)
    assert verdict(FLEET, calm, alerts=[]).text == "healthy: 1.0 requests/s, 0.10 swaps/s per pod"
