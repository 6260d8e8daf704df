"""What discovery, scrapes and KV events say of pods.

In: pod events and the fleet's state. Out: effects of requests that were held for these pods, and notes.
Not here: residency rules (see `core.residency.table`), request life (see `core.requests`).
"""

import msgspec

from lorapick.core import moving, splitting
from lorapick.core.admission.pressure import tier_of
from lorapick.core.peers import listening
from lorapick.core.placement import opening
from lorapick.core.placement.compat import drift
from lorapick.core.placement.controller import stir
from lorapick.core.podload import PodLoad
from lorapick.core.prefilled import lose_legs
from lorapick.core.releasing import load_note, load_over, release, release_waiting
from lorapick.core.relief import relieve
from lorapick.core.requests import gate
from lorapick.core.restoring import rescue, restore
from lorapick.core.state import FleetState
from lorapick.model.effects import PRESSURE_CHANGED, Effect, Note
from lorapick.model.events import (
    GpuReported,
    KvCleared,
    KvRemoved,
    KvStored,
    PodAppeared,
    PodChanged,
    PodDraining,
    PodGone,
    PodReported,
    PodSilent,
)
from lorapick.model.pods import Pod, PodLimits, PodReport, SilentWhy
from lorapick.model.tiers import Evidence
from lorapick.model.units import Seconds

MISSED_SCRAPES = 3
"""Scrapes in a row that may fail before a pod counts as stale, when scrapes are rarer than `stale_after` assumes."""


def on_appeared(state: FleetState, event: PodAppeared, *, now: Seconds) -> list[Effect]:
    """A new pod is empty and may serve at once; it has `stale_after` to report. A known one drains no longer."""
    if event.pod.name in state.columns.row_of:
        row = state.columns.row_of[event.pod.name]
        state.loads[row].draining = False
        state.placement.leaving.pop(row, None)
        gate(state, row)
        return _change(state, event.pod, now=now, cause=event.id)
    row = state.columns.add(event.pod)
    state.loads[row] = PodLoad(event.pod.limits)
    state.columns.gate[row] = 0
    state.columns.good_until(row, now + state.settings.scrape.stale_after)
    state.residency.appear(row, event.pod, now=now)
    if state.residency.home(row).caches.relieves:
        state.unloads.appear(row)
    state.recount()
    state.refresh(row)
    opening.warm(state, row, now=now)
    gate(state, row)
    stir(state, now=now)
    again = moving.pod_listed_again(state, row, now=now, cause=event.id)
    return [*again, *release(state, row, now=now, cause=event.id)]


def on_changed(state: FleetState, event: PodChanged, *, now: Seconds) -> list[Effect]:
    """Another address is another process; anything else changes in place."""
    if event.pod.name not in state.columns.row_of:
        return on_appeared(state, PodAppeared(t=event.t, id=event.id, pod=event.pod), now=now)
    return _change(state, event.pod, now=now, cause=event.id)


def _change(state: FleetState, pod: Pod, *, now: Seconds, cause: int) -> list[Effect]:
    row = state.columns.row_of[pod.name]
    load = state.loads[row]
    effects: list[Effect] = []
    if state.columns.targets[row].address != pod.address:
        effects += _restart(state, row, now=now, cause=cause)
        load.circuit_open = False
        gate(state, row)
        state.columns.good_until(row, now + state.settings.scrape.stale_after)
    state.columns.describe(row, pod)
    limits = load.limits = _as_told(state, row, limits=pod.limits)
    state.residency.resize(row, gpu_slots=limits.max_loras, cpu_slots=limits.max_cpu_loras)
    state.residency.home(row).excuse()
    stir(state, now=now)
    state.recount()
    state.refresh(row)
    return [*effects, *release(state, row, now=now, cause=cause)]


def on_draining(state: FleetState, event: PodDraining, *, now: Seconds) -> list[Effect]:
    """No new requests go there."""
    row = state.columns.row_of.get(event.pod)
    if row is None:
        return []
    if not state.loads[row].draining:
        opening.leave(state, row, now=now)
    state.loads[row].draining = True
    gate(state, row)
    stir(state, now=now)
    return [*release(state, row, now=now, cause=event.id), *rescue(state, now=now, cause=event.id)]


