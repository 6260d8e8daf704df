"""All state of one fleet, as plain parts. Only the handlers behind `Fleet.apply` change it.

Not here: behaviour. `core.pods`, `core.requests` and `core.operator` are the handlers.
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence

from lorapick.core.admission.alerts import Alerts
from lorapick.core.admission.estimates import Loads
from lorapick.core.admission.gates import Gates
from lorapick.core.admission.holds import Holds
from lorapick.core.admission.leg_times import LegInFlight, LegTimes, splits
from lorapick.core.admission.prices import Prices
from lorapick.core.admission.probation import Probation
from lorapick.core.admission.quarantine import Quarantine
from lorapick.core.admission.queues import Queues
from lorapick.core.admission.turns import Turns
from lorapick.core.admission.unloading import Unloading
from lorapick.core.arms import Arms, Trial
from lorapick.core.columns import PodColumns
from lorapick.core.explain import Journal
from lorapick.core.near_names import NearNames
from lorapick.core.peers.state import Peers
from lorapick.core.picking.policies import make_policy
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.prefix_index import PrefixIndex, salted
from lorapick.core.picking.round_robin import RoundRobin
from lorapick.core.placement.state import Placement
from lorapick.core.podload import PodLoad
from lorapick.core.residency.table import Residency
from lorapick.core.signals.tracker import Tracker
from lorapick.core.told import Told
from lorapick.model.adapters import Adapter, Alias, PinSpec
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome, Request, Target
from lorapick.model.settings import Settings
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds

MAX_SESSIONS = 100_000
"""Sessions remembered; the least recently used is forgotten first."""


class Flight:
    """One request between its arrival and its end."""

    __slots__ = (
        "adapter",
        "address",
        "arrived",
        "blocks",
        "fallbacks",
        "follow_until",
        "late",
        "leg",
        "load_then",
        "pod",
        "prefiller",
        "ran_from",
        "request",
        "reserved",
        "row",
        "sent",
        "standby",
        "started",
        "tier",
        "trial",
        "unseated",
        "waits_since",
    )

    def __init__(self, request: Request, adapter: Adapter | None, *, now: Seconds) -> None:
        self.request = request
        self.arrived = now
        self.adapter = adapter
        """None: the base model."""
        self.blocks = request.blocks
        """Prefix blocks, keyed by what will compute them."""
        if adapter is not None and adapter.name != request.model:
            # The ids are seeded with the name that the client wrote; an alias may stand for several adapters.
            self.blocks = salted(request.blocks, adapter.name)
        self.row = -1
        """Row of the pod that has it; -1: held, or its pod is gone."""
        self.pod: PodName | None = None
        """Pod that has or had it; None: held."""
        self.address: str | None = None
        """That pod's, when the request was sent there; None: held."""
        self.started = False
        """Whether response headers without an error came."""
        self.tier: Tier | None = None
        """Tier believed at dispatch; None for the base model."""
        self.follow_until: Seconds | None = None
        """Until when it may wait for another request's load; None: it has not waited."""

        self.waits_since: Seconds | None = None
        """Since when it waits at the picker, for whatever; None: it has not waited."""
        self.sent: Seconds = 0.0
        """When it was dispatched."""
        self.ran_from: Seconds | None = None
        """Since when its own pod has it: when it was sent, or prefilled elsewhere; None: nobody knows."""
        self.leg: LegInFlight | None = None
        """Its stay on the pod that prefills for it; None: it has none, or that is over."""
        self.late: LegInFlight | None = None
        """Its stay on a pod whose prefill is overdue, as long as nobody has said how it ended; None: there is none."""
        self.reserved = False
        """Whether its own pod keeps a slot for it, whose engine has not used it for this request, as far as we know."""
        self.unseated = False
        """Whether its own pod has the request all the same: it waits for a seat in the batch, or for its KV."""
        self.prefiller: PodName | None = None
        """Pod that was to prefill for it; None: its own."""
        self.fallbacks: tuple[Target, ...] = ()
        """Where the gateway goes on when its pod does not take it, in order."""
        self.standby = -1
        """Row of the fallback that keeps a slot for it too, since its own pod is lost; -1: none does."""
        self.load_then = 0.0
        """Requests that its pod had then."""
        self.trial: Trial | None = None
        """Its part in a trial; None: there is none."""

    @property
    def awaited(self) -> bool:
        """Whether its own pod keeps a slot for it and has not got it yet, as far as we know."""
        return self.reserved and not self.unseated

    @property
    def adapter_name(self) -> AdapterName | None:
        """Name of the adapter; None: the base model."""
        return self.adapter.name if self.adapter is not None else None


