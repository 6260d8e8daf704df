"""Prefill on another pod: who could do it, who does, and when it is over.

In: a query being prepared; a choice; what becomes of requests that are split. Out: legs of the query; legs in flight,
with reservations on the pods that decode. Not here: which pair is best (see `core.picking.pairing`).

A leg is a request's stay on the pod that prefills for it. Until it is over the engine of the pod that decodes knows
nothing of the request, and afterwards, while its KV is on its way or it waits for a seat in the batch, that engine has
not used its adapter: all that time the adapter has only our word against an eviction. See `Residency.reserve`, and
`Gates`, which lets no load begin that would throw it out.
"""

from lorapick.core import aftermath, standby
from lorapick.core.admission.leg_times import LegInFlight
from lorapick.core.columns import CODE
from lorapick.core.picking import prefillers
from lorapick.core.picking.legs import Leg, Legs
from lorapick.core.picking.pairing import split
from lorapick.core.picking.pick import pick
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.prefill_verdicts import DEARER, FEW_TOKENS, NOBODY, UNKNOWN_LENGTH, Side
from lorapick.core.picking.prefillers import Asked, as_leg, leg_of
from lorapick.core.picking.query import Query
from lorapick.core.placement import giving
from lorapick.core.placement.prompts import hashed_share, tokens_of, uncached
from lorapick.core.placement.targets import Target
from lorapick.core.residency.cells import EndedLoad
from lorapick.core.state import FleetState, Flight
from lorapick.model.disaggregation import Choice, Decide, SplitCosts
from lorapick.model.effects import Effect
from lorapick.model.picks import What
from lorapick.model.placement import Why
from lorapick.model.reasons import Reason
from lorapick.model.requests import Request
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, Ratio, Seconds, Tokens

UNKNOWN_TOKENS = 256
"""Taken for a prompt of unknown length that is prefilled elsewhere all the same (`decide: always`)."""
LOADING = Tier.LOADING


# -- who could


def find_legs(state: FleetState, query: Query, *, request: Request) -> Legs | None:
    """Pods that could prefill a request, best of each place; None: none could now, so that it is not split.

    Nobody waits for a pod to prefill: the pod that decodes can do it.
    """
    known = tokens_of(request)
    if known is None and state.settings.disaggregation.decide is not Decide.ALWAYS:
        return None
    asked = asked_of(state, query, tokens=UNKNOWN_TOKENS if known is None else known)
    return prefillers.find(query, state.columns, now=state.now, asked=asked)


def asked_of(state: FleetState, query: Query, *, tokens: Tokens) -> Asked:
    """What is to be prefilled, and how things are on the pods that could."""
    legs = state.legs
    return Asked(
        settings=state.settings.disaggregation,
        tokens=tokens,
        per_token=legs.per_token,
        queued=legs.queued,
        paused=legs.paused_rows(now=state.now),
        may_load=not _loading_already(state, query),
    )


def side(state: FleetState, query: Query, *, request: Request) -> Side | None:
    """The same, copied for an explanation; None: this fleet splits no requests."""
    if not state.splits:
        return None
    known = tokens_of(request)
    if known is None and state.settings.disaggregation.decide is not Decide.ALWAYS:
        return Side(None, joint(state))
    asked = asked_of(state, query, tokens=UNKNOWN_TOKENS if known is None else known)
    return Side(asked._replace(queued={**asked.queued}), joint(state))


def _loading_already(state: FleetState, query: Query) -> bool:
    """While the adapter is on its way to a pod that prefills, no other one begins to load it [R3.3]."""
    if query.adapter is None:
        return False
    decodes = state.columns.decode_only
    return any(not decodes[row] for row in state.residency.loading_rows(query.adapter))


def prefill_leg(state: FleetState, query: Query, *, row: int, tokens: Tokens) -> Leg:
    """One pod that could prefill: what is queued there, what the prompt has not cached there, and a load."""
    return leg_of(query, state.columns, row=row, asked=asked_of(state, query, tokens=tokens))


