"""What happens to a request: arrival, holding, dispatch, response, end.

In: request events and the fleet's state. Out: Dispatch, Hold and Reject effects. A request that arrived is
answered by exactly one Dispatch or Reject, at once or after one or more Holds.
Not here: which pod is best (see `core.picking`), what pods report (see `core.pods`).
"""

from difflib import get_close_matches
from typing import NamedTuple

from lorapick.core.columns import CODE, TIER_BITS
from lorapick.core.draw import draw_for
from lorapick.core.explain import Decision, Journal, frozen_query
from lorapick.core.picking.filters import QUEUE_FULL, veto
from lorapick.core.picking.pick import Choice, pick
from lorapick.core.picking.query import Query, prepare
from lorapick.core.picking.verdicts import judge, why_nobody
from lorapick.core.state import FleetState, Flight
from lorapick.model.adapters import Adapter
from lorapick.model.effects import Dispatch, Effect, Hold, Note, Reject
from lorapick.model.events import RequestArrived, RequestDispatched, RequestEnded, RequestRefused, ResponseStarted
from lorapick.model.picks import Pick
from lorapick.model.reasons import Reason, status_of
from lorapick.model.requests import Outcome, Request, Target
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import RequestId, Seconds

RETRY_AFTER = 1.0
"""Seconds that a client should wait before it tries a refused request again."""


class Unknown(NamedTuple):
    """Nobody serves this name."""

    name: str
    near: list[str]


# -- arrival


def on_arrived(state: FleetState, event: RequestArrived, now: Seconds) -> list[Effect]:
    """Resolve the name and decide."""
    request = event.request
    if request.id in state.flights:
        raise ValueError(f"request id {request.id!r} is in flight already; the driver must make ids unique")
    state.tally.arrivals += 1
    adapter = resolve(state, request)
    flight = Flight(request, adapter if isinstance(adapter, Adapter) else None, now)
    state.flights[request.id] = flight
    if isinstance(adapter, Unknown):
        return _reject_unknown(state, flight, adapter, cause=event.id)
    if adapter is not None:
        state.tally.by_adapter[adapter.name] += 1
    return decide(state, flight, now, cause=event.id)


def on_refused(state: FleetState, event: RequestRefused, now: Seconds) -> list[Effect]:
    """Count a request that a transport refused by itself, so that outcomes add up to arrivals."""
    del event, now
    state.tally.arrivals += 1
    state.tally.outcomes[Outcome.REJECTED] += 1
    return []


def resolve(state: FleetState, request: Request) -> Adapter | Unknown | None:
    """The adapter that a request's model names; None: a base model."""
    name = request.model
    if name in state.columns.base_models:
        return None
    alias = state.aliases.get(name)
    if alias is not None:
        name = _by_weight([(to.adapter, to.weight) for to in alias.to], draw_for(state.seed, request.id, "alias:"))
    adapter = state.adapters.get(name)
    if adapter is not None:
        return adapter
    if state.residency.known(name):
        adapter = state.adapters[name] = Adapter(name=name)
        return adapter
    names = [*state.adapters, *state.residency.names(), *state.columns.base_models, *state.aliases]
    return Unknown(name, get_close_matches(name, dict.fromkeys(names), n=3, cutoff=0.5))


def _by_weight(targets: list[tuple[str, int]], draw: float) -> str:
    total = sum(weight for _, weight in targets)
    at = draw * total
    for name, weight in targets:
        at -= weight
        if at < 0:
            return name
    return targets[-1][0]


# -- decision


def decide(state: FleetState, flight: Flight, now: Seconds, *, cause: int) -> list[Effect]:
    """Dispatch, hold or reject one request that no pod has."""
    request = flight.request
    if request.deadline is not None and now > request.deadline:
        return [_reject(state, flight, Reason.DEADLINE, "its deadline passed while it waited", cause=cause, now=now)]
    draw = draw_for(state.seed, request.id)
    query = _query(state, flight)
    choice = _choose(state, query, now, draw)
    follow = _follow(state, flight, query, choice, now)
    if follow is not None:
        row, room = follow
        if not room:
            return _hold(state, flight, query, row, now, cause=cause, draw=draw)
        if row != choice.row:
            rest = tuple(other for other in (choice.row, *choice.fallbacks) if other not in (row, -1))
            choice = Choice(row, state.policy.score(query, state.columns, row), rest)
    if choice.row < 0:
        return [_reject_nobody(state, flight, query, now, cause=cause)]
    return [_dispatch(state, flight, query, choice, now, cause=cause, draw=draw)]