def on_gone(state: FleetState, event: PodGone, *, now: Seconds) -> list[Effect]:
    """Forget the pod; its requests end when their streams do, those held for it are decided anew."""
    if event.pod not in state.columns.row_of:
        return []
    row = state.columns.remove(event.pod)
    for flight in state.flights.values():
        if flight.row == row:
            flight.row = -1
    state.residency.gone(row, now=now)
    state.signals.gone(event.pod)
    state.prefixes.forget(row)
    state.quarantine.gone(row)
    state.turns.gone(row)
    state.unloads.gone(row)
    state.placement.forget_pod(row)
    stir(state, now=now)
    if state.placement.warming:
        state.placement.hurry(now)  # whoever warms up may be needed now
    del state.loads[row]
    state.cold.pop(row, None)
    state.gates.recount()
    state.recount()
    return [
        *lose_legs(state, row, now=now, cause=event.id),
        *moving.pod_lost(state, row, pod=event.pod, why=moving.GONE, now=now, cause=event.id),
        *release(state, row, now=now, cause=event.id),
        *rescue(state, now=now, cause=event.id),
    ]


def on_reported(state: FleetState, event: PodReported, *, now: Seconds) -> list[Effect]:
    """One scrape: numbers, residency, pressure; the pod is fresh and its circuit closed."""
    row = state.columns.row_of.get(event.pod)
    if row is None:
        return []
    since = event.since if event.since is not None else now
    load, report = state.loads[row], event.report
    effects: list[Effect] = []
    shut = load.circuit_open
    if another := _restarted(state, row, report=report):
        effects += _restart(state, row, now=now, cause=event.id)
        effects.append(Note(cause=event.id, kind="pod_restarted", facts={"pod": event.pod}))
    # A scraper that stretched its interval to keep to its budget must not make every pod look stale.
    patience = max(state.settings.scrape.stale_after, MISSED_SCRAPES * (event.every or 0.0))
    state.columns.good_until(row, now + patience)
    load.circuit_open = False
    effects += _pressure(state, row, report=report, cause=event.id)
    if load.last_report is None:
        state.placement.hurry(now)  # from now on it may be told something
    load.reported(report, since=since, now=now)
    state.signals.handovers.scraped(event.pod, report, since=since)
    if state.peers.marks.peers:
        listening.scraped(state, row, since=since)
    state.columns.scraped[row] = state.columns.scraped[row].after(report)
    if load.dcgm is not None and now - load.dcgm_at > state.settings.scrape.stale_after:
        load.dcgm = None
    effects += _drift(state, row, report=report, cause=event.id)
    _resize(state, row, report=report)
    if report.gpu_blocks:
        state.prefixes.bound(row, report.gpu_blocks)
    ended = state.residency.reported(row, report, since=since, now=now)
    state.residency.home(row).excuse()
    _listed(state, row, report=report, since=since)
    for name in state.residency.forget():
        state.adapters.pop(name, None)
        state.quarantine.forget(name)
    gate(state, row)
    state.refresh(row)
    effects += [load_note(state, over, cause=event.id) for over in ended]
    if ended:
        state.placement.load_ended(now=now)
    if shut and not another:
        effects += moving.pod_back(state, row, now=now, cause=event.id)
    effects += release_waiting(state, row, now=now, cause=event.id)
    # Last: who was let in just now is not idle.
    effects += splitting.keep(state, row, now=now, cause=event.id)
    told = restore(state, row, since=since, now=now, cause=event.id)
    return [*effects, *(told or relieve(state, row, since=since, now=now, cause=event.id))]


def _listed(state: FleetState, row: int, *, report: PodReport, since: Seconds) -> None:
    """What the engine itself lists needs not be given back; `registered` may hold names that are only taken to be."""
    if report.loaded is not None:
        state.unloads.listed(row, (entry.name for entry in report.loaded), since=since)
    elif report.registered is not None:
        state.unloads.listed(row, report.registered, since=since)


def _drift(state: FleetState, row: int, *, report: PodReport, cause: int) -> list[Effect]:
    """Say once where a pod's own flags are others than the configuration's; its own count."""
    pod = state.columns.pods[row]
    assert pod is not None
    told = state.placement.drift.setdefault(row, {})
    new = [line for line in drift(pod, report) if line not in told]
    told.update(dict.fromkeys(new))
    return [Note(cause=cause, kind="drift", facts={"pod": pod.name, "why": line}) for line in new]


def _resize(state: FleetState, row: int, *, report: PodReport) -> None:
    """The engine's own sizes beat those of the configuration."""
    home, limits = state.residency.home(row), state.loads[row].limits
    gpu, cpu = home.told
    gpu = gpu if report.max_loras is None or report.max_loras < 0 else report.max_loras
    home.told = (gpu, cpu if report.max_cpu_loras is None else report.max_cpu_loras)
    told = _as_told(state, row, limits=limits)
    if told != limits:
        state.loads[row].limits = told
        state.residency.resize(row, gpu_slots=told.max_loras, cpu_slots=told.max_cpu_loras)
        state.placement.looks += 1
        state.recount()


