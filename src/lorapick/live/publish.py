"""What the running picker shows of itself: values and two protocols.

In: nothing. Out: `FleetSnapshot` and its rows, `Published` (views to read) and `Observer` (told of every event).
Not here: HTTP (see `live.admin`, `live.metrics`), decisions (see `core`), or any way to change the picker.

All times are on the driver's clock (the one of `Event.t`) unless a name says `wall`; `FleetSnapshot.now` and
`FleetSnapshot.wall` are the same instant on both clocks, so that a reader can turn one into the other.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from lorapick.model.effects import Effect
from lorapick.model.events import Event
from lorapick.model.picks import Belief, Explanation
from lorapick.model.pods import Engine, GpuSource, Role
from lorapick.model.reasons import Reason
from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.model.signals import SignalPoint, Signals
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import AdapterName, PodName, Ratio, RequestId, Seconds, Tokens


class PodRow(msgspec.Struct, frozen=True, kw_only=True):
    """One pod as the picker sees it now. None: unknown."""

    name: PodName
    address: str
    role: Role = Role.BOTH
    engine: Engine = Engine.VLLM
    zone: str | None = None
    ready: bool
    """Whether it may get requests now."""
    reason: Reason | None = None
    """Why not, when it may not."""
    queue_depth: float | None = None
    """Requests that wait at the pod, the number that filter and score use: reported waiting + what our own dispatches
    minus ends since that scrape exceed the batch's free seats by; never scraped: in flight - max_num_seqs. Floor 0."""
    max_queue: int
    running: int | None = None
    """As last reported by the pod."""
    in_flight: int = 0
    """Our own count."""
    gpu_utilization: Ratio | None = None
    gpu_source: GpuSource = GpuSource.UNKNOWN
    kv_usage: Ratio | None = None
    slots: int
    """GPU slots for adapters (`max_loras`)."""
    slots_used: int | None = None
    """Slots believed taken: adapters in `gpu_*` or `loading`. None: a pod never heard of."""
    free_slots: int | None = None
    reserved: int = 0
    """Adapters whose slot is kept for requests that another pod still prefills."""
    prefill_tokens: Tokens = 0
    """Prompt tokens that it prefills now for other pods, those that it has cached not counted."""
    scrape_age_s: Seconds | None = None
    """Age of the last good scrape; None: there was none yet."""
    last_error: str | None = None
    """Why the last scrape brought nothing; None: it was good."""
    restarts: int = 0
    """Restarts of the pod's process that were noticed."""
    loading: int = 0
    """Loads under way there, as far as we know."""
    pressure: str | None = None
    """Pressure tier: `none`, `soft`, `hard` or `critical`. None: there was no good scrape yet."""
    base_model: str | None = None
    """Name under which clients ask for its base model."""
    max_lora_rank: int | None = None
    """Highest rank that it takes."""
    max_num_seqs: int | None = None
    """Requests that it runs at once."""
    labels: dict[str, str] = {}
    """What selectors of pins go by."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Counts since the picker started. arrivals = served + failed + rejected + abandoned + in_flight + held."""

    arrivals: int = 0
    served: int = 0
    failed: int = 0
    rejected: int = 0
    abandoned: int = 0
    in_flight: int = 0
    """Dispatched and not yet ended."""
    held: int = 0
    """Waiting at the picker now."""
    dispatched: int = 0
    picks_by_tier: dict[str, int] = {}
    """Dispatches by the tier's word as believed at the pick; the base model counts as `base`."""
    loads_inferred: int = 0
    """Loads that an engine was believed to do because of a dispatch."""
    waiting: dict[str, int] = {}
    """Requests that wait at the picker now, by what for: `held_for_load`, `held_for_slot`; together `held`."""
    expired: dict[str, int] = {}
    """Requests that had waited there for as long as they may, by what for: then sent elsewhere, or refused."""
    probation: int = 0
    """Requests for adapters on probation."""
    turns: int = 0
    """Slots that were cleared for adapters that had waited for too long."""
    quarantines: int = 0
    """Times that a pod was left alone for a while with an adapter that it had failed to load."""
    unloads: int = 0
    """Unloads that pods under pressure were asked for."""
    unload_failures: int = 0
    given_back: int = 0
    """Adapters that pods were asked to take again after such an unload."""
    passed: dict[str, int] = {}
    """Requests sent to any ready pod without a decision, by why (`no_body`, `no_model`, `undecided`, `body_mode`); they
    are not among the arrivals."""
    faults: dict[str, int] = {}
    """What went wrong, by kind: `decide_failure`, `scoring_error`, `protocol_error`, `stream_error`."""
    envoy_requests: int | None = None
    """Requests that Envoy got from clients since its start; None: unknown (`server.envoy_admin`)."""
    envoy_without_picker: int | None = None
    """Of these, requests that went on without a picker's word; None: unknown."""


