"""Alarms of thrash and of its harm: rates, residencies, hits, useful time, latency, errors [R5.1].

In: the fleet's figures of the last minutes (`core.signals`), bounds of `settings.alerts`, promises of `settings.slo`.
Out: findings for `core.admission.alerts`. Not here: for how long a condition must hold, alarms of admission (see
`core.alarms`). The rules for Prometheus say the same of the same figures (see `dash.rules`).

A page needs harm as well: the article's own bounds disagree with each other (0.1 swaps/s at 4 slots is 40 s of
residency), and a fleet may swap a lot without anybody noticing.
"""

from collections.abc import Iterable

from lorapick.core.admission.alerts import Facts, Finding
from lorapick.core.residency.cells import PodResidency
from lorapick.core.signals.views import pod_residency, sample, swaps_per_second
from lorapick.core.state import FleetState
from lorapick.model.alerts import Alert
from lorapick.model.signals import RATE_WINDOW, FleetSignals
from lorapick.model.units import Seconds

MOST_NAMES = 20
"""Names that an alert gives."""
LEAST_ENDED = 20
"""Requests of a minute below which shares of them say nothing."""
CLEAR_SHARE = 0.9
"""An alert lasts until its figure is better than its bound by a tenth, so that it does not come and go."""


def find(state: FleetState, now: Seconds) -> list[Finding]:
    """Look at everything, at figures that are at most five seconds old."""
    fleet = sample(state, now=now)
    alerts = state.settings.alerts
    after = alerts.sustained
    homes = [*state.residency.homes()]
    swapping = _swapping(state, homes, least=alerts.swap_rate, now=now)
    short = _short(state, homes, most=alerts.residency, now=now)
    requests = state.signals.ended_.total(now)
    slots = fleet.active_per_slot
    return [
        _above(Alert.ACTIVE_ADAPTERS, slots, bound=alerts.active_per_slot, after=after, facts=_active(fleet)),
        _of_pods(Alert.SWAP_RATE, swapping, bound=alerts.swap_rate, after=after, unit="swaps_per_second"),
        _of_pods(Alert.RESIDENCY, short, bound=alerts.residency, after=after, unit="seconds"),
        _below(
            Alert.HIT_RATIO, fleet.hit_ratio if requests >= LEAST_ENDED else None, bound=alerts.hit_ratio, after=after
        ),
        _swap_queue(fleet, after=after),
        _below(Alert.USEFUL_TIME, fleet.useful_share, bound=alerts.useful_share, after=after),
        _latency(state, fleet, after=after),
        _errors(state, fleet, requests=requests, after=after, now=now),
        _critical(state, fleet, after=after),
        _thrash(state, fleet, homes=homes, now=now),
    ]


def harm(state: FleetState, fleet: FleetSignals, *, now: Seconds) -> str | None:
    """How users are harmed, or GPUs wasted, in a word; None: they are not."""
    alerts = state.settings.alerts
    for word, promised, is_ in _promises(state, fleet):
        if is_ is not None and is_ > promised:
            return word
    if fleet.useful_share is not None and fleet.useful_share < alerts.useful_share:
        return "useful_share"
    if fleet.critical_queues and fleet.critical_queues >= alerts.critical_queues_share * len(state.loads):
        return "critical_queues"
    return None if not fleet.waiting or state.queues.oldest() is None else _old(state, now)


def _old(state: FleetState, now: Seconds) -> str | None:
    oldest = state.queues.oldest()
    limit = state.settings.alerts.queue_share * state.settings.admission.max_wait
    return "queues" if oldest is not None and now - oldest >= limit else None


def _promises(state: FleetState, fleet: FleetSignals) -> list[tuple[str, Seconds, Seconds | None]]:
    slo = state.settings.slo
    kept = [("latency_p95", slo.latency_p95, fleet.latency_p95), ("ttft_p95", slo.ttft_p95, fleet.ttft_p95)]
    return [(word, promised, is_) for word, promised, is_ in kept if promised is not None]


def _above(alert: Alert, value: float | None, *, bound: float, after: Seconds, facts: Facts) -> Finding:
    begins = value is not None and value > bound
    lasts = value is not None and value > CLEAR_SHARE * bound
    return Finding(alert, begins, lasts, after=after, facts=facts)


def _below(alert: Alert, value: float | None, *, bound: float, after: Seconds) -> Finding:
    facts: Facts = {} if value is None else {"is": round(value, 4), "least": bound}
    begins = value is not None and value < bound
    lasts = value is not None and value < min(bound / CLEAR_SHARE, 1.0)
    return Finding(alert, begins, lasts, after=after, facts=facts)