class Tally:
    """Counters since the start. Outcomes plus flights add up to arrivals."""

    __slots__ = (
        "arrivals",
        "by_adapter",
        "coalesced",
        "dispatched",
        "expired",
        "fallbacks",
        "given_back",
        "late_loads",
        "legs_by_tier",
        "legs_failed",
        "legs_lost",
        "legs_overdue",
        "loads",
        "on_probation",
        "outcomes",
        "picks_by_tier",
        "quarantines",
        "reservations_moved",
        "reserved_lost",
        "scoring_errors",
        "splits",
        "turns",
        "unload_failures",
        "unloads",
    )

    def __init__(self) -> None:
        self.arrivals = 0
        self.by_adapter: Counter[AdapterName] = Counter()
        """Arrivals per adapter."""
        self.dispatched = 0
        self.coalesced = 0
        """Dispatches that followed a load under way."""
        self.loads = 0
        """Loads begun, whoever caused them."""
        self.on_probation = 0
        """Requests for adapters that were on probation."""
        self.turns = 0
        """Slots that were begun to be cleared for an adapter that waited."""
        self.quarantines = 0
        """Times that a pod was left alone with an adapter that it had failed to load."""
        self.expired: Counter[Reason] = Counter()
        """Requests whose wait at the picker had lasted as long as it may, by what they waited for."""
        self.unloads = 0
        """Unloads asked for because a pod's memory was short."""
        self.given_back = 0
        """Loads asked for to give a pod back what it was told to unload."""
        self.unload_failures = 0
        """Of those, the ones that a pod refused or did not answer."""
        self.fallbacks = 0
        """Requests that another pod served than picked."""
        self.scoring_errors = 0
        """Decisions taken by the spare policy because the configured one failed."""
        self.outcomes: Counter[Outcome] = Counter()
        self.picks_by_tier: Counter[str] = Counter()
        self.splits: Counter[str] = Counter()
        """Dispatches by where they are prefilled: `split` (elsewhere), `alone`, `nobody_prefills`."""
        self.legs_by_tier: Counter[str] = Counter()
        """Legs by the tier of their adapter on the pod that prefills."""
        self.legs_failed = 0
        """Prefills that failed; the pod that decodes did them itself."""
        self.legs_lost = 0
        """Prefills whose pod went away meanwhile."""
        self.legs_overdue = 0
        """Prefills that count as over since nobody said so."""
        self.reservations_moved: Counter[str] = Counter()
        """Reservations whose pod was lost before it had the request: `moved` to a fallback, `no_room` there,
        `nobody` (no fallback is left), `back` (the pod was there after all, and the fallback's slot is free again)."""
        self.reserved_lost: Counter[str] = Counter()
        """Adapters that left a slot which was reserved for them, by how that is known: `reported`, or `inferred`."""
        self.late_loads = 0
        """Adapters that began to be loaded only when the prefill was over, as the pod could not be told before."""


