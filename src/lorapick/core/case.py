"""One decision while it is taken: what it reads, and what it becomes as a value.

In: a flight and the fleet's state. Out: a `Case` with its query; picks, journal entries, refusals.
Not here: deciding (see `core.deciding`), waiting (see `core.waiting`).
"""

from msgspec.structs import replace

from lorapick.core import facts, splitting
from lorapick.core.columns import CODE, TIER_BITS, PodColumns
from lorapick.core.draw import draw_for
from lorapick.core.explain import Decision, Journal
from lorapick.core.frozen import FrozenView
from lorapick.core.picking.epp.policy import ProfilePolicy
from lorapick.core.picking.pairing import PAIRS
from lorapick.core.picking.pick import NOBODY, Choice
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.query import NOTHING_CACHED, Costs, Query, prepare
from lorapick.core.picking.verdicts import NOTHING_HEARD, Heard
from lorapick.core.state import FleetState, Flight
from lorapick.model.disaggregation import SplitCosts
from lorapick.model.effects import Effect, Reject
from lorapick.model.picks import Pick
from lorapick.model.reasons import Reason, status_of
from lorapick.model.requests import Outcome
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds

TIERS = tuple(Tier)
"""By code; a call of the enum costs thirty times as much."""
PREFILL: Seconds = 1e-4
"""Seconds per prompt token that is not cached, until that is learnt too: an 8B model on an H100 takes a third of it, a
70B model three times as much."""
RETRY_AFTER = 1.0
"""Seconds that a client should wait before it tries a refused request again."""


class Case:
    """One decision while it is taken."""

    __slots__ = ("cause", "degraded", "draw", "flight", "now", "policy", "query", "state")

    def __init__(self, state: FleetState, flight: Flight, *, now: Seconds, cause: int) -> None:
        self.state = state
        self.flight = flight
        self.now = now
        self.cause = cause
        self.draw: Ratio = draw_for(state.seed, flight.request.id)
        self.query: Query = _query(state, flight)
        self.policy: Policy = PAIRS if self.query.legs is not None else state.policy
        self.degraded = False


def _query(state: FleetState, flight: Flight) -> Query:
    request = flight.request
    session_row = -1
    if request.session is not None:
        pod = state.sessions.get((request.model, request.session))
        session_row = state.columns.row_of.get(pod, -1) if pod is not None else -1
    if request.session_pod is not None:
        session_row = state.columns.row_of.get(request.session_pod, session_row)
    kv = state.prefixes.match(flight.blocks) if flight.blocks else NOTHING_CACHED
    query = prepare(request, flight.adapter, columns=state.columns, kv=kv, session_row=session_row)
    query.seed = state.seed
    if flight.adapter is not None and state.policy.coalesces:
        _leave_out(state, query, name=flight.adapter.name)
    if state.placement.leaving:
        _spare_leaving(state, query)
    if state.placement.commands.under_way:
        _leave_to_unload(state, query)
    if state.reads_prices:
        query.costs = _costs(state, flight)
    if state.splits and splitting.joint(state):
        query.legs = splitting.find_legs(state, query, request=request)
    if isinstance(state.policy, ProfilePolicy):
        query.facts = facts.collect(state, flight, policy=state.policy)
        query.ignore_full = not state.policy.waits
    if state.policy.counts_in_flight and query.adapter is not None:
        query.in_flight = state.residency.in_flight(query.adapter)
    return query


def _leave_out(state: FleetState, query: Query, *, name: AdapterName) -> None:
    """Rows that this adapter in particular may not use, or not for a load."""
    now, columns = state.now, state.columns
    masked = [(row, CODE[Reason.SLOTS_FULL]) for row in state.turns.closed(name)] if len(state.turns) else []
    masked += [(row, CODE[Reason.CIRCUIT_OPEN]) for row in state.quarantine.rows(name, now=now)]
    if state.unloads.under_way:
        masked += [(row, CODE[Reason.PRESSURE_HARD]) for row in state.unloads.rows(name, now=now)]
    if state.quarantine.closed(name, now=now):
        masked += _loads(columns, name, why=Reason.CIRCUIT_OPEN)
    if state.probation.holds(name, now=now) and state.probation.full(state.prices.slots, now=now):
        masked += _loads(columns, name, why=Reason.PROBATION)
    for row, code in masked:
        if query.mask is None:
            query.mask = bytearray(columns.rows)
        if row < columns.rows and not query.mask[row]:
            query.mask[row] = code


def _spare_leaving(state: FleetState, query: Query) -> None:
    """Pods that leave serve only what no other pod has."""
    for row in state.placement.leaving:
        if query.adapter is None or not has_alone(state.columns, row, name=query.adapter):
            if query.mask is None:
                query.mask = bytearray(state.columns.rows)
            query.mask[row] = query.mask[row] or CODE[Reason.DRAINING]


def _leave_to_unload(state: FleetState, query: Query) -> None:
    """A pod that is told to forget an adapter would answer 404 by the time that the request is there."""
    for row in state.placement.commands.unloading(query.adapter) if query.adapter is not None else ():
        if query.mask is None:
            query.mask = bytearray(state.columns.rows)
        query.mask[row] = query.mask[row] or CODE[Reason.ADAPTER_UNREGISTERED]


def has_alone(columns: PodColumns, row: int, *, name: AdapterName) -> bool:
    """Whether a pod has an adapter in a slot or loads it, and no other one that takes its part has it in a slot.

    Of a pod that only prefills that is one that may prefill, of others one that may decode.
    """
    codes = columns.adapter_row(name)
    unfit = columns.decode_only if columns.prefill_only[row] else columns.prefill_only
    return codes[row] & TIER_BITS >= Tier.LOADING and not any(
        other != row and not unfit[other] and codes[other] & TIER_BITS > Tier.LOADING and not columns.gate[other]
        for other, _ in columns.live()
    )