# -- who does


def choose(
    state: FleetState, query: Query, *, row: int, request: Request, policy: Policy, draw: Ratio
) -> tuple[int, SplitCosts | None]:
    """Row of the pod that prefills for a row that decodes, -1: that one itself; and what was compared."""
    if query.legs is None and not state.splits:
        return -1, None
    word, leg, costs = _chosen(state, query, row=row, request=request, policy=policy, draw=draw)
    state.tally.splits[word] += 1
    state.signals.handovers.decided(
        word if leg != -1 else _unsplit(state, query, row=row, request=request), now=state.now
    )
    return leg, costs


def _unsplit(state: FleetState, query: Query, *, row: int, request: Request) -> str:
    """Why a request is not split, in the words of explanations."""
    tokens, settings = tokens_of(request), state.settings.disaggregation
    if tokens is None and settings.decide is not Decide.ALWAYS:
        return UNKNOWN_LENGTH
    counts = settings.decide is Decide.TOKENS if joint(state) else settings.decide is not Decide.ALWAYS
    if counts and tokens is not None and query.uncached(row, tokens) < settings.uncached_tokens:
        return FEW_TOKENS
    return DEARER if query.legs is not None else NOBODY


def would_prefill(state: FleetState, query: Query, *, row: int, request: Request, policy: Policy, draw: Ratio) -> int:
    """The same row, for whoever only wants to know."""
    if query.legs is None and not state.splits:
        return -1
    return _chosen(state, query, row=row, request=request, policy=policy, draw=draw)[1]


def _chosen(
    state: FleetState, query: Query, *, row: int, request: Request, policy: Policy, draw: Ratio
) -> tuple[str, int, SplitCosts | None]:
    """What is counted of it, the row, and what was compared."""
    if query.legs is not None:
        found = split(query, query.legs, view=state.columns, row=row)
        leg = found.leg
        return ("split", leg.row, found.costs) if leg is not None else ("alone", -1, found.costs)
    tokens, settings = tokens_of(request), state.settings.disaggregation
    if joint(state):
        asked = tokens is not None or settings.decide is Decide.ALWAYS
        return ("nobody_prefills" if asked else "alone"), -1, None
    few = tokens is None or query.uncached(row, tokens) < settings.uncached_tokens
    if settings.decide is not Decide.ALWAYS and few:
        return "alone", -1, None
    leg_query = as_leg(query)
    leg_query.mask = _with_paused(state, leg_query.mask)
    leg_query.facts = query.facts._replace(peer=row)
    other = pick(leg_query, state.columns, now=state.now, draw=draw, policy=policy, fallbacks=0).row
    return ("split", other, None) if other not in (-1, row) else ("nobody_prefills", -1, None)


def _with_paused(state: FleetState, mask: bytearray | None) -> bytearray | None:
    paused = state.legs.paused_rows(now=state.now)
    if not paused:
        return mask
    found = bytearray(state.columns.rows) if mask is None else bytearray(mask)
    for row in paused:
        found[row] = found[row] or CODE[Reason.CIRCUIT_OPEN]
    return found


def joint(state: FleetState) -> bool:
    """Whether pairs are chosen by what both cost."""
    return state.policy.coalesces and state.settings.disaggregation.choice is Choice.JOINT


