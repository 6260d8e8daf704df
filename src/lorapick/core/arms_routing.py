"""Requests of the observed arm: routed as before, with what would have been decided kept beside.

In: a flight whose trial is of the observed arm; what the gateway says of who serves. Out: PassOn or Dispatch effects,
what would have been in the journal and the counts. Nobody here waits, is shed, or is refused for what pods hold; a
request is refused only when its route needs a pod named and there is none.
Not here: which arm a request is in (see `core.arms`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from lorapick.core.case import TIERS, Case, journal, pick_value
from lorapick.core.columns import TIER_BITS
from lorapick.core.deciding import assign, choose, foresee
from lorapick.core.facts import note_cold
from lorapick.core.naming import Unknown
from lorapick.core.picking.pick import NOBODY, Choice
from lorapick.core.picking.query import wishes
from lorapick.core.state import FleetState, Flight
from lorapick.core.waiting import reject_nobody
from lorapick.model.arms import GATEWAY, Arm
from lorapick.model.effects import Dispatch, Effect, PassOn
from lorapick.model.events import RequestEnded
from lorapick.model.picks import Came, Pick, What
from lorapick.model.reasons import Reason
from lorapick.model.requests import Outcome
from lorapick.model.tiers import Tier
from lorapick.model.units import PodName, Seconds


class Moment(NamedTuple):
    """When, and because of which event."""

    now: Seconds
    cause: int


def route(state: FleetState, flight: Flight, *, at: Moment, unknown: Unknown | None = None) -> list[Effect]:
    """Send an observed request as before; `unknown`: nobody is known to serve its name."""
    trial, arms = flight.trial, state.arms
    assert trial is not None
    case = Case(state, flight, now=at.now, cause=at.cause)
    if unknown is None:
        trial.would = foresee(case)
    else:
        case.query.base = None  # it is no base model either, and pods may say what they make of it
        trial.would = pick_value(case, NOBODY, reason=Reason.ADAPTER_UNKNOWN)
    arms.would_be(trial.would, adapter=flight.adapter is not None)
    if case.query.codes is not None:
        trial.codes = bytes(case.query.codes[: state.columns.rows])
    trial.pods = state.columns.members
    journal(case, trial.would, outcome="observed")
    if arms.policy is None:
        return _pass_on(state, flight, at=at)
    with _as_before(state):
        case = Case(state, flight, now=at.now, cause=at.cause)
        if unknown is not None:
            case.query.base = None
        choice = NOBODY if unknown is not None else choose(case, [])
        if choice.row < 0:
            choice = _anywhere(case)
        if choice.row < 0:
            return [reject_nobody(case)]
        made = pick_value(case, choice)
    return _send(case, choice, made=made)


def _pass_on(state: FleetState, flight: Flight, *, at: Moment) -> list[Effect]:
    trial, request, name = flight.trial, flight.request, flight.adapter_name
    assert trial is not None
    assert trial.would is not None
    if flight.waits_since is not None:
        state.stop_waiting(request.id)
    trial.passed = True
    model = name if name is not None and name != request.model else None
    return [PassOn(cause=at.cause, request_id=request.id, pick=trial.would, model=model)]


def _send(case: Case, choice: Choice, *, made: Pick) -> list[Effect]:
    state, flight, row = case.state, case.flight, choice.row
    trial, request, columns = flight.trial, flight.request, case.state.columns
    assert trial is not None
    if flight.waits_since is not None:
        state.stop_waiting(request.id)
    _place(state, flight, row=row, now=case.now)
    note_cold(state, case.query, rows=(row,))
    if state.queues.attained is not None:
        state.queues.attained.sent(request, now=case.now)
    state.arms.turn = row + 1
    name = flight.adapter_name
    dispatch = Dispatch(
        cause=case.cause,
        request_id=request.id,
        target=columns.targets[row],
        fallbacks=tuple([columns.targets[other] for other in choice.fallbacks]),
        pick=made,
        model=name if name is not None and name != request.model else None,
        would=trial.would,
    )
    flight.fallbacks = dispatch.fallbacks
    return [dispatch]


@contextmanager
def _as_before(state: FleetState) -> Iterator[None]:
    """Decide by the observed arm's policy, as if there were no other: with its own turn, and nothing kept for loads."""
    arms, columns, gates = state.arms, state.columns, state.gates
    assert arms.policy is not None
    policy, turn, on = state.policy, columns.turn, gates.on
    state.policy, columns.turn = arms.policy, arms.turn
    gates.switch(on=arms.policy.coalesces)
    try:
        yield
    finally:
        state.policy, columns.turn = policy, turn
        gates.switch(on=on)