def _active(fleet: FleetSignals) -> Facts:
    facts: Facts = {"active": fleet.active_adapters, "slots": fleet.slots, "in_the_last_hour": fleet.distinct_adapters}
    if fleet.active_per_slot is not None:
        facts["ratio"] = round(fleet.active_per_slot, 3)
    return facts


def _swapping(
    state: FleetState, homes: Iterable[PodResidency], *, least: float, now: Seconds
) -> list[tuple[str, float, bool]]:
    """Pods near or above a swap rate, each with its rate and whether it is above; most first."""
    rates = [(home.name, swaps_per_second(state, home, now=now)) for home in homes]
    found = [(pod, rate, rate >= least) for pod, rate in rates if rate >= CLEAR_SHARE * least]
    return sorted(found, key=lambda each: -each[1])


def _short(
    state: FleetState, homes: Iterable[PodResidency], *, most: Seconds, now: Seconds
) -> list[tuple[str, float, bool]]:
    """Pods near or below a mean residency, each with it and whether it is below; shortest first."""
    found = []
    for home in homes:
        mean = pod_residency(state, home, now=now)
        # One adapter that left early says nothing of a pod: conservation needs as many evictions as it has slots.
        if mean is not None and mean < most / CLEAR_SHARE and state.signals.pod(home.name).turned_over(home, now):
            found.append((home.name, mean, mean < most))
    return sorted(found, key=lambda each: each[1])


def _of_pods(alert: Alert, found: list[tuple[str, float, bool]], *, bound: float, after: Seconds, unit: str) -> Finding:
    facts: Facts = {}
    if found:
        pods = ", ".join(pod for pod, _, _ in found[:MOST_NAMES])
        facts = {"pods": pods, "count": len(found), f"worst_{unit}": round(found[0][1], 3), "bound": bound}
    return Finding(alert, any(beyond for _, _, beyond in found), bool(found), after=after, facts=facts)


def _swap_queue(fleet: FleetSignals, *, after: Seconds) -> Finding:
    waits = fleet.swap_queue > 0
    return Finding(Alert.SWAP_QUEUE, waits, waits, after=after, facts={"waiting": fleet.swap_queue})


def _latency(state: FleetState, fleet: FleetSignals, *, after: Seconds) -> Finding:
    facts: Facts = {}
    begins = lasts = False
    for word, promised, is_ in _promises(state, fleet):
        if is_ is not None and is_ > CLEAR_SHARE * promised:
            begins, lasts = begins or is_ > promised, True
            facts |= {f"{word}_seconds": round(is_, 4), f"{word}_promised": promised}
    return Finding(Alert.LATENCY, begins, lasts, after=after, facts=facts)


def _errors(state: FleetState, fleet: FleetSignals, *, requests: int, after: Seconds, now: Seconds) -> Finding:
    share = fleet.error_ratio if requests >= LEAST_ENDED else None
    facts: Facts = {} if share is None else {"share": round(share, 4), "requests": requests}
    if share is not None and share > CLEAR_SHARE * state.settings.alerts.error_ratio:
        refused = state.journal.refused(now - RATE_WINDOW)
        if refused:
            facts["refused"] = ", ".join(f"{count} {reason}" for reason, count in refused.items())
    return _above(Alert.ERROR_RATE, share, bound=state.settings.alerts.error_ratio, after=after / 2, facts=facts)


def _critical(state: FleetState, fleet: FleetSignals, *, after: Seconds) -> Finding:
    pods = len(state.loads)
    found = fleet.critical_queues > 0 and fleet.critical_queues >= state.settings.alerts.critical_queues_share * pods
    facts: Facts = {"pods": fleet.critical_queues, "of": pods}
    return Finding(Alert.CRITICAL_QUEUES, found, found, after=after / 2, facts=facts)


def _thrash(state: FleetState, fleet: FleetSignals, *, homes: list[PodResidency], now: Seconds) -> Finding:
    alerts = state.settings.alerts
    swapping = _swapping(state, homes, least=alerts.swap_rate_broken, now=now)
    short = _short(state, homes, most=alerts.residency_page, now=now)
    found = [*swapping, *short]
    harmed = harm(state, fleet, now=now) if found else None
    facts: Facts = {}
    if found and harmed is not None:
        facts = {"harm": harmed, "pods": ", ".join(dict.fromkeys(pod for pod, _, _ in found[:MOST_NAMES]))}
        facts |= {"worst_swaps_per_second": round(swapping[0][1], 3)} if swapping else {}
        facts |= {"shortest_residency_seconds": round(short[0][1], 1)} if short else {}
    begins = harmed is not None and any(beyond for _, _, beyond in found)
    return Finding(Alert.THRASH, begins, bool(found) and harmed is not None, after=alerts.sustained / 2, facts=facts)
