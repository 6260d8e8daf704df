"""Answers of the admin API about placement, as the picker writes them and `lorapick adapters` reads them.

In: nothing. Out: structs that msgspec turns into JSON and back. Not here: who fills them (see `live.placement_views`,
`live.commanding`). Ages and times are in seconds; unknown is None.
"""

import msgspec

from lorapick.core.placement.plans import Move, PlanCosts
from lorapick.model.adapters import Alias, PinSpec
from lorapick.model.placement import AdapterFacts, Why
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a change."""

    changed: bool
    """False: nothing had to be done."""
    understood: str
    """The change in a sentence, as it was understood."""
    event: int | None = None
    """Its id in the event log; None: nothing was changed."""
    pods: tuple[PodName, ...] = ()
    """Pods that the adapter is wanted on now, for whatever reason."""
    resident: tuple[PodName, ...] = ()
    """Pods that hold it in a slot now."""
    notes: tuple[str, ...] = ()
    """What else the caller should know: why a load waits, what an unload does not free."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of one adapter, and what is known of its files."""

    source: str | None = None
    revision: str | None = None
    pin: PinSpec | None = None
    wanted: dict[PodName, Why] = {}
    """Pods that should hold it as of the last tick, and what for."""
    problem: str | None = None
    """What is wrong with its files; then nobody is told to load it."""
    facts: AdapterFacts | None = None
    """What its files say; None: nobody has looked."""
    retiring: bool = False


class PinRow(msgspec.Struct, frozen=True, kw_only=True):
    """One pin: what was asked for, and where it is."""

    adapter: AdapterName
    pin: PinSpec
    pods: tuple[PodName, ...] = ()
    missing: dict[PodName, Seconds] = {}
    """Of those, pods that do not hold it in a slot, and for how long they have not."""
    problem: str | None = None
    """Why it is not, or not wholly, where it was asked for."""


class OrderRow(msgspec.Struct, frozen=True, kw_only=True):
    """One order of an operator that is not done, or still holds."""

    adapter: AdapterName
    order: str
    """`load 12` or `move 12`, with the id of its event."""
    replicas: int = 1
    pods: tuple[PodName, ...] = ()
    selector: dict[str, str] = {}
    once: bool
    """Done when it is loaded; else kept for `ends_in_s`."""
    leaves: PodName | None = None
    """Pod that loses it when the other one has it."""
    age_s: Seconds
    ends_in_s: Seconds | None = None


class WantRow(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter that should be on one pod, beside where it is believed to be."""

    pod: PodName
    adapter: AdapterName
    why: Why
    tier: str


class CommandRow(msgspec.Struct, frozen=True, kw_only=True):
    """One command that a pod has not answered."""

    pod: PodName
    kind: str
    """`load`, `register`, `unload` or `touch`."""
    adapter: AdapterName
    why: Why
    age_s: Seconds


class RefusalRow(msgspec.Struct, frozen=True, kw_only=True):
    """What the guard said last of one adapter on one pod; it is asked again on each tick."""

    pod: PodName
    adapter: AdapterName
    why: Why
    reason: str
    age_s: Seconds


class PlanState(msgspec.Struct, frozen=True, kw_only=True):
    """The placement by load."""

    on: bool
    solver: str
    version: int
    """Of the last answer; 0: there was none."""
    asked: int
    """Of the last problem."""
    placed: dict[AdapterName, tuple[PodName, ...]] = {}


class BudgetUse(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the budgets is used."""

    moves_last_minute: int
    moves_per_minute: float
    pods_loading: int
    most_pods_loading: int
    loads_last_minute: dict[PodName, int] = {}
    """Pods without a load are left out."""
    loads_per_pod_per_minute: float


class ForecastScore(msgspec.Struct, frozen=True, kw_only=True):
    """How one forecast did on one day (UTC); see `docs/preloading.md`."""

    day: Seconds
    """Unix time at which it began."""
    model: str
    requests: int
    held: Ratio | None = None
    cold_per_1000: float | None = None
    regret: float | None = None


class ForecastState(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast, and how those that there are did."""

    uses: str
    """`off`, `last_hour`, `seasonal` or `blend`."""
    scores: tuple[ForecastScore, ...] = ()


class PlacementAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/placement: what should be where, beside what is believed."""

    now: Seconds
    enabled: bool
    """False: nobody is told to load anything (`placement.enabled`)."""
    pins: tuple[PinRow, ...] = ()
    longest_pin_missing_s: Seconds = 0.0
    """For how long a pin that came back was away, at most."""
    orders: tuple[OrderRow, ...] = ()
    wants_total: int = 0
    wants: tuple[WantRow, ...] = ()
    """As of the last tick; at most 10,000."""
    unloads: tuple[WantRow, ...] = ()
    """Unloads that are wanted and not done."""
    commands: tuple[CommandRow, ...] = ()
    refusals: tuple[RefusalRow, ...] = ()
    """Latest first; at most 512."""
    warming: dict[PodName, Seconds] = {}
    """Pods that take no traffic yet, and for how long."""
    leaving: dict[PodName, Seconds] = {}
    """Pods that drain and still hand over, and for how much longer."""
    retiring: tuple[AdapterName, ...] = ()
    problems: dict[AdapterName, str] = {}
    """What is wrong with adapters' files."""
    plan: PlanState
    budgets: BudgetUse
    forecast: ForecastState


class FollowerRow(msgspec.Struct, frozen=True, kw_only=True):
    """An adapter that is called after another one."""

    adapter: AdapterName
    source: str
    """`declared` or `learned`."""
    group: str
    support: float | None = None
    """Times that it was seen to follow, the old ones fading."""
    confidence: Ratio | None = None


class GroupRow(msgspec.Struct, frozen=True, kw_only=True):
    """Who follows one adapter."""

    first: AdapterName
    then: tuple[FollowerRow, ...]


class GroupsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/groups."""

    learning: bool
    groups: tuple[GroupRow, ...] = ()


class AliasesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/aliases."""

    aliases: tuple[Alias, ...] = ()


class PlanAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of /v1/placement/plan: what a placement by load would do now. Nothing is done."""

    solver: str
    """The one that answered; `rendezvous` also when `flow` failed."""
    pods: int
    adapters: int
    """Those that are asked for often enough to be placed on purpose."""
    loads: int
    drops: int
    keeps: int
    moves: tuple[Move, ...] = ()
    short: dict[AdapterName, int] = {}
    """Replicas that found no slot."""
    costs: PlanCosts | None = None
    """Seconds of requests' time, part by part; None: nobody reckoned."""
    cost_s: Seconds | None = None
    """Their sum."""