def _anywhere(case: Case) -> Choice:
    """The policy's choice where what pods hold, and how long their queues are, counts for nothing."""
    query, request = case.query, case.flight.request
    query.codes, query.rank, query.ignore_full, query.ignore_stale = None, 0.0, True, True
    query.mask = wishes(request, case.state.columns) if request.subset is not None or request.selector else None
    return choose(case, [])


def _place(state: FleetState, flight: Flight, *, row: int, now: Seconds) -> None:
    """It is at a pod; which nobody here chose for what the pod holds."""
    trial = flight.trial
    assert trial is not None
    pod = state.columns.targets[row].pod
    trial.passed, trial.tier = False, _tier_then(flight, row=row, pod=pod)
    assign(state, flight, row=row, now=now)
    state.residency.home(row).excuse()
    if state.journal.on:
        word = trial.tier.word if trial.tier is not None else None
        news = Came(t=now, what=What.WENT, pod=pod, why=word)
        state.journal.came(flight.request.id, news, since=flight.arrived)


def _tier_then(flight: Flight, *, row: int, pod: PodName) -> Tier | None:
    """Tier of its adapter on a pod when it came; None for the base model, and where the pod was not known then."""
    trial = flight.trial
    assert trial is not None
    if row < len(trial.codes) and trial.pods[row] == pod:
        return TIERS[trial.codes[row] & TIER_BITS]
    return None if flight.adapter is None else Tier.DISK


# -- afterwards


def served_by(state: FleetState, flight: Flight, *, row: int, at: Moment) -> list[Effect]:
    """The gateway says where it has sent a request that it chose the pod for."""
    trial, target = flight.trial, state.columns.targets[row]
    assert trial is not None
    _place(state, flight, row=row, now=at.now)
    # Headers of an answer that is no stream come when it is done: how long a load of it took nobody knows.
    flight.ran_from = flight.arrived if flight.request.stream else None
    made = Pick(
        request_id=flight.request.id,
        adapter=flight.adapter_name,
        pod=target.pod,
        score=None,
        tier=trial.tier,
        policy=GATEWAY,
        version=state.columns.version,
    )
    return [
        Dispatch(
            cause=at.cause, request_id=flight.request.id, target=target, fallbacks=(), pick=made, would=trial.would
        )
    ]


def left(state: FleetState, flight: Flight, *, event: RequestEnded, now: Seconds) -> None:
    """A request of either arm left: count it."""
    trial = flight.trial
    assert trial is not None
    outcome, status = event.outcome, event.status
    state.arms.left(trial, outcome, status=status, seconds=now - flight.arrived)
    if flight.pod is None and not trial.passed:
        return  # it was never sent
    tier = trial.tier if trial.arm is Arm.OBSERVED else flight.tier
    loads = state.prices.loads
    took = 0.0 if tier is None or tier >= Tier.LOADING else loads.cpu if tier is Tier.CPU else loads.disk
    served = outcome is Outcome.SERVED and (status is None or status < 400)
    state.arms.placed(trial, tier, pod=flight.pod, took=took, served=served)


def change_arm(state: FleetState, flight: Flight, *, at: Moment) -> list[Effect]:
    """A request waits, and those like it no longer do: send it as before."""
    request, arms = flight.request, state.arms
    if arms.arm_of(request) is Arm.ENFORCED:
        return []
    if flight.trial is not None:
        arms.tallies[flight.trial.arm].arrivals -= 1
    flight.trial = arms.begin(request)
    return route(state, flight, at=at)
