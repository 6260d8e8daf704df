"""Alarms of thrash and of its harm: rates, residencies, hits, useful time, latency, errors [R5.1].

In: the fleet's figures of the last minutes (`core.signals`), bounds of `settings.alerts`, promises of `settings.slo`.
Out: findings for `core.admission.alerts`. Not here: for how long a condition must hold, alarms of admission (see
`core.alarms`). The rules for Prometheus say the same of the same figures (see `dash.rules`).

A page needs harm as well: the article's own bounds disagree with each other (0.1 swaps/s at 4 slots is 40 s of
residency), and a fleet may swap a lot without anybody noticing.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lorapick.core.admission.alerts import Facts, Finding
from lorapick.core.residency.cells import PodResidency
from lorapick.core.signals.outcomes import ENOUGH, FEW
from lorapick.core.signals.views import late, pod_residency, sample, swaps_per_second
from lorapick.core.state import FleetState
from lorapick.model.alerts import Alert
from lorapick.model.signals import RATE_WINDOW, FleetSignals
from lorapick.model.units import Ratio, Seconds

MOST_NAMES = 20
"""Names that an alert gives."""
LEAST_BUSY = 0.05
"""Share of their time that pods are busy below which it says nothing how."""
HARM_BUSY = 0.3
"""Below which what they waste harms nobody: there is time for all."""
LATE_SHARE = 0.05
"""Of requests, those that are late when P95 is beyond what was promised."""
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
    hits = fleet.hit_ratio if state.signals.outcomes.ended.total(now) >= ENOUGH else None
    useful = fleet.useful_share if _busy(state, now) >= LEAST_BUSY else None
    slots = fleet.active_per_slot
    return [
        _above(Alert.ACTIVE_ADAPTERS, slots, bound=alerts.active_per_slot, after=after, facts=_active(fleet)),
        _of_pods(Alert.SWAP_RATE, swapping, bound=alerts.swap_rate, after=after, unit="swaps_per_second"),
        _of_pods(Alert.RESIDENCY, short, bound=alerts.residency, after=after, unit="seconds"),
        _below(Alert.HIT_RATIO, hits, bound=alerts.hit_ratio, after=after),
        _swap_queue(fleet, after=after),
        _below(Alert.USEFUL_TIME, useful, bound=alerts.useful_share, after=after),
        _latency(state, after=after, now=now),
        _errors(state, after=after, now=now),
        _critical(state, fleet, after=after),
        _thrash(state, fleet, homes=homes, now=now),
    ]


def harm(state: FleetState, fleet: FleetSignals, *, now: Seconds) -> str | None:
    """How users are harmed, or GPUs wasted, in a word; None: they are not."""
    alerts = state.settings.alerts
    for promise in _promises(state, now):
        if promise.broken:
            return promise.word
    useful = fleet.useful_share
    if useful is not None and useful < alerts.useful_share and _busy(state, now) >= HARM_BUSY:
        return "useful_share"
    if fleet.critical_queues and fleet.critical_queues >= alerts.critical_queues_share * len(state.loads):
        return "critical_queues"
    return None if not fleet.waiting or state.queues.oldest() is None else _old(state, now)


def _old(state: FleetState, now: Seconds) -> str | None:
    oldest = state.queues.oldest()
    limit = state.settings.alerts.queue_share * state.settings.admission.max_wait
    return "queues" if oldest is not None and now - oldest >= limit else None


def _busy(state: FleetState, now: Seconds) -> Ratio:
    return state.signals.useful.busy_share(now) or 0.0


class _Promise(NamedTuple):
    """What was promised of one figure, and what it is."""

    word: str
    promised: Seconds
    is_: Seconds | None
    """None: too few requests ended to say."""
    late: int = 0
    """Requests that are late already and have no answer."""
    late_share: Ratio = 0.0
    """Of those that ended lately or are late."""

    @property
    def broken(self) -> bool:
        return (self.is_ is not None and self.is_ > self.promised) or (
            self.late >= FEW and self.late_share > LATE_SHARE
        )

    @property
    def near(self) -> bool:
        """Broken, or not far from it."""
        return self.broken or self.late > 0 or (self.is_ is not None and self.is_ > CLEAR_SHARE * self.promised)


def _promises(state: FleetState, now: Seconds) -> list[_Promise]:
    slo, outcomes = state.settings.slo, state.signals.outcomes
    found = []
    if slo.latency_p95 is not None:
        overdue = late(state, slo.latency_p95, now=now)
        share = overdue / (overdue + outcomes.latency.count(now)) if overdue else 0.0
        is_ = outcomes.p95("latency", now=now)
        found.append(_Promise("latency_p95", slo.latency_p95, is_, overdue, share))
    if slo.ttft_p95 is not None:
        found.append(_Promise("ttft_p95", slo.ttft_p95, outcomes.p95("ttft", now=now)))
    return found


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
    tight, facts = fleet.tightest, Facts()
    if tight is None:
        facts |= {"active": fleet.active_adapters, "slots": fleet.slots}
    else:
        facts |= {"side": tight.side.value, "active": tight.active_adapters, "slots": tight.slots}
    facts["in_the_last_hour"] = fleet.distinct_adapters
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


def _latency(state: FleetState, *, after: Seconds, now: Seconds) -> Finding:
    promises = _promises(state, now)
    facts: Facts = {}
    for each in promises:
        if each.near:
            facts |= {f"{each.word}_promised": each.promised}
            facts |= {f"{each.word}_seconds": round(each.is_, 4)} if each.is_ is not None else {}
            facts |= {"late_without_answer": each.late} if each.late else {}
    begins, lasts = any(each.broken for each in promises), any(each.near for each in promises)
    return Finding(Alert.LATENCY, begins, lasts, after=after, facts=facts)


def _errors(state: FleetState, *, after: Seconds, now: Seconds) -> Finding:
    bound, outcomes = state.settings.alerts.error_ratio, state.signals.outcomes
    failures, ignored = outcomes.failures(now), outcomes.nobody_served(now)
    share = failures.share
    # A quiet fleet's share is of ten minutes: five failures, the last of them not long ago.
    enough = failures.ended >= ENOUGH or failures.failed >= FEW
    counts = share is not None and enough and failures.recent > 0 and failures.lasting
    facts: Facts = {} if share is None else {"share": round(share, 4), "requests": failures.ended}
    if counts and share is not None and share > CLEAR_SHARE * bound:
        refused = state.journal.refused(now - RATE_WINDOW)
        if refused:
            facts["refused"] = ", ".join(f"{count} {reason}" for reason, count in refused.items())
    facts |= {"unanswered": ignored} if ignored else {}
    begins = (counts and share is not None and share > bound) or ignored >= FEW
    lasts = begins or (counts and share is not None and share > CLEAR_SHARE * bound)
    return Finding(Alert.ERROR_RATE, begins, lasts, after=after / 2, facts=facts)


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