def _query(state: FleetState, flight: Flight) -> Query:
    request = flight.request
    session_row = -1
    if request.session is not None:
        pod = state.sessions.get((request.model, request.session))
        session_row = state.columns.row_of.get(pod, -1) if pod is not None else -1
    return prepare(
        request, flight.adapter, state.columns, kv=state.prefixes.match(request.blocks), session_row=session_row
    )


def _choose(state: FleetState, query: Query, now: Seconds, draw: float) -> Choice:
    fallbacks = state.settings.picking.fallbacks
    choice = pick(query, state.columns, now=now, draw=draw, policy=state.policy, fallbacks=fallbacks)
    if choice.row < 0 and not query.ignore_stale:
        # Never worse than no picker: when every report is too old, old ones are better than a refusal.
        query.ignore_stale = True
        choice = pick(query, state.columns, now=now, draw=draw, policy=state.policy, fallbacks=fallbacks)
        query.ignore_stale = choice.row >= 0
    return choice


def _follow(state: FleetState, flight: Flight, query: Query, choice: Choice, now: Seconds) -> tuple[int, bool] | None:
    """Row whose load this request should follow, and whether that pod has room now; None: do not follow.

    Followers of one load stay together [R3.3]: a second load may begin only when the first has kept them
    waiting for longer than it would have taken.
    """
    name = flight.adapter_name
    if name is None or not state.policy.coalesces:
        return None
    codes = query.codes
    assert codes is not None
    if choice.row >= 0 and (codes[choice.row] & TIER_BITS) >= Tier.LOADING:
        return None
    if flight.follow_until is not None:
        if now >= flight.follow_until:
            return None
        rows = [row for row in range(state.columns.rows) if (codes[row] & TIER_BITS) >= Tier.LOADING]
    else:
        rows = state.residency.loading_rows(name)
    vetoes = [(veto(query, state.columns, row, now), row) for row in rows]
    open_rows = [row for code, row in vetoes if code == 0]
    if open_rows:
        return open_rows[0], True
    full = [row for code, row in vetoes if code == QUEUE_FULL]
    return (full[0], False) if full else None


def _hold(
    state: FleetState, flight: Flight, query: Query, row: int, now: Seconds, *, cause: int, draw: float
) -> list[Effect]:
    if flight.follow_until is None:
        if state.holds.full:
            text = f"{state.holds.limit} requests wait already (admission.max_queued)"
            return [_reject(state, flight, Reason.SHED, text, cause=cause, now=now, query=query)]
        ends = state.residency.loading_until(row, flight.adapter_name or "") or now
        patience = max(ends, now) + state.residency.load_time(Tier.DISK)
        bounds = [patience, now + state.settings.admission.max_wait]
        if flight.request.deadline is not None:
            bounds.append(flight.request.deadline)
        flight.follow_until = min(bounds)
    state.holds.add(flight.request.id, row, flight.follow_until)
    pod = state.columns.pods[row]
    assert pod is not None
    made = _pick_value(state, flight, query, Choice(-1, 0.0, ()), reason=Reason.HELD_FOR_LOAD, follows=pod.name)
    _journal(state, flight, query, made, "held", now, draw=draw)
    return [
        Hold(
            cause=cause, request_id=flight.request.id, until=flight.follow_until, reason=Reason.HELD_FOR_LOAD, pick=made
        )
    ]


def _dispatch(
    state: FleetState, flight: Flight, query: Query, choice: Choice, now: Seconds, *, cause: int, draw: float
) -> Effect:
    state.holds.remove(flight.request.id)
    made = _pick_value(state, flight, query, choice)
    _journal(state, flight, query, made, "dispatched", now, draw=draw)
    pod = state.columns.pods[choice.row]
    assert pod is not None
    assign(state, flight, choice.row, now)
    state.columns.turn = choice.row + 1
    request = flight.request
    if request.session is not None:
        state.remember_session(request.model, request.session, pod.name)
    name = flight.adapter_name
    return Dispatch(
        cause=cause,
        request_id=request.id,
        target=Target(pod=pod.name, address=pod.address),
        fallbacks=tuple(
            Target(pod=other.name, address=other.address)
            for other in (state.columns.pods[row] for row in choice.fallbacks)
            if other is not None
        ),
        pick=made,
        model=name if name is not None and name != request.model else None,
    )


