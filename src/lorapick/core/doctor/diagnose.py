"""The doctor: every check over one picture, worst first, and the figures that were looked at.

In: a `Picture`. Out: a `Diagnosis`. It never raises, whatever is unknown. Not here: where the picture comes from (see
`live.doctor`), how the answer is shown (see `cli.doctor`).
"""

from collections.abc import Callable, Iterator

from lorapick.core.doctor import balance, changed, harm, pairs, pinned, thrash, upkeep, waste
from lorapick.core.doctor.findings import ORDER, Diagnosis, Finding
from lorapick.core.doctor.picture import Picture
from lorapick.core.doctor.saying import number, plural, seconds, share
from lorapick.core.doctor.standing import with_alerts
from lorapick.model.signals import RESIDENCY_WINDOW, FleetSignals

Check = Callable[[Picture], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    harm.latency,
    harm.errors,
    harm.queues,
    harm.convoy,
    harm.pressure,
    harm.unready,
    pairs.unreached,
    pairs.down,
    pairs.idle,
    pairs.roles,
    pinned.crowding,
    thrash.room,
    thrash.useful,
    thrash.swap_queue,
    changed.shifts,
    balance.slow,
    balance.hot,
    upkeep.pins,
    upkeep.quarantine,
    upkeep.drift,
    upkeep.bypass,
    upkeep.faults,
    upkeep.certificate,
    upkeep.sources,
    waste.duplicates,
    waste.ranks,
)
"""In the order of findings of one urgency and weight."""


def diagnose(picture: Picture) -> Diagnosis:
    """Everything that is wrong, worst first."""
    findings = with_alerts(picture, (finding for check in CHECKS for finding in check(picture)))
    findings.sort(key=lambda finding: (ORDER.index(finding.urgency), -finding.weight))
    return Diagnosis(findings=tuple(findings), figures=tuple(_figures(picture)), unknown=tuple(_unknown(picture)))


def _figures(picture: Picture) -> Iterator[str]:
    """Each figure beside its bound, those within it too."""
    ready = [pod for pod in picture.pods if pod.ready]
    if picture.pods:
        yield f"{len(ready)} of {plural(len(picture.pods), 'pod')} take requests"
    if picture.signals is None:
        return
    fleet, bounds = picture.signals.fleet, picture.alert_bounds
    yield f"{number(fleet.requests_per_second)} requests/s"
    yield from _room(fleet, bound=bounds.active_per_slot)
    swaps = f"{number(fleet.swaps_per_second)} swaps/s per pod"
    yield f"{swaps}{thrash.swaps_by_side(fleet)} (bound {number(bounds.swap_rate)})"
    split = pairs.in_words(fleet.splits)
    if split is not None:
        yield split
    if fleet.mean_residency is not None:
        yield f"mean residency {seconds(fleet.mean_residency)} (bound {seconds(bounds.residency)})"
    if fleet.hit_ratio is not None:
        yield f"hits {share(fleet.hit_ratio)} (bound {share(bounds.hit_ratio)})"
    if fleet.useful_share is not None:
        yield f"useful time {share(fleet.useful_share)} (bound {share(bounds.useful_share)})"
    if fleet.latency_p95 is not None:
        promised = picture.slo.latency_p95
        yield f"P95 {seconds(fleet.latency_p95)} ({f'promised {seconds(promised)}' if promised else 'none promised'})"
    if fleet.error_ratio is not None:
        yield f"errors {share(fleet.error_ratio)} (bound {share(bounds.error_ratio)})"


def _room(fleet: FleetSignals, *, bound: float) -> Iterator[str]:
    """Active adapters per slot; of either side, where there are two."""
    for side in fleet.sides:
        if side.active_per_slot is not None:
            yield (
                f"{side.active_adapters} active adapters / {plural(side.slots, 'slot')} of pods that {side.side} = "
                f"{side.active_per_slot:.2f} (bound {number(bound)})"
            )
    if not fleet.sides and fleet.active_per_slot is not None:
        yield (
            f"{fleet.active_adapters} active adapters / {plural(fleet.slots, 'slot')} = {fleet.active_per_slot:.2f} "
            f"(bound {number(bound)})"
        )


def _unknown(picture: Picture) -> Iterator[str]:
    """What could not be judged."""
    if picture.signals is None:
        yield "traffic, swaps, residency, latency: the picker gave no signals"
        return
    fleet = picture.signals.fleet
    if picture.watched is not None and picture.watched < RESIDENCY_WINDOW:
        yield f"residencies of {seconds(RESIDENCY_WINDOW)}: the picker has watched for {seconds(picture.watched)} only"
    if fleet.mean_residency is None:
        yield "residency: nothing has left a slot"
    if fleet.latency_p95 is not None and picture.slo.latency_p95 is None:
        yield "latency against a promise: slo.latency_p95 is not configured"
    if fleet.useful_share is None:
        yield "useful time: pods were idle"
    elif harm.useful_share(picture) is None:
        yield "useful time: the picker is younger than two minutes, or GPUs idle"
    if picture.envoy_requests is None:
        yield "requests that Envoy sent on without the picker: server.envoy_admin is not configured"