class Splits(msgspec.Struct, frozen=True, kw_only=True):
    """What became of prefill on other pods since the picker started; all 0 where every pod does both."""

    results: dict[str, int] = {}
    """Dispatches by whether another pod prefills: `split`, `alone`, `nobody_prefills` (none could)."""
    picks_by_tier: dict[str, int] = {}
    """Picks of a pod to prefill, by the tier in which it was believed to have the adapter."""
    failed: dict[str, int] = {}
    """Prefills that did not come to a good end, by why: `failed` (the pod that decodes did it, and said so), `lost`
    (its pod went), `overdue` (nobody said in time that it was over)."""
    reservations_moved: dict[str, int] = {}
    """Slots reserved on pods that were lost before they had the request: `moved` to a fallback, `no_room` there,
    `nobody` (no fallback was left), `back` (the pod answered again, and the fallback's slot was given up)."""
    reserved_lost: dict[str, int] = {}
    """Adapters that left a slot which was reserved for them, by how that is known: `reported` by the pod, `inferred`
    from what came to it."""
    late_loads: int = 0
    """Loads that began on a pod that decodes only when the prefill was over."""
    seconds_per_token: Seconds | None = None
    """Of a prefill, as learnt; None: no pod prefills for others."""
    lately: dict[str, int] = {}
    """Dispatches of the last 10 minutes: `split`, or why not (`few_tokens`, `unknown_length`, `dearer`,
    `nobody_prefills`)."""
    unreached: dict[PodName, int] = {}
    """Pods that were named to prefill and got nothing, by their own counters, with how often they were named."""


class PlacementNow(msgspec.Struct, frozen=True, kw_only=True):
    """What placement wants now, and what it did since the picker started."""

    given: dict[str, dict[str, int]] = {}
    """Commands that the controller gave, by kind (`load`, `unload`, `register`, `touch`) and by what for."""
    ended: dict[str, dict[str, int]] = {}
    """What came of all commands to pods, by kind and outcome (see docs/control.md); also of those under pressure."""
    begun: dict[str, int] = {}
    """Commands whose turn came, by kind."""
    seconds: dict[str, Seconds] = {}
    """Time that those took, by kind."""
    touches: int = 0
    """Touches that pods answered."""
    pins_wanted: int = 0
    """Pairs of a pinned adapter and a pod that should have it."""
    pins_missing: int = 0
    """Of these, those that are not in a slot there now."""
    pins_without_place: int = 0
    """Pinned adapters that do not, or not wholly, fit."""
    pin_missing_longest: Seconds = 0.0
    """For how long one of these pairs was missing at most, those that are now among them."""
    moves_last_minute: int = 0
    """Loads of the last minute that count against `placement.moves_per_minute`."""
    orders: int = 0
    """Orders of operators that are not done."""
    warming: tuple[PodName, ...] = ()
    """Pods that take no traffic yet, since what they should have is not there."""
    leaving: tuple[PodName, ...] = ()
    """Pods that drain and still serve what nobody else has."""
    plan_version: int = 0
    """Of the solver's last answer; 0: there was none."""


class FleetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The whole fleet at one instant. Pods in the fleet's own order."""

    now: Seconds
    """This instant on the driver's clock."""
    wall: Seconds
    """This instant as Unix time."""
    started_at: Seconds
    """Unix time of the picker's start."""
    version: int
    """State version of the core."""
    policy: str
    totals: Totals
    pods: tuple[PodRow, ...] = ()
    placement: PlacementNow = PlacementNow()
    splits: Splits = Splits()
    bounds: AlertSettings = AlertSettings()
    """From where on figures are alerts, as configured."""
    slo: SloSettings = SloSettings()
    """What users were promised."""


class AdapterRow(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter over the whole fleet."""

    name: AdapterName
    declared: bool = False
    rank: int | None = None
    base_model: str | None = None
    """As declared; None: the fleet's."""
    pods: dict[str, tuple[PodName, ...]] = {}
    """Tier's word -> pods where it is believed to be; tiers without pods are left out."""
    requests: int = 0
    """Requests for it since the picker started."""
    in_flight: int = 0
    sides: dict[str, tuple[PodName, ...]] = {}
    """Of a fleet that splits requests, side -> pods of it that have the adapter in a slot; {}: there is one side."""


class DecisionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One decision in one line; `explain` gives the rest for a sample of them."""

    request_id: RequestId
    t: Seconds
    model: str
    """The name the client asked for."""
    adapter: AdapterName | None = None
    """None: the base model."""
    pod: PodName | None = None
    tier: str | None = None
    """Word of the tier on the winner as believed then; None for the base model and for no winner."""
    outcome: str
    """`dispatched`, `held` or `rejected`."""
    reason: Reason | None = None
    score: float | None = None
    prefill: PodName | None = None
    """Pod that was to prefill for it; None: none other than its own."""
    prefill_came: str | None = None
    """What came of that (`model.picks.What`); None: nothing is known yet, or no other pod prefills."""
    served_by: PodName | None = None
    """The fallback that serves it, as the gateway says; None: its own pod, as far as is known."""
    explained: bool = True
    """Whether `explain` still has this decision."""


class InMemory(msgspec.Struct, frozen=True, gc=False):
    """An adapter in some memory of a pod: what `Belief` says of it, without what changes with every answer."""

    adapter: AdapterName
    tier: Tier
    since: Seconds
    """When it came to this tier."""
    source: Source
    in_flight: int
    pinned: bool


class AlertRow(msgspec.Struct, frozen=True, kw_only=True):
    """One alert that stands."""

    name: str
    since: Seconds
    severity: str = "warn"
    """`warn` or `page` (see `model.alerts`)."""
    facts: dict[str, str | float] = {}


class Published(Protocol):
    """Read-only views of a running picker. All return at once, never raise, and give values that do not change."""

    def fleet(self) -> FleetSnapshot:
        """Pods and totals now."""
        ...

    def residency(self) -> Sequence[Belief]:
        """What is believed to be where: at least every cell in `gpu_*`, `loading` and `cpu`."""
        ...

    def memory(self, *, least: Tier = Tier.CPU) -> Mapping[PodName, Sequence[InMemory]]:
        """What each pod has in this tier or a readier one, in no order that says anything.

        Much cheaper than `residency`: the status page asks once a second.
        """
        ...

    def adapters(self) -> Sequence[AdapterRow]:
        """Every adapter known, by name."""
        ...

    def decisions(self, limit: int) -> Sequence[DecisionRow]:
        """The last decisions, newest first, at most `limit`."""
        ...

    def explain(self, request_id: RequestId) -> Explanation | None:
        """One decision in full; None when it was never kept or is kept no longer."""
        ...

    def alerts(self) -> Sequence[AlertRow]:
        """Alerts that stand."""
        ...

    def signals(self) -> Signals:
        """What shows thrash as thrash, now."""
        ...

    def history(self) -> Sequence[SignalPoint]:
        """The lines of the last hour, oldest first."""
        ...

    def ledger(self) -> Path | None:
        """The ledger's file; None: none is kept."""
        ...


class Observer(Protocol):
    """Told by the driver of every event and what came of it."""

    def observe(self, event: Event, effects: Sequence[Effect]) -> None:
        """Take note. Must be cheap (a few microseconds) and must not raise.

        Called right after the core applied the event, so `Fleet.changes` has its changes of residency meanwhile.
        """
        ...
