"""What the status page is told: everything once, then what has changed.

In: a `Published`. Out: `Frame`s. Not here: when a frame is due, who watches (see `live.feed`), or how it looks.

Costs are bounded: pods, adapters, decisions and names each have a limit, adapters are looked at every fifth frame,
and what a pod has in memory is written only where it differs from the frame before.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from lorapick.live.admin_views import AdapterLine, CellLine, Frame, PodLine, PointLine
from lorapick.live.publish import AlertRow, DecisionRow, InMemory, PodRow, Published
from lorapick.live.verdict import verdict
from lorapick.model.signals import AdapterSignals, PodSignals, SignalPoint
from lorapick.model.units import AdapterName, PodName, Seconds

MAX_PODS = 512
MAX_ADAPTERS = 2000
MAX_DECISIONS = 25
MAX_NAMES = 20_000
"""Adapters that a watcher may have to remember; beyond, all begin anew."""
ADAPTERS_EVERY = 5
"""Frames from one look at the adapters' figures to the next."""
FRESH: Seconds = 3.0
"""A scrape younger than this is shown as just made: its age would change every line every second."""
_QUIET = PodSignals(pod="", swaps_per_second=0.0, loads_per_second=0.0, evictions_per_second=0.0)

Value = TypeVar("Value")


class Frames:
    """Keeps what the last frame said."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._looked = 0
        self._forget()
        self.last: Frame | None = None
        """The newest frame, with only what changed; None before the first."""

    def _forget(self) -> None:
        self._names: dict[AdapterName, int] = {}
        self._pods: dict[PodName, PodLine] = {}
        self._memory: dict[PodName, Sequence[InMemory]] = {}
        self._cells: dict[PodName, tuple[CellLine, ...]] = {}
        self._adapters: dict[AdapterName, AdapterLine] = {}
        self._points: tuple[PointLine, ...] = ()
        self._decisions: tuple[DecisionRow, ...] = ()
        self._alerts: tuple[AlertRow, ...] | None = None

    def advance(self) -> Frame:
        """Look at the picker; the frame that leads from the last one to now. The first is whole."""
        first = self.last is None or len(self._names) > MAX_NAMES
        seq = 1 if self.last is None else self.last.seq + 1
        if first:
            self._forget()
            self._looked = 0
        named = len(self._names)
        changed = self._look(seq)
        self.last = msgspec.structs.replace(changed, names=tuple(self._names)[named:], whole=first)
        return self.last

    def whole(self) -> Frame:
        """All that watchers of the last frame know.

        Raises:
            ValueError: nothing has been looked at yet; call `advance` first.
        """
        if self.last is None:
            raise ValueError("no frame yet; call advance first")
        return msgspec.structs.replace(
            self.last,
            whole=True,
            names=tuple(self._names),
            pods=tuple(self._pods.values()),
            pods_gone=(),
            cells=dict(self._cells),
            adapters=tuple(self._adapters.values()),
            adapters_gone=(),
            points=self._points,
            decisions=self._decisions,
            alerts=self._alerts,
        )

    def _look(self, seq: int) -> Frame:
        published = self._published
        fleet, signals = published.fleet(), published.signals()
        alerts = tuple(published.alerts())
        shown = fleet.pods[:MAX_PODS]
        by_pod = {each.pod: each for each in signals.pods}
        lines = {pod.name: _pod_line(pod, by_pod.get(pod.name, _QUIET)) for pod in shown}
        pods, pods_gone = _difference(self._pods, lines)
        cells = self._changed_cells(lines)
        adapters, adapters_gone = self._changed_adapters(signals.adapters)
        self._pods = lines
        return Frame(
            seq=seq,
            now=fleet.now,
            wall=fleet.wall,
            started_at=fleet.started_at,
            policy=fleet.policy,
            pods_total=len(fleet.pods),
            pods_ready=sum(pod.ready for pod in fleet.pods),
            totals=fleet.totals,
            fleet=signals.fleet,
            verdict=verdict(fleet, signals.fleet, alerts),
            pods=pods,
            pods_gone=pods_gone,
            cells=cells,
            adapters_total=len(signals.adapters),
            adapters=adapters,
            adapters_gone=adapters_gone,
            points=self._new_points(published.history()),
            decisions=self._new_decisions(published.decisions(MAX_DECISIONS)),
            alerts=self._changed_alerts(alerts),
        )

    def _changed_cells(self, pods: dict[PodName, PodLine]) -> dict[PodName, tuple[CellLine, ...]]:
        memory = self._published.memory()
        here = {pod: memory.get(pod, ()) for pod in pods}
        before = self._memory
        changed = {
            pod: tuple(self._cell_line(each) for each in cells)
            for pod, cells in here.items()
            if before.get(pod, ()) != cells
        }
        self._memory = here
        self._cells = {pod: lines for pod, lines in (self._cells | changed).items() if pod in here}
        return changed

    def _cell_line(self, cell: InMemory) -> CellLine:
        name = self._names.setdefault(cell.adapter, len(self._names))
        return CellLine(name, int(cell.tier), round(cell.since, 1), cell.source, cell.in_flight, cell.pinned)

    def _changed_adapters(self, adapters: Sequence[AdapterSignals]) -> tuple[tuple[AdapterLine, ...], tuple[int, ...]]:
        self._looked += 1
        if self._looked % ADAPTERS_EVERY != 1:
            return (), ()
        # Busiest first; the sort is stable, so equals stay in the order of names.
        most = sorted(adapters, key=lambda each: (-each.requests_per_second, -each.evictions))[:MAX_ADAPTERS]
        lines = {each.adapter: self._adapter_line(each) for each in most}
        changed, gone = _difference(self._adapters, lines)
        self._adapters = lines
        return changed, tuple(self._names[name] for name in gone)

    def _adapter_line(self, each: AdapterSignals) -> AdapterLine:
        return AdapterLine(
            self._names.setdefault(each.adapter, len(self._names)),
            round(each.requests_per_second, 3),
            round(each.share, 4),
            _short(each.hit_ratio),
            each.loads,
            each.evictions,
            _short(each.mean_residency),
            _short(each.latency_p95),
            round(each.first_seen),
        )

    def _new_points(self, history: Sequence[SignalPoint]) -> tuple[PointLine, ...]:
        known = self._points[-1].t if self._points else float("-inf")
        new: list[PointLine] = []
        for point in reversed(history):
            if point.t <= known:
                break
            new.append(_point_line(point))
        new.reverse()
        self._points = (*self._points, *new)[-len(history) :] if history else ()
        return tuple(new)

    def _new_decisions(self, latest: Sequence[DecisionRow]) -> tuple[DecisionRow, ...]:
        known = {(row.request_id, row.t, row.outcome) for row in self._decisions}
        self._decisions = tuple(latest)
        return tuple(row for row in latest if (row.request_id, row.t, row.outcome) not in known)

    def _changed_alerts(self, alerts: tuple[AlertRow, ...]) -> tuple[AlertRow, ...] | None:
        if alerts == self._alerts:
            return None
        self._alerts = alerts
        return alerts


def _difference(before: dict[str, Value], after: dict[str, Value]) -> tuple[tuple[Value, ...], tuple[str, ...]]:
    """What is new or different, in the order of `after`, and the names that are gone."""
    changed = tuple(value for name, value in after.items() if before.get(name) != value)
    return changed, tuple(name for name in before if name not in after)


def _pod_line(pod: PodRow, signals: PodSignals) -> PodLine:
    age = pod.scrape_age_s
    return PodLine(
        name=pod.name,
        address=pod.address,
        ready=pod.ready,
        reason=pod.reason,
        error=pod.last_error,
        queue=_short(pod.queue_depth),
        max_queue=pod.max_queue,
        in_flight=pod.in_flight,
        gpu=_short(pod.gpu_utilization),
        gpu_source=pod.gpu_source,
        kv=_short(pod.kv_usage),
        slots=pod.slots,
        scraped_s=age if age is None else 0 if age < FRESH else int(age),
        restarts=pod.restarts,
        loading=pod.loading,
        pressure=pod.pressure,
        swaps=round(signals.swaps_per_second, 3),
        useful=_short(signals.useful_share),
        hits=_short(signals.hit_ratio),
        hits_believed=_short(signals.believed_hit_ratio),
        residency=_short(signals.mean_residency),
        swap_queue=signals.swap_queue,
        critical=signals.queue_critical,
    )


def _point_line(point: SignalPoint) -> PointLine:
    return PointLine(
        round(point.t, 1),
        round(point.swaps_per_second, 4),
        round(point.requests_per_second, 2),
        _short(point.hit_ratio),
        _short(point.latency_p95),
        _short(point.useful_share),
        _short(point.active_per_slot),
        _short(point.mean_residency),
    )


def _short(value: float | None) -> float | None:
    return value if value is None else round(value, 3)
