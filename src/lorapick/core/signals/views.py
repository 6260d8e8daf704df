"""What is counted, as the values of `model.signals`.

In: the fleet's state. Out: figures of the fleet, of its pods, of its adapters. Not here: counting.
"""

from lorapick.core.residency.cells import PodResidency
from lorapick.core.signals import both_sides
from lorapick.core.signals.tracker import NEW_FOR, PodTrack
from lorapick.core.state import FleetState
from lorapick.model.signals import (
    POINT_EVERY,
    RATE_WINDOW,
    FleetSignals,
    PodSignals,
    SignalPoint,
    Signals,
)
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Ratio, Seconds

_LOADING = Tier.LOADING
ACTIVE_WINDOW: Seconds = 600.0


def look(state: FleetState, *, now: Seconds) -> Signals:
    """Everything, at most a second old; of adapters, at most `POINT_EVERY`."""
    tracker = state.signals
    kept = tracker.kept
    if kept is None or now - kept.now >= 1.0:
        kept = tracker.kept = Signals(
            now=now,
            fleet=fleet_signals(state, now=now),
            pods=tuple(_pod(state, row, now=now) for row, _ in state.columns.live()),
            adapters=tracker.adapters(now),
        )
    return kept


def sample(state: FleetState, *, now: Seconds) -> FleetSignals:
    """The fleet's figures, made anew every `POINT_EVERY` seconds; each is a point of the history."""
    tracker = state.signals
    if tracker.latest is None or now >= tracker.next_point:
        tracker.next_point = now + POINT_EVERY
        fleet = tracker.latest = fleet_signals(state, now=now)
        tracker.points.append(
            SignalPoint(
                t=now,
                swaps_per_second=fleet.swaps_per_second,
                requests_per_second=fleet.requests_per_second,
                hit_ratio=fleet.hit_ratio,
                latency_p95=fleet.latency_p95,
                useful_share=fleet.useful_share,
                active_per_slot=fleet.active_per_slot,
                mean_residency=fleet.mean_residency,
            )
        )
    return tracker.latest


def fleet_signals(state: FleetState, *, now: Seconds) -> FleetSignals:
    """All pods together."""
    tracker, courses = state.signals, state.signals.courses
    tracks = [track for name in state.columns.row_of if (track := tracker.pods.get(name)) is not None]
    pods, watched = len(state.columns.row_of), tracker.watched(now)
    span = _span(watched)
    homes = [*state.residency.homes()]
    used = sum(slots_used(home) for home in homes)
    there = [home for home in homes if both_sides.answers(state, home.row, now=now)]
    slots = sum(home.shadow.gpu_slots for home in there)
    asked = sum(track.asked.total(now) for track in tracks)
    evictions = sum(track.stays.evictions_per_second(now, watched=watched) for track in tracks)
    p50, p95 = tracker.quantiles((0.5, 0.95), now=now)
    arrivals, outcomes = tracker.arrivals.total(now), tracker.outcomes
    active = courses.active(now - ACTIVE_WINDOW)
    new, _, new_share = new_names(state, now=now)
    sides = both_sides.of_fleet(state, active=active, span=span, now=now)
    tight = max((each.active_per_slot or 0.0 for each in sides), default=active / slots if slots else None)
    return FleetSignals(
        requests_per_second=arrivals / span,
        swaps_per_second=sum(track.stays.swaps.total(now) for track in tracks) / span / max(1, pods),
        hit_ratio=_share(sum(track.hits.total(now) for track in tracks), asked),
        believed_hit_ratio=_share(sum(track.believed.total(now) for track in tracks), asked),
        mean_residency=used / evictions if evictions else None,
        residency_p50=p50,
        residency_p95=p95,
        latency_p50=outcomes.latency.quantile(0.5, now=now),
        latency_p95=outcomes.latency.quantile(0.95, now=now),
        ttft_p95=outcomes.ttft.quantile(0.95, now=now),
        error_ratio=_share(outcomes.errors.total(now), outcomes.ended.total(now)),
        useful_share=tracker.useful.fleet(now),
        active_adapters=active,
        distinct_adapters=courses.active(now - NEW_FOR),
        new_adapters=len(new),
        new_traffic_share=new_share,
        slots=slots,
        slots_used=sum(slots_used(home) for home in there),
        active_per_slot=tight if slots else None,
        sides=sides,
        splits=tracker.handovers.lately(now) if state.splits else {},
        swap_queue=sum(_swap_queue(state, home) for home in homes),
        critical_queues=sum(_critical(state, row, now=now) for row in state.columns.row_of.values()),
        waiting=state.waiting,
    )


