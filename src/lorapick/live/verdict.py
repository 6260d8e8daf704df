"""How the fleet is, in one line that a tired person understands.

In: the fleet, its signals and bounds, the alerts that stand. Out: a `Verdict`. Not here: what to do (see the runbooks).

Worst first: no pod, thrash, other harm to users, warnings; then what says that there is nothing to judge yet; then
figures beyond the bounds of alerts that do not stand yet, for want of time: whoever looks now must not read "healthy".
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from lorapick.core.signals.outcomes import ENOUGH
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
    """Warnings stand, or some figure is beyond the bound of an alert that does not stand yet."""
    WARMING_UP = "warming_up"
    IDLE = "idle"
    HEALTHY = "healthy"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One line about the whole fleet."""

    health: FleetHealth
    text: str


def verdict(fleet: FleetSnapshot, signals: FleetSignals, *, alerts: Sequence[AlertRow]) -> Verdict:
    """The worst that is known."""
    standing = [*alerts]
    standing.sort(key=lambda alert: alert.severity != Severity.PAGE)
    uptime = fleet.wall - fleet.started_at
    felt, beyond = dict(_felt(fleet, signals)), dict(_beyond(fleet, signals))
    if not any(pod.ready for pod in fleet.pods):
        return Verdict(health=FleetHealth.NO_PODS, text=_no_pods(fleet))
    if any(alert.name == Alert.THRASH and alert.severity == Severity.PAGE for alert in alerts):
        errors = [text for name, text in felt.items() if name == Alert.ERROR_RATE]
        return Verdict(health=FleetHealth.THRASH, text=f"thrash: {', '.join([_thrash(signals), *errors])}")
    if standing and standing[0].severity == Severity.PAGE:
        named = _named([*dict.fromkeys([*(alert.name for alert in standing), *felt])], felt | beyond)
        return Verdict(health=FleetHealth.HARMED, text=f"users are harmed: {named}")
    if not standing and uptime < RATE_WINDOW:
        over = f"figures are of {RATE_WINDOW:.0f} s, {uptime:.0f} s are over"
        return Verdict(health=FleetHealth.WARMING_UP, text=f"warming up: {over}")
    if not standing and signals.requests_per_second <= 0:
        return Verdict(health=FleetHealth.IDLE, text="idle: no request in the last minute")
    if standing or felt or beyond:
        return Verdict(health=FleetHealth.WATCH, text=_watch([alert.name for alert in standing], felt, beyond=beyond))
    return Verdict(health=FleetHealth.HEALTHY, text=f"healthy: {_healthy(signals)}")


def _watch(standing: Sequence[str], felt: Mapping[str, str], *, beyond: Mapping[str, str]) -> str:
    look = _named([*dict.fromkeys([*standing, *beyond])], beyond)
    if not felt:
        return f"nobody is harmed yet, but look at: {look}"
    return f"users notice: {_named([*felt], felt)}{f'; look at: {look}' if look else ''}"


def _named(names: Sequence[str], figures: Mapping[str, str]) -> str:
    """Alerts by name, each with its figure where it is beyond its bound."""
    return ", ".join(f"{_words([name])} ({figures[name]})" if name in figures else _words([name]) for name in names)


def _felt(fleet: FleetSnapshot, signals: FleetSignals) -> Iterator[tuple[str, str]]:
    """What users feel and is beyond what they were promised, by the alert that will say so."""
    promised, p95, ttft = fleet.slo, signals.latency_p95, signals.ttft_p95
    if _many(signals) and signals.error_ratio is not None and signals.error_ratio > fleet.bounds.error_ratio:
        yield Alert.ERROR_RATE, f"{_percent(signals.error_ratio)} of the requests fail or are refused"
    slow = [("P95", p95, promised.latency_p95), ("TTFT P95", ttft, promised.ttft_p95)]
    late = [f"{word} {_span(is_)}, promised {_span(most)}" for word, is_, most in slow if is_ and most and is_ > most]
    if late:
        yield Alert.LATENCY, ", ".join(late)


def _beyond(fleet: FleetSnapshot, signals: FleetSignals) -> Iterator[tuple[str, str]]:
    """What else is beyond its bound over the whole fleet, by the alert that will say so."""
    bounds, uptime = fleet.bounds, fleet.wall - fleet.started_at
    stays, hits, useful = signals.mean_residency, signals.hit_ratio, signals.useful_share
    if signals.active_per_slot is not None and signals.active_per_slot > bounds.active_per_slot:
        tight = signals.tightest
        active, slots = (
            (signals.active_adapters, signals.slots) if tight is None else (tight.active_adapters, tight.slots)
        )
        where = "" if tight is None else f" of pods that {tight.side}"
        yield Alert.ACTIVE_ADAPTERS, f"{active} on {slots} slots{where}"
    if signals.swaps_per_second >= bounds.swap_rate:
        yield Alert.SWAP_RATE, f"{signals.swaps_per_second:.2f}/s per pod"
    # Shorter than the fleet has been watched: each slot was turned over, as the alert wants it.
    if stays is not None and stays < min(bounds.residency, uptime):
        yield Alert.RESIDENCY, f"{_span(stays)} in the mean"
    if uptime < bounds.sustained:  # slots fill
        return
    if _many(signals) and hits is not None and hits < bounds.hit_ratio:
        yield Alert.HIT_RATIO, f"{_percent(hits)} found their adapter on the GPU"
    if useful is not None and useful < bounds.useful_share:
        yield Alert.USEFUL_TIME, f"{_percent(useful)} of busy time is inference"


def _many(signals: FleetSignals) -> bool:
    """Whether shares of a minute's requests say anything."""
    return signals.requests_per_second * RATE_WINDOW >= ENOUGH


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
