"""What the status page is told: everything once, then what has changed.

In: a `Published`. Out: `Frame`s. Not here: when a frame is due, who watches (see `live.feed`), or how it looks.

Costs are bounded: pods, adapters, decisions and names each have a limit, signals and host memory are looked at every
fifth frame, and what a pod has is written only where it differs from the frame before.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from lorapick.live.admin_views import AdapterLine, CellLine, Frame, PodLine, PointLine
from lorapick.live.publish import AlertRow, DecisionRow, InMemory, PodRow, Published
from lorapick.live.verdict import verdict
from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.model.signals import AdapterSignals, FleetSignals, PodSignals, SignalPoint, Signals
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Seconds

MAX_PODS = 512
MAX_ADAPTERS = 2000
MAX_DECISIONS = 25
MAX_NAMES = 20_000
"""Adapters that a watcher may have to remember; beyond, all begin anew."""
SELDOM = 5
"""Frames from one look at the signals to the next, and from one look at host memory to the next."""
HALF_WAY = 2
GAP: Seconds = 10.0
"""Time since the last frame from which on nothing that it said is taken for what is: nobody has watched meanwhile."""
FRESH: Seconds = 3.0
"""A scrape younger than this is shown as just made: its age would change every line every second."""
_NOTHING = Signals(now=0.0, fleet=FleetSignals(requests_per_second=0.0, swaps_per_second=0.0))
_QUIET = PodSignals(pod="", swaps_per_second=0.0, loads_per_second=0.0, evictions_per_second=0.0)

_LOADING = Tier.LOADING

Value = TypeVar("Value")


class Frames:
    """Keeps what the last frame said."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._forget()
        self.last: Frame | None = None
        """The newest frame, with only what changed; None before the first."""

    def _forget(self) -> None:
        self._names: dict[AdapterName, int] = {}
        self._pods: dict[PodName, PodLine] = {}
        self._cells, self._host = _Cells(), _Cells()
        self._turn = 0
        self._signals = _NOTHING
        self._by_pod: dict[PodName, PodSignals] = {}
        self._adapters: dict[AdapterName, AdapterLine] = {}
        self._adapters_total = 0
        self._points: tuple[PointLine, ...] = ()
        self._decisions: tuple[DecisionRow, ...] = ()
        self._alerts: tuple[AlertRow, ...] | None = None
        self._bounds, self._slo = AlertSettings(), SloSettings()

    def advance(self) -> Frame:
        """Look at the picker; the frame that leads from the last one to now. The first is whole."""
        first = self.last is None or len(self._names) > MAX_NAMES
        seq = 1 if self.last is None else self.last.seq + 1
        if first:
            self._forget()
        named = len(self._names)
        changed = self._look(seq)
        self.last = msgspec.structs.replace(changed, names=tuple(self._names)[named:], whole=first)
        if first:
            self.last = msgspec.structs.replace(self.last, bounds=self._bounds, slo=self._slo)
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
            bounds=self._bounds,
            slo=self._slo,
            names=tuple(self._names),
            pods=tuple(self._pods.values()),
            pods_gone=(),
            cells=dict(self._cells.lines),
            host=dict(self._host.lines),
            adapters_total=self._adapters_total,
            adapters=tuple(self._adapters.values()),
            adapters_gone=(),
            points=self._points,
            decisions=self._decisions,
            alerts=self._alerts,
        )

    def _look(self, seq: int) -> Frame:
        published = self._published
        fleet = published.fleet()
        if self.last is not None and fleet.now - self.last.now > GAP:
            self._turn = 0
        turn, self._turn = self._turn, self._turn + 1
        # What costs most takes turns, so that no frame holds the picker up for long; the first has all.
        counts, remembers = turn % SELDOM == 0, turn == 0 or turn % SELDOM == HALF_WAY
        if counts:
            self._signals = published.signals()
            self._by_pod = {each.pod: each for each in self._signals.pods}
        signals, alerts = self._signals, tuple(published.alerts())
        self._bounds, self._slo = fleet.bounds, fleet.slo
        lines = {pod.name: _pod_line(pod, self._by_pod.get(pod.name, _QUIET)) for pod in fleet.pods[:MAX_PODS]}
        pods, pods_gone = _difference(self._pods, lines)
        self._pods = lines
        self._host.forget(pods_gone)
        memory = published.memory(least=Tier.CPU if remembers else Tier.LOADING)
        cells = self._cells.changed(self._names, {pod: _slots(memory.get(pod, ())) for pod in lines})
        host = self._host.changed(self._names, {pod: _rest(memory.get(pod, ())) for pod in lines}) if remembers else {}
        adapters, adapters_gone = self._changed_adapters(signals.adapters) if counts else ((), ())
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
            verdict=verdict(fleet, signals.fleet, alerts=alerts),
            pods=pods,
            pods_gone=pods_gone,
            cells=cells,
            host=host,
            adapters_total=len(signals.adapters) if counts else None,
            adapters=adapters,
            adapters_gone=adapters_gone,
            points=self._new_points(published.history()),
            decisions=self._new_decisions(published.decisions(MAX_DECISIONS)),
            alerts=self._changed_alerts(alerts),
        )

    def _changed_adapters(self, adapters: Sequence[AdapterSignals]) -> tuple[tuple[AdapterLine, ...], tuple[int, ...]]:
        self._adapters_total = len(adapters)
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
            round(each.first_seen) if each.first_seen is not None else None,
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


class _Cells:
    """What the last frames said of pods' slots, or of their host memory."""

    def __init__(self) -> None:
        self._known: dict[PodName, Sequence[InMemory]] = {}
        self.lines: dict[PodName, tuple[CellLine, ...]] = {}

    def changed(
        self, names: dict[AdapterName, int], here: dict[PodName, Sequence[InMemory]]
    ) -> dict[PodName, tuple[CellLine, ...]]:
        """Lines of the pods that differ from those before; names without a place get one."""
        known, self._known = self._known, here
        changed = {
            pod: tuple(_cell_line(names, cell) for cell in cells)
            for pod, cells in here.items()
            if known.get(pod, []) != cells
        }
        self.lines = {pod: lines for pod, lines in (self.lines | changed).items() if pod in here}
        return changed

    def forget(self, pods: Sequence[PodName]) -> None:
        """They are gone; should they come back, all is new."""
        for pod in pods:
            self._known.pop(pod, None)
            self.lines.pop(pod, None)


def _cell_line(names: dict[AdapterName, int], cell: InMemory) -> CellLine:
    place = names.setdefault(cell.adapter, len(names))
    # To a tenth of a second, by hand: round() is most of what a line costs.
    return CellLine(place, cell.tier, int(cell.since * 10) / 10, cell.source, cell.in_flight, cell.pinned)


def _slots(cells: Sequence[InMemory]) -> list[InMemory]:
    return [cell for cell in cells if cell.tier >= _LOADING]


def _rest(cells: Sequence[InMemory]) -> list[InMemory]:
    return [cell for cell in cells if cell.tier < _LOADING]


def _difference(before: dict[str, Value], after: dict[str, Value]) -> tuple[tuple[Value, ...], tuple[str, ...]]:
    """What is new or different, in the order of `after`, and the names that are gone."""
    changed = tuple(value for name, value in after.items() if before.get(name) != value)
    return changed, tuple(name for name in before if name not in after)


def _pod_line(pod: PodRow, signals: PodSignals) -> PodLine:
    age = pod.scrape_age_s
    return PodLine(
        name=pod.name,
        address=pod.address,
        role=pod.role,
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
        reserved=pod.reserved,
        prefill_tokens=pod.prefill_tokens,
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