def _as_told(state: FleetState, row: int, *, limits: PodLimits) -> PodLimits:
    """Discovery's sizes, and the engine's own in their place where it has said them."""
    gpu, cpu = state.residency.home(row).told
    gpu, cpu = limits.max_loras if gpu is None else gpu, limits.max_cpu_loras if cpu is None else cpu
    return msgspec.structs.replace(limits, max_loras=gpu, max_cpu_loras=cpu)


def _restarted(state: FleetState, row: int, *, report: PodReport) -> bool:
    """Whether the process is another one: it began at another time, or a counter of its page fell.

    A page that several processes write together (Prometheus's multiprocess mode) has no start time.
    """
    home = state.residency.home(row)
    before, preemptions = home.process_start, state.loads[row].preemptions
    if report.process_start is not None:
        home.process_start = report.process_start
        # The page rounds the start time; two scrapes of one process may differ in the last digits.
        if before is not None and abs(report.process_start - before) > 0.5:
            return True
    return preemptions is not None and report.preemptions is not None and report.preemptions < preemptions


def _restart(state: FleetState, row: int, *, now: Seconds, cause: int) -> list[Effect]:
    state.loads[row].restarted()
    state.prefixes.clear(row)
    state.quarantine.gone(row)
    state.unloads.restarted(row)
    state.placement.restarted(row)
    state.residency.restart(row, now=now)
    opening.warm(state, row, now=now)
    stir(state, now=now)
    lost = lose_legs(state, row, now=now, cause=cause)
    pod = state.columns.targets[row].pod
    return [*lost, *moving.pod_lost(state, row, pod=pod, why=moving.RESTARTED, now=now, cause=cause)]


def _pressure(state: FleetState, row: int, *, report: PodReport, cause: int) -> list[Effect]:
    """Take note of the pod's tier; say so when it is another one."""
    load = state.loads[row]
    before, pressure = load.pressure_tier, load.pressure(report)
    load.pressure_tier = tier_of(pressure, before, bounds=state.settings.pressure)
    if load.pressure_tier is before:
        return []
    facts: dict[str, str | float] = {
        "pod": state.columns.targets[row].pod,
        "tier": load.pressure_tier.word,
        "before": before.word,
        "pressure": pressure,
    }
    return [Note(cause=cause, kind=PRESSURE_CHANGED, facts=facts)]


def on_silent(state: FleetState, event: PodSilent, *, now: Seconds) -> list[Effect]:
    """A failed scrape. A refused connection closes the pod at once; anything else only lets its report grow old."""
    row = state.columns.row_of.get(event.pod)
    if row is None:
        return []
    load = state.loads[row]
    load.detail = f"{event.why.value}: {event.detail}" if event.detail else event.why.value
    if event.why is SilentWhy.REFUSED:
        newly, load.circuit_open = not load.circuit_open, True
        gate(state, row)
        lost: list[Effect] = []
        if newly:
            lost = moving.pod_lost(state, row, pod=event.pod, why=moving.REFUSED, now=now, cause=event.id)
        return [*lost, *release(state, row, now=now, cause=event.id), *rescue(state, now=now, cause=event.id)]
    return []


def on_gpu(state: FleetState, event: GpuReported, *, now: Seconds) -> list[Effect]:
    """A DCGM exporter's figure; the pod's own beats it."""
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        state.loads[row].gpu_reported(event.utilization, now)
        state.refresh(row)
    return []


def on_kv_stored(state: FleetState, event: KvStored, *, now: Seconds) -> list[Effect]:
    """The pod says what it cached, so it has just run this adapter."""
    row = state.columns.row_of.get(event.pod)
    if row is None:
        return []
    state.prefixes.record(row, event.blocks)
    if event.adapter is None:
        return []
    load = state.residency.ran(row, event.adapter, now=now, kind=Evidence.KV_EVENT)
    if load is not None:
        return load_over(state, load, now=now, cause=event.id)
    state.refresh(row)
    return []


def on_kv_removed(state: FleetState, event: KvRemoved, *, now: Seconds) -> list[Effect]:
    """The pod says what it dropped."""
    del now
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        state.prefixes.remove(row, event.blocks)
    return []


def on_kv_cleared(state: FleetState, event: KvCleared, *, now: Seconds) -> list[Effect]:
    """The pod dropped its whole prefix cache."""
    del now
    row = state.columns.row_of.get(event.pod)
    if row is not None:
        state.prefixes.clear(row)
    return []