class FleetState:
    """The parts."""

    def __init__(self, settings: Settings, *, seed: int) -> None:
        self.settings = settings
        self.seed = seed
        self.splits = False
        """Whether requests are split between pods that prefill and pods that decode."""
        self.loads: dict[int, PodLoad] = {}
        """Per row."""
        self.reads_prices = False
        """Whether the policy wants to know what things take."""
        self.arms = Arms(settings, seed=seed)
        self.take_policy(make_policy(settings.picking))
        self.spare_policy = RoundRobin(settings.picking)
        """Takes over for one decision when the configured one fails."""
        self.now: Seconds = 0.0
        """Time of the event that is being applied."""
        self.columns = PodColumns()
        self.residency = Residency(self.columns, settings.load_times, clock=lambda: self.now)
        self.residency.retention = settings.retention
        self.prefixes = PrefixIndex(blocks_per_pod=settings.picking.prefix_blocks_per_pod)
        self.flights: dict[RequestId, Flight] = {}
        self.holds = Holds()
        """Who follows a load."""
        self.queues = Queues(fairness=settings.admission.fairness, patience=settings.admission.patience)
        """Who waits for a place."""
        self.turns = Turns()
        self.gates = Gates(self.columns, self.residency, loads=self.loads, turns=self.turns, settings=settings)
        self.gates.configure(settings, on=self.policy.coalesces)
        self.placement = Placement(settings, acts=self.arms.commands)
        """Who is loaded, kept and moved on purpose."""
        self.residency.awaited = self.placement.commands.bringing
        self.gates.keeps, self.gates.warming = self.placement.keeps, self.placement.warming
        self.gates.claims = self.placement.claims
        self.unloads = Unloading(settings.retention)
        """Who leaves pods whose memory is short."""
        self.quarantine = Quarantine()
        self.probation = Probation(
            self.columns, self.residency.registry, share=settings.admission.probation_slots_share
        )
        self.prices = Prices(loads=Loads(settings.load_times))
        self.legs = LegTimes()
        """What is prefilled elsewhere than it is decoded."""
        self.alerts = Alerts()
        self.peers = Peers(settings.peers)
        """What other pickers of the fleet say, and what we ask them."""
        self.signals = Tracker()
        """Rates, residencies, latencies of late: changes no decision."""
        self.signals.useful.load_times = settings.load_times
        self.sessions: OrderedDict[tuple[str, str], PodName] = OrderedDict()
        """(model, session key) to the pod that served it last."""
        self.cold: dict[int, None] = {}
        """Rows that were given a request with nothing cached, in that order; kept for profiles that ask for it."""
        self.adapters: dict[AdapterName, Adapter] = {adapter.name: adapter for adapter in settings.adapters}
        self.aliases: dict[str, Alias] = {alias.name: alias for alias in settings.aliases}
        self.pins: dict[AdapterName, PinSpec] = {}
        self.near_names = NearNames()
        self.told = Told()
        """What was printed of late."""
        self.tally = Tally()
        self.journal = Journal()
        self._declare(settings.adapters)

    def _declare(self, adapters: Sequence[Adapter]) -> None:
        for adapter in adapters:
            self.residency.declare(adapter.name)
            if adapter.pin is not None:
                self.pins[adapter.name] = adapter.pin

    def refresh(self, row: int) -> None:
        """Write a pod's load into its columns."""
        columns = self.columns
        columns.queue[row], columns.load[row], columns.gpu[row], columns.gpu_source[row] = self.loads[row].figures()
        columns.settle(row)
        self.gates.refresh(row)
        if self.reads_prices:
            home = self.residency.home(row)
            columns.load_price[row] = self.prices.of_load(home, columns.load[row], now=self.now)

    def recount(self) -> None:
        """Pods came, went or changed."""
        self.prices.slots = sum(load.limits.max_loras for load in self.loads.values())
        roles = [pod.role for _, pod in self.columns.live()]
        self.splits = splits(roles, decide=self.settings.disaggregation.decide)
        self._read_prices()

    def take_policy(self, policy: Policy) -> None:
        """Decide by this one from now on."""
        self.policy = policy
        self._read_prices()

    def _read_prices(self) -> None:
        reads = self.policy.reads if self.arms.policy is None else (*self.policy.reads, *self.arms.policy.reads)
        before, self.reads_prices = self.reads_prices, self.splits or "load_price" in reads
        if self.reads_prices and not before:
            for row in self.loads:
                self.refresh(row)

    def fail(self, row: int, name: AdapterName, *, now: Seconds) -> Seconds:
        """A pod failed to load an adapter: nobody tries again there for a while; return for how long."""
        self.tally.quarantines += 1
        return self.quarantine.failed(row, name, now=now)

    @property
    def waiting(self) -> int:
        """Requests that wait at the picker, other than for a word of its peers."""
        return len(self.holds) + len(self.queues)

    @property
    def all_pins(self) -> dict[AdapterName, PinSpec]:
        """Pins of all pickers of the fleet; of two for an adapter the higher counts."""
        return self.peers.marks.with_own(self.pins)

    def stop_waiting(self, request_id: RequestId) -> None:
        """Let go of a request that waits, for whatever; a slot that was being cleared for it alone no longer is."""
        self.holds.remove(request_id)
        if self.peers.on:
            self.peers.claims.stop(request_id)
        waiter = self.queues.remove(request_id)
        name = waiter.flow[2] if waiter is not None else None
        if name is not None and self.turns.row_of(name) >= 0 and not self.queues.wanted(name):
            self.end_turn(name)

    def end_turn(self, name: AdapterName) -> None:
        """The slot that is being cleared for an adapter is taken, or nobody wants it any more."""
        row = self.turns.end(name)
        if row >= 0:
            self.gates.refresh(row)

    def remember_session(self, request: Request, pod: PodName) -> None:
        """Note which pod serves a session."""
        if request.session is None:
            return
        key = (request.model, request.session)
        self.sessions[key] = pod
        self.sessions.move_to_end(key)
        if len(self.sessions) > MAX_SESSIONS:
            self.sessions.popitem(last=False)