def assign(state: FleetState, flight: Flight, row: int, now: Seconds) -> None:
    """Count a request in flight at a pod, from the moment it is sent there."""
    pod = state.columns.pods[row]
    assert pod is not None
    flight.row, flight.pod = row, pod.name
    tally = state.tally
    tally.dispatched += 1
    if flight.adapter is not None:
        flight.tier = state.residency.dispatched(row, flight.adapter.name, now)
        tally.picks_by_tier[flight.tier.word] += 1
        if flight.tier is Tier.LOADING:
            tally.coalesced += 1
        elif not flight.tier.on_gpu:
            tally.loads += 1
    else:
        tally.picks_by_tier["base"] += 1
    state.loads[row].dispatched(now)
    if flight.request.blocks:
        state.prefixes.record(row, flight.request.blocks)
    state.refresh(row)


def _pick_value(
    state: FleetState,
    flight: Flight,
    query: Query,
    choice: Choice,
    *,
    reason: Reason | None = None,
    follows: str | None = None,
) -> Pick:
    pods = state.columns.pods
    winner = pods[choice.row] if choice.row >= 0 else None
    codes = query.codes
    return Pick(
        request_id=flight.request.id,
        adapter=flight.adapter_name,
        pod=winner.name if winner is not None else None,
        score=choice.score if winner is not None else None,
        tier=Tier(codes[choice.row] & TIER_BITS) if codes is not None and winner is not None else None,
        fallbacks=tuple(pod.name for pod in (pods[row] for row in choice.fallbacks) if pod is not None),
        reason=reason,
        follows=follows,
        policy=state.policy.name,
        version=state.columns.version,
        degraded=query.ignore_stale,
    )


def _journal(
    state: FleetState, flight: Flight, query: Query, made: Pick, outcome: str, now: Seconds, *, draw: float
) -> None:
    columns = state.columns
    if not Journal.wants(columns, draw, rejected=outcome == "rejected"):
        return
    view = columns.frozen(made.adapter)
    sources: dict[str, Source] = {}
    if made.adapter is not None:
        sources = {pod.name: state.residency.source(row, made.adapter) for row, pod in columns.live()}
    state.journal.record(
        Decision(now, flight.request.model, made, outcome, frozen_query(query, view), view, state.policy, sources)
    )


# -- refusal


def _reject_unknown(state: FleetState, flight: Flight, unknown: Unknown, *, cause: int) -> list[Effect]:
    if state.residency.registries_unknown() and state.columns.row_of:
        text = f"no pod has said yet whether it serves {unknown.name!r}; try again"
        return [_leave(state, flight, Reason.NO_POD, text, cause=cause)]
    if not state.columns.row_of:
        return [_leave(state, flight, Reason.NO_POD, "no pod is known", cause=cause)]
    near = f" Did you mean {', '.join(unknown.near)}?" if unknown.near else ""
    text = f"The model `{unknown.name}` does not exist on any pod.{near}"
    return [_leave(state, flight, Reason.ADAPTER_UNKNOWN, text, cause=cause)]


def _reject_nobody(state: FleetState, flight: Flight, query: Query, now: Seconds, *, cause: int) -> Effect:
    judged = judge(query, state.columns, now=now, policy=state.policy)
    reason = why_nobody(judged)
    counts: dict[str, int] = {}
    for pod in judged:
        word = pod.reason.value if pod.reason is not None else "ok"
        counts[word] = counts.get(word, 0) + 1
    told = ", ".join(f"{count} {word}" for word, count in counts.items()) or "no pod is known"
    text = f"no pod can serve {flight.request.model!r} now: {told}"
    return _reject(state, flight, reason, text, cause=cause, now=now, query=query)


def _reject(
    state: FleetState,
    flight: Flight,
    reason: Reason,
    message: str,
    *,
    cause: int,
    now: Seconds,
    query: Query | None = None,
) -> Effect:
    query = query if query is not None else _query(state, flight)
    made = _pick_value(state, flight, query, Choice(-1, 0.0, ()), reason=reason)
    _journal(state, flight, query, made, "rejected", now, draw=0.0)
    return _leave(state, flight, reason, message, cause=cause, made=made)


def _leave(
    state: FleetState, flight: Flight, reason: Reason, message: str, *, cause: int, made: Pick | None = None
) -> Reject:
    request_id = flight.request.id
    state.holds.remove(request_id)
    del state.flights[request_id]
    state.tally.outcomes[Outcome.REJECTED] += 1
    status = status_of(reason)
    retry = RETRY_AFTER if status in (429, 503) else None
    return Reject(
        cause=cause, request_id=request_id, status=status, reason=reason, message=message, retry_after=retry, pick=made
    )


