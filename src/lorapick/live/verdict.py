"""How the fleet is, in one line that a tired person understands.

In: the fleet, its signals, the alerts that stand. Out: a `Verdict`. Not here: thresholds (the alerts have applied
them), or what to do (see the runbooks).

Worst first: no pod, thrash, other harm to users, warnings; then what says that there is nothing to judge yet.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from lorapick.live.publish import AlertRow, FleetSnapshot
from lorapick.model.alerts import Alert, Severity
from lorapick.model.signals import RATE_WINDOW, FleetSignals
from lorapick.model.units import Ratio, Seconds


class FleetHealth(StrEnum):
    """What the line begins with."""

    NO_PODS = "no_pods"
    THRASH = "thrash"
    HARMED = "harmed"
    """Users are harmed by something else than thrash, as far as the alerts say."""
    WATCH = "watch"
    """Warnings stand."""
    WARMING_UP = "warming_up"
    IDLE = "idle"
    HEALTHY = "healthy"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One line about the whole fleet."""

    health: FleetHealth
    text: str


def verdict(fleet: FleetSnapshot, signals: FleetSignals, *, alerts: Sequence[AlertRow]) -> Verdict:
    """The worst that is known."""
    pages = [alert.name for alert in alerts if alert.severity == Severity.PAGE]
    warnings = [alert.name for alert in alerts if alert.severity != Severity.PAGE]
    uptime = fleet.wall - fleet.started_at
    if not any(pod.ready for pod in fleet.pods):
        return Verdict(health=FleetHealth.NO_PODS, text=_no_pods(fleet))
    if Alert.THRASH in pages:
        return Verdict(health=FleetHealth.THRASH, text=f"thrash: {_thrash(signals)}")
    if pages:
        return Verdict(health=FleetHealth.HARMED, text=f"users are harmed: {_words([*pages, *warnings])}")
    if warnings:
        return Verdict(health=FleetHealth.WATCH, text=f"nobody is harmed yet, but look at: {_words(warnings)}")
    if uptime < RATE_WINDOW:
        over = f"figures are of {RATE_WINDOW:.0f} s, {uptime:.0f} s are over"
        return Verdict(health=FleetHealth.WARMING_UP, text=f"warming up: {over}")
    if signals.requests_per_second <= 0:
        return Verdict(health=FleetHealth.IDLE, text="idle: no request in the last minute")
    return Verdict(health=FleetHealth.HEALTHY, text=f"healthy: {_healthy(signals)}")


def _no_pods(fleet: FleetSnapshot) -> str:
    if not fleet.pods:
        return "no pod: discovery has found none"
    reasons = sorted({str(pod.reason) for pod in fleet.pods if pod.reason is not None})
    why = f" ({_words(reasons)})" if reasons else ""
    return f"no pod is ready: 0 of {len(fleet.pods)}{why}"


def _thrash(signals: FleetSignals) -> str:
    parts = [f"{signals.swaps_per_second:.2f} swaps/s per pod"]
    if signals.mean_residency is not None:
        parts.append(f"adapters stay {_span(signals.mean_residency)}")
    if signals.useful_share is not None:
        parts.append(f"{_percent(signals.useful_share)} of busy time is inference")
    if signals.latency_p95 is not None:
        parts.append(f"P95 {_span(signals.latency_p95)}")
    return ", ".join(parts)


def _healthy(signals: FleetSignals) -> str:
    parts = [f"{signals.requests_per_second:.1f} requests/s"]
    if signals.hit_ratio is not None:
        parts.append(f"{_percent(signals.hit_ratio)} found their adapter on the GPU")
    parts.append(f"{signals.swaps_per_second:.2f} swaps/s per pod")
    return ", ".join(parts)


def _words(names: Sequence[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)


def _percent(ratio: Ratio) -> str:
    return f"{100 * ratio:.0f} %"


def _span(seconds: Seconds) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