def _loads(columns: PodColumns, name: AdapterName, *, why: Reason) -> list[tuple[int, int]]:
    """Rows on which the adapter would have to be loaded, each with a veto."""
    codes = columns.adapter_row(name)
    return [(row, CODE[why]) for row, _ in columns.live() if codes[row] & TIER_BITS < Tier.LOADING]


def _costs(state: FleetState, flight: Flight) -> Costs:
    prices, residency, name = state.prices, state.residency, flight.adapter_name
    remaining: dict[int, Seconds] = {}
    if name is not None:
        for row in residency.loading_rows(name):
            ends = residency.loading_until(row, name)
            remaining[row] = max(0.0, ends - state.now) if ends is not None else 0.0
    return Costs(
        base=prices.service.base,
        each=prices.service.each,
        prefill=PREFILL * flight.request.prompt_tokens if flight.request.prompt_tokens is not None else 0.0,
        from_cpu=prices.loads.cpu,
        from_disk=prices.loads.disk,
        remaining=remaining,
    )


# -- as a value


def pick_value(case: Case, choice: Choice, *, reason: Reason | None = None, follows: PodName | None = None) -> Pick:
    """The decision as a value: what people and drivers get."""
    query, columns, row = case.query, case.state.columns, choice.row
    codes, targets, won = query.codes, columns.targets, row >= 0
    return Pick(
        request_id=query.request_id,
        adapter=query.adapter,
        pod=targets[row].pod if won else None,
        score=choice.score if won else None,
        tier=TIERS[codes[row] & TIER_BITS] if won and codes is not None else None,
        fallbacks=tuple([targets[other].pod for other in choice.fallbacks]),
        reason=reason,
        follows=follows,
        policy=case.policy.name,
        version=columns.version,
        degraded=case.degraded,
    )


def with_leg(case: Case, made: Pick, *, row: int, costs: SplitCosts | None) -> Pick:
    """The decision, with who prefills (-1: the pod that decodes), whom to fall back to, and what was compared."""
    codes, targets = case.query.codes, case.state.columns.targets
    return replace(
        made,
        fallbacks=_with_prefiller(case, made.fallbacks, row=row) if row >= 0 else made.fallbacks,
        prefill=targets[row].pod if row >= 0 else None,
        prefill_tier=TIERS[codes[row] & TIER_BITS] if row >= 0 and codes is not None else None,
        pair=costs,
    )


def _with_prefiller(case: Case, pods: tuple[PodName, ...], *, row: int) -> tuple[PodName, ...]:
    """Fallbacks that have the adapter in memory, the pod that prefills, which has it by then and the KV, and others."""
    codes, columns = case.query.codes, case.state.columns
    name = columns.targets[row].pod
    if codes is None:
        return pods if name in pods else (*pods, name)
    has = [pod for pod in pods if codes[columns.row_of[pod]] & TIER_BITS >= Tier.CPU]
    prefills = [] if name in has else [name]
    return (*has, *prefills, *(pod for pod in pods if pod not in has and pod != name))


def journal(
    case: Case,
    made: Pick,
    *,
    outcome: str,
    told: str | None = None,
    until: Seconds | None = None,
    because: Reason | None = None,
) -> None:
    """Keep a copy of what the decision read. It is the last to read the query, which then reads the copy.

    Who is `held` will be decided for good at `until`, and waits `because` of a pod that may soon have room; who is
    rejected was `told` something.
    """
    state, query = case.state, case.query
    if not state.journal.on or not Journal.wants(state.columns, case.draw, rejected=outcome == "rejected"):
        return
    side = splitting.side(state, query, request=case.flight.request)
    reads = case.policy.reads if side is None else (*case.policy.reads, "load_price")
    view = FrozenView(state.columns, query.adapter, reads=reads)
    if query.codes is not None:
        query.codes = view.codes
    flight, now = case.flight, case.now
    waited = now - flight.waits_since if flight.waits_since is not None else None
    heard = _heard(state, query.adapter) if query.adapter is not None else NOTHING_HEARD
    model, waits = flight.request.model, waited or None
    state.journal.record(
        Decision(now, model, made, outcome, query, view, case.policy, told, waits, until, because, heard, side=side)
    )


def _heard(state: FleetState, name: AdapterName) -> list[Heard]:
    """When and how pods last spoke of an adapter: cells go on changing after the decision."""
    return [
        (home.row, cell.since, cell.evidence, cell.evidence_kind)
        for home in state.residency.homes()
        if (cell := home.cells.get(name)) is not None
    ]


def reject(case: Case, reason: Reason, *, message: str) -> Effect:
    """Answer the client ourselves; the request is over."""
    state, request_id = case.state, case.flight.request.id
    made = pick_value(case, NOBODY, reason=reason)
    journal(case, made, outcome="rejected", told=message)
    state.stop_waiting(request_id)
    del state.flights[request_id]
    state.tally.outcomes[Outcome.REJECTED] += 1
    status = status_of(reason)
    if case.flight.trial is not None:
        state.arms.refused(case.flight.trial, status)
    state.signals.outcomes.refused(status, now=case.now)
    retry = RETRY_AFTER if status in (429, 503) else None
    return Reject(
        cause=case.cause,
        request_id=request_id,
        status=status,
        reason=reason,
        message=message,
        retry_after=retry,
        pick=made,
    )