def begin(state: FleetState, flight: Flight, *, row: int, now: Seconds, cause: int) -> list[Effect]:
    """The request goes to `row` to be prefilled, and to its own pod afterwards: reserve its adapter's slot there."""
    name = flight.adapter_name
    tier, load = None, 0.0
    if name is not None:
        tier = state.residency.dispatched(row, name, now=now)
        load = _load_left(state, row, name=name, tier=tier)
        state.tally.legs_by_tier[tier.word] += 1
        if tier < LOADING:
            state.tally.loads += 1
            state.placement.load_began(row, now=now)
            state.prices.demand.load_began(now)
    cached = state.prefixes.match(flight.blocks).get(row, 0.0) if flight.blocks else 0.0
    known = tokens_of(flight.request)
    whole = UNKNOWN_TOKENS if known is None else known
    tokens = round(uncached(whole, cached=cached, hashed=hashed_share(flight.request)))
    leg = LegInFlight(row, tokens, now, state.legs.queued.get(row, 0), tier, load)
    flight.leg, flight.prefiller = leg, state.columns.targets[row].pod
    state.legs.begin(flight.request.id, leg)
    state.loads[row].dispatched(now)
    state.columns.leg_turn = row + 1
    state.signals.dispatched(flight.prefiller, now=now)
    state.signals.handovers.named(flight.prefiller, name, tokens=known or 0, now=now)
    if flight.blocks:
        state.prefixes.record(row, flight.blocks)
    state.refresh(row)
    return bring(state, flight, row=flight.row, now=now, cause=cause)


def _load_left(state: FleetState, row: int, *, name: AdapterName, tier: Tier) -> Seconds:
    """Until an adapter that was on `tier` is there, as the choice of the pod reckons."""
    if tier is LOADING:
        ends = state.residency.loading_until(row, name)
        return max(0.0, ends - state.now) if ends is not None else 0.0
    if tier < LOADING:
        return state.prices.loads.cpu if tier is Tier.CPU else state.prices.loads.disk
    return 0.0


def bring(state: FleetState, flight: Flight, *, row: int, now: Seconds, cause: int) -> list[Effect]:
    """Have a pod that will decode load the adapter during the prefill, or keep it if it would be the next to go."""
    name = flight.adapter_name
    if name is None or not joint(state):
        return []
    home = state.residency.home(row)
    endangered = home.endangered()
    if home.cells[name].tier >= LOADING or (endangered is not None and endangered not in home.absent):
        return _touch(state, row, name=endangered, now=now, cause=cause)
    return _touch(state, row, name=name, now=now, cause=cause)


def _touch(state: FleetState, row: int, *, name: AdapterName | None, now: Seconds, cause: int) -> list[Effect]:
    """Have a pod use an adapter for a request that will come, unless there is none to."""
    if name is None:
        return []
    effects = giving.touch(state, Target(row, name, Why.PAIR), now=now, cause=cause)
    state.gates.refresh(row)
    return effects


