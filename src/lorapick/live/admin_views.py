"""Answers of the admin API's routes that show the picker, made of published values.

In: rows of `live.publish`, intents. Out: structs for JSON. Not here: HTTP (see `live.admin`), answers
about placement (see `wire.admin_answers`).
"""

import msgspec

from lorapick.live.publish import AdapterRow, AlertRow, DecisionRow, Totals
from lorapick.live.verdict import Verdict
from lorapick.model.adapters import PinSpec
from lorapick.model.placement import AdapterFacts, Why
from lorapick.model.pods import GpuSource, Role
from lorapick.model.reasons import Reason
from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.model.signals import FleetSignals
from lorapick.model.tiers import Source
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds
from lorapick.wire.admin_answers import Intent
from lorapick.wire.api import Cell


class Residency(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/residency."""

    now: float
    total: int
    """Cells that matched, those beyond the limit included."""
    cells: tuple[Cell, ...]


class AdapterEntry(AdapterRow, frozen=True, kw_only=True):
    """One adapter over the whole fleet, with what is wanted of it and known of its files."""

    source: str | None = None
    revision: str | None = None
    pin: PinSpec | None = None
    wanted: dict[PodName, Why] = msgspec.field(default_factory=dict)
    """Pods that should hold it as of the last tick, and what for."""
    problem: str | None = None
    """What is wrong with its files; then nobody is told to load it."""
    facts: AdapterFacts | None = None
    """What its files say; None: nobody has looked."""
    retiring: bool = False
    """It is retired, and pods are still to forget it."""


def entry(row: AdapterRow, intent: Intent | None) -> AdapterEntry:
    """The row with what is wanted; None: nothing is."""
    fields = {name: getattr(row, name) for name in row.__struct_fields__}
    wanted = {name: getattr(intent, name) for name in Intent.__struct_fields__} if intent is not None else {}
    return AdapterEntry(**fields, **wanted)


class Adapters(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/adapters."""

    adapters: tuple[AdapterEntry, ...]


class AdapterDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/adapters/{name}."""

    adapter: AdapterEntry
    cells: tuple[Cell, ...]


class Decisions(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/decisions, newest first."""

    decisions: tuple[DecisionRow, ...]


class Alerts(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/alerts."""

    alerts: tuple[AlertRow, ...]


class PodLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One pod on the status page; figures as in `live.publish.PodRow` and `model.signals.PodSignals`, rounded."""

    name: PodName
    address: str
    role: Role = Role.BOTH
    ready: bool
    reason: Reason | None = None
    error: str | None = None
    queue: float | None = None
    max_queue: int
    in_flight: int = 0
    gpu: Ratio | None = None
    gpu_source: GpuSource = GpuSource.UNKNOWN
    kv: Ratio | None = None
    slots: int
    scraped_s: int | None = None
    """Age of the last good scrape in whole seconds, 0 below three; None: there was none."""
    restarts: int = 0
    loading: int = 0
    reserved: int = 0
    """Slots that are kept for requests which other pods still prefill."""
    prefill_tokens: int = 0
    """That it prefills for others."""
    pressure: str | None = None
    swaps: float = 0.0
    """Per second, over the last minute."""
    useful: Ratio | None = None
    hits: Ratio | None = None
    """As realised."""
    hits_believed: Ratio | None = None
    residency: Seconds | None = None
    swap_queue: int = 0
    critical: bool = False


class CellLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An adapter in some memory of a pod, written as a list."""

    adapter: int
    """Its place among all `names` since the last whole frame."""
    tier: int
    """Code of the tier: 2 `cpu`, 3 `loading`, 4 `gpu_idle`, 5 `gpu_serving`."""
    since: Seconds
    source: Source
    in_flight: int
    pinned: bool


class AdapterLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One adapter's `model.signals.AdapterSignals`, rounded, written as a list; `adapter` as in `CellLine`."""

    adapter: int
    requests_per_second: float
    share: Ratio
    hit_ratio: Ratio | None
    loads: int
    evictions: int
    mean_residency: Seconds | None
    latency_p95: Seconds | None
    first_seen: Seconds | None


class PointLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One `model.signals.SignalPoint`, rounded, written as a list."""

    t: Seconds
    swaps_per_second: float
    requests_per_second: float
    hit_ratio: Ratio | None
    latency_p95: Seconds | None
    useful_share: Ratio | None
    active_per_slot: float | None
    mean_residency: Seconds | None


class Frame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of /v1/stream: what the status page shows. Bounded; the other routes have the rest.

    The first is whole; the next ones have of pods, cells, adapters, points and decisions only what is new or different,
    and are to be laid over what was there. A frame that is whole replaces everything.
    """

    seq: int
    """One more than that of the frame before, unless this one is whole."""
    whole: bool = False
    now: Seconds
    wall: Seconds
    started_at: Seconds
    policy: str
    pods_total: int
    """Pods of the fleet; the page is told of at most the first 512."""
    pods_ready: int
    totals: Totals
    fleet: FleetSignals
    """This and the pods' figures of the last minute are made anew at every fifth frame."""
    verdict: Verdict
    bounds: AlertSettings | None = None
    """From where on figures are alerts, as configured; in whole frames."""
    slo: SloSettings | None = None
    """What users were promised; in whole frames."""
    names: tuple[AdapterName, ...] = ()
    """Adapters that lines of this frame name for the first time: behind those of the frames before."""
    pods: tuple[PodLine, ...] = ()
    """A whole frame has them in the fleet's order; pods that come later stand behind."""
    pods_gone: tuple[PodName, ...] = ()
    cells: dict[PodName, tuple[CellLine, ...]] = {}
    """All that is in slots, or on its way there, of the pods where any of it differs."""
    host: dict[PodName, tuple[CellLine, ...]] = {}
    """The same of what is in host memory; looked at every fifth frame, so it may name what is in a slot by now."""
    adapters_total: int | None = None
    """Adapters with figures, at every fifth frame; None: the same as before."""
    adapters: tuple[AdapterLine, ...] = ()
    """At most the 2,000 with most requests, at every fifth frame."""
    adapters_gone: tuple[int, ...] = ()
    points: tuple[PointLine, ...] = ()
    """The lines of the last hour, oldest first."""
    decisions: tuple[DecisionRow, ...] = ()
    """Newest first."""
    alerts: tuple[AlertRow, ...] | None = None
    """All that stand; None: the same as before."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /healthz."""

    status: str
    version: str
    pods_ready: int
    pods: int