# -- after dispatch


def on_dispatched(state: FleetState, event: RequestDispatched, now: Seconds) -> list[Effect]:
    """Another pod served than picked: move the request there and keep off the pod that refused it."""
    flight = state.flights.get(event.request_id)
    row = state.columns.row_of.get(event.pod)
    if flight is None or row is None or flight.pod is None or flight.pod == event.pod:
        return []
    refused, refused_row = flight.pod, flight.row
    _take_off(state, flight, now, load_failed=True)
    if refused_row >= 0:
        load = state.loads[refused_row]
        load.circuit_open, load.detail = True, "a request could not connect"
        gate(state, refused_row)
    state.tally.fallbacks += 1
    state.tally.dispatched -= 1
    assign(state, flight, row, now)
    return [Note(cause=event.id, kind="fallback_served", facts={"picked": refused, "served": event.pod})]


def on_response_started(state: FleetState, event: ResponseStarted, now: Seconds) -> list[Effect]:
    """First response headers: a load that this request waited for has ended."""
    flight = state.flights.get(event.request_id)
    if flight is None or flight.row < 0:
        return []
    flight.started = True
    name = flight.adapter_name
    if name is None or event.status >= 400:
        return []
    ended = state.residency.started(flight.row, name, now)
    if ended is None:
        return []
    tier, seconds = ended
    return load_over(state, flight.row, name, tier, now, cause=event.id, seconds=seconds)


def load_over(
    state: FleetState, row: int, name: str, tier: Tier, now: Seconds, *, cause: int, seconds: Seconds | None
) -> list[Effect]:
    """A load ended: its waiters run, held followers may go."""
    home = state.residency.home(row)
    state.loads[row].load_ended(home.cells[name].in_flight)
    state.refresh(row)
    facts: dict[str, str | float] = {"pod": home.name, "adapter": name, "from": tier.word}
    if seconds is not None:
        facts["seconds"] = seconds
    return [Note(cause=cause, kind="load_ended", facts=facts), *release(state, row, now, cause=cause)]


def on_ended(state: FleetState, event: RequestEnded, now: Seconds) -> list[Effect]:
    """The request left; its place is free."""
    flight = state.flights.pop(event.request_id, None)
    if flight is None:
        return []
    state.holds.remove(event.request_id)
    state.tally.outcomes[event.outcome] += 1
    row = flight.row
    if row < 0:
        return []
    failed = event.outcome is Outcome.FAILED and not flight.started
    _take_off(state, flight, now, load_failed=failed or (event.status or 0) == 404)
    return release(state, row, now, cause=event.id)


def _take_off(state: FleetState, flight: Flight, now: Seconds, *, load_failed: bool) -> None:
    row = flight.row
    flight.row = -1
    if row < 0:
        return
    if flight.adapter is not None:
        state.residency.ended(row, flight.adapter.name, now, load_failed=load_failed)
    state.loads[row].ended(now)
    state.refresh(row)


def gate(state: FleetState, row: int) -> None:
    """Write the pod's own veto: draining, circuit, critical pressure, in this order."""
    load = state.loads[row]
    reason = (
        Reason.DRAINING
        if load.draining
        else Reason.CIRCUIT_OPEN
        if load.circuit_open
        else Reason.PRESSURE_CRITICAL
        if load.critical
        else None
    )
    state.columns.gate[row] = 0 if reason is None else CODE[reason]
    state.columns.version += 1


# -- held requests


def release(state: FleetState, row: int, now: Seconds, *, cause: int) -> list[Effect]:
    """Try again the requests held for a pod, oldest first, until one must stay."""
    if not state.holds.any_for(row):
        return []
    effects: list[Effect] = []
    for request_id in state.holds.waiting_for(row):
        answer = decide(state, state.flights[request_id], now, cause=cause)
        effects += [effect for effect in answer if not isinstance(effect, Hold)]
        if any(isinstance(effect, Hold) for effect in answer):
            break
    return effects


def release_due(state: FleetState, now: Seconds, *, cause: int) -> list[Effect]:
    """Decide for good about requests whose hold has run out."""
    due: list[RequestId] = state.holds.due(now)
    effects: list[Effect] = []
    for request_id in due:
        effects += decide(state, state.flights[request_id], now, cause=cause)
    return effects