def bring_awaited(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Bring in who is awaited on a pod and not on its way, as soon as that may be; before, touch whom that endangers.

    Another touch was under way when it was reserved, or its own failed, or it was thrown out. Its engine would do that
    when its request comes, and ask nobody who goes.
    """
    effects: list[Effect] = []
    if not joint(state):
        return effects
    for row in [*state.residency.rows_absent]:
        home = state.residency.home(row)
        endangered = home.endangered()
        name = endangered or next(iter(home.absent))
        if state.gates.may_bring(row) if name in home.absent else home.has_idle():
            effects += _touch(state, row, name=name, now=now, cause=cause)
    return effects


# -- when it is over


def end(state: FleetState, flight: Flight, *, now: Seconds, ok: bool | None) -> list[EndedLoad]:
    """The leg is over, if there is one: well, badly, or (None) nobody knows. Return loads that have ended.

    From now on the pod that decodes has the request; its slot stays reserved until `seat`. Of a leg that was overdue
    this says whether its pod works.
    """
    leg, name, load = flight.leg, flight.adapter_name, None
    told, flight.late = leg if leg is not None else flight.late, None
    if told is not None and ok:
        state.legs.worked(told.row)
        state.legs.learn(told, now=now)
    elif told is not None and ok is False and told.row in state.loads:
        state.legs.failed(told.row, sent=told.sent, now=now)
    if leg is not None:
        load = _leave(state, flight, leg=leg, now=now, ok=ok)
    flight.ran_from = now if ok is not None else None
    standby.let_go(state, flight, now=now)
    if name is None or flight.row < 0:
        flight.reserved = False
    elif flight.reserved:
        flight.unseated = True
        state.legs.came(flight.request.id, now=now)
        if state.residency.home(flight.row).cells[name].tier < LOADING:
            # There is no slot to keep yet: its engine brings the adapter in.
            _uses(state, flight, began=state.residency.comes(flight.row, name, now=now))
    return [load] if load is not None else []


def seat(state: FleetState, flight: Flight, *, now: Seconds) -> None:
    """The engine of the pod that decodes uses the adapter for this request, which ends the reservation."""
    reserved, flight.reserved, flight.unseated = flight.reserved, False, False
    name = flight.adapter_name
    if not reserved or name is None or flight.row < 0:
        return
    _uses(state, flight, began=state.residency.claimed(flight.row, name, now=now))


def _uses(state: FleetState, flight: Flight, *, began: bool) -> None:
    """An engine uses an adapter for a request that was prefilled elsewhere; too late, if a load `began` by that."""
    if began:
        state.tally.loads += 1
        state.tally.late_loads += 1
        state.placement.load_began(flight.row, now=state.now)
    state.refresh(flight.row)


def unheard(state: FleetState, flight: Flight, *, what: What, now: Seconds, cause: int) -> list[Effect]:
    """Nobody says whether the leg is over, and it should be, or its pod left: that pod counts as rid of it.

    A pod that left the list may work on: it drains, or was given to another pool. Whether the pod that decodes has the
    request, nobody knows, so its slot stays reserved. A touch makes its adapter the last to go there, whether or not it
    runs.
    """
    leg, name = flight.leg, flight.adapter_name
    effects = aftermath.prefill_came(state, flight, what=what, pod=flight.prefiller, why=None, cause=cause)
    if leg is not None:
        flight.late = leg if leg.row in state.loads else None
        _leave(state, flight, leg=leg, now=now, ok=None)
    if name is None or flight.row < 0:
        return effects
    if state.residency.home(flight.row).cells[name].tier >= LOADING:
        effects += giving.touch(state, Target(flight.row, name, Why.PAIR), now=now, cause=cause)
    state.gates.refresh(flight.row)
    return effects


def drop(state: FleetState, flight: Flight, *, now: Seconds) -> None:
    """The request ended before its leg did, if it has one: the pod that prefilled is rid of it too."""
    standby.let_go(state, flight, now=now)
    flight.late = None
    if flight.leg is not None:
        _leave(state, flight, leg=flight.leg, now=now, ok=None)


def _leave(state: FleetState, flight: Flight, *, leg: LegInFlight, now: Seconds, ok: bool | None) -> EndedLoad | None:
    """The pod that prefilled is rid of a request; return the load that this shows to have ended."""
    row, name, load = leg.row, flight.adapter_name, None
    flight.leg = None
    state.legs.end(leg)
    if row not in state.loads:
        return None
    if name is not None:
        if ok:
            state.quarantine.worked(row, name)
            load = state.residency.ran(row, name, now=now)
        state.residency.ended(row, name, now=now, load_failed=ok is False)
    state.loads[row].ended(now)
    state.signals.left(state.columns.targets[row].pod, sent=leg.sent, now=now)
    state.refresh(row)
    return load


def keep(state: FleetState, row: int, *, now: Seconds, cause: int) -> list[Effect]:
    """Touch again what is reserved on a pod and would be the next to go, if the touch before it failed.

    Until one succeeds no load may begin there.
    """
    return _touch(state, row, name=state.residency.home(row).endangered(), now=now, cause=cause)


def pod_gone(state: FleetState, row: int) -> list[Flight]:
    """A pod that prefilled is gone: whose legs were there. What was overdue there says nothing of who comes next."""
    state.legs.gone(row)
    for flight in state.flights.values():
        if flight.late is not None and flight.late.row == row:
            flight.late = None
    return [flight for flight in state.flights.values() if flight.leg is not None and flight.leg.row == row]