def new_names(state: FleetState, *, now: Seconds) -> tuple[list[AdapterName], int, Ratio | None]:
    """Adapters whose first request came within the last hour, requests for them in the last minute, and their share.

    Only those that came after one had watched for an hour: before that every name would be new.
    """
    tracker = state.signals
    if tracker.began is None or tracker.watched(now) <= NEW_FOR:
        return [], 0, None
    names, requests = tracker.courses.new(max(now - NEW_FOR, tracker.began + NEW_FOR), now=now)
    return names, requests, _share(requests, tracker.arrivals.total(now))


def late(state: FleetState, promised: Seconds, *, now: Seconds) -> int:
    """Requests that have waited for longer than was promised and have no answer: in flight, or given up of late."""
    waiting = sum(now - flight.arrived > promised for flight in state.flights.values())
    return waiting + state.signals.outcomes.late(promised, now=now)


def slots_used(home: PodResidency) -> int:
    """Slots believed to hold an adapter or to wait for one."""
    return home.shadow.gpu_slots - home.shadow.free


def pod_residency(state: FleetState, home: PodResidency, *, now: Seconds) -> Seconds | None:
    """Mean residency on a pod that conservation allows; None: nothing left a slot there lately."""
    tracker, track = state.signals, state.signals.pods.get(home.name)
    evictions = track.stays.evictions_per_second(now, watched=tracker.watched(now)) if track is not None else 0.0
    return slots_used(home) / evictions if evictions else None


def swaps_per_second(state: FleetState, home: PodResidency, *, now: Seconds) -> float:
    """Of a pod, over the last minute."""
    track = state.signals.pods.get(home.name)
    return track.stays.swaps.total(now) / _span(state.signals.watched(now)) if track is not None else 0.0


def _pod(state: FleetState, row: int, *, now: Seconds) -> PodSignals:
    tracker, home = state.signals, state.residency.home(row)
    track = tracker.pods.get(home.name) or PodTrack(home.name)
    stays, span, watched = track.stays, _span(tracker.watched(now)), tracker.watched(now)
    asked = track.asked.total(now)
    return PodSignals(
        pod=home.name,
        swaps_per_second=stays.swaps.total(now) / span,
        loads_per_second=stays.loads.total(now) / span,
        evictions_per_second=stays.evictions_per_second(now, watched=watched),
        mean_residency=pod_residency(state, home, now=now),
        residency_p50=stays.stays.quantile(0.5, now=now),
        residency_p95=stays.stays.quantile(0.95, now=now),
        hit_ratio=_share(track.hits.total(now), asked),
        believed_hit_ratio=_share(track.believed.total(now), asked),
        hit_to_evict_p50=stays.unused.quantile(0.5, now=now),
        swap_queue=_swap_queue(state, home),
        loads_in_flight=home.loading,
        useful_share=tracker.useful.share(home.name, now),
        slots=home.shadow.gpu_slots,
        slots_used=slots_used(home),
        queue_critical=_critical(state, row, now=now),
    )


def _swap_queue(state: FleetState, home: PodResidency) -> int:
    """Requests that wait for a load on a pod, at the pod or at the picker."""
    there = 0
    if home.loading:
        there = sum(home.cells[name].in_flight for name in home.in_use if home.cells[name].tier is _LOADING)
    return there + len(state.holds.waiting_for(home.row))


def _critical(state: FleetState, row: int, *, now: Seconds) -> bool:
    """What a pod said long ago is no news of its queue."""
    columns = state.columns
    return columns.fresh_until[row] >= now and 0 < columns.max_queue[row] <= columns.queue[row]


def _span(watched: Seconds) -> Seconds:
    """Of a rate: its window, or as much of it as somebody has watched; a second at least."""
    return min(RATE_WINDOW, max(1.0, watched))


def _share(part: int, whole: int) -> Ratio | None:
    return part / whole if whole else None
