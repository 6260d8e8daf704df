"""Placement by load: how many copies each adapter should have, where, and which moves pay [R3.9].

In: the fleet's state; a solver's answer. Out: a `Solve` every so often, and the targets of its last answer. The solver
runs elsewhere and its answer comes back as an event; until then the one before holds. Copies that are there and wanted
are targets too: nothing else that placement wants throws them out.

A fleet of two sides has copies on each, by what a request takes there: on the side that decodes the time until its
answer ends, from its prefill's end on where it is split; on the side that prefills the tokens of its prompt, for those
long enough. Budgets are for both sides together.
Not here: the solver (see `core.placement.solving`), the number of copies (see `core.placement.replicas`).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import TIER_BITS
from lorapick.core.placement import sides
from lorapick.core.placement.plans import Action, Move, by_side
from lorapick.core.placement.rebalance import rebalance
from lorapick.core.placement.replicas import PREFILL_RULES, Replicas
from lorapick.core.placement.state import Placement
from lorapick.core.placement.targets import Target
from lorapick.core.state import FleetState
from lorapick.model.effects import Effect, Note, Solve
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom, Side, Why
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds

MOVE_LASTS: Seconds = 60.0
"""A move that could not be made for so long is given up."""


def on(state: FleetState) -> bool:
    """Whether adapters are placed by load at all."""
    return state.settings.placement.replicas == "auto"


def ask(state: FleetState, *, now: Seconds, cause: int) -> list[Effect]:
    """Have the solver look again, when it is time."""
    placement = state.placement
    if not on(state) or now < placement.solve_at or not state.loads:
        return []
    placement.solve_at = now + state.settings.placement.solve_every
    placement.asked_version += 1
    found = problem(state, now=now)
    if not found.adapters:
        placement.plan, placement.moving = {}, {}  # nobody asks for anything any more
        return []
    effects: list[Effect] = _rebalance(state, found, now=now, cause=cause)
    return [*effects, Solve(cause=cause, problem=found)]


def targets(state: FleetState, *, now: Seconds) -> list[Target]:
    """What the last plan and the moves that pay want."""
    if not on(state):
        return []
    placement, row_of = state.placement, state.columns.row_of
    found = [
        Target(row_of[pod], name, Why.DEMAND) for name, pods in placement.plan.items() for pod in pods if pod in row_of
    ]
    placement.moving = {pair: until for pair, until in placement.moving.items() if now < until}
    return [*found, *(Target(row, name, Why.REBALANCE) for row, name in placement.moving)]


def problem(state: FleetState, *, now: Seconds, afresh: bool = False) -> PlacementProblem:
    """The fleet as a solver sees it: pods without the slots of pins, adapters that are asked for, busiest first.

    With `afresh` nothing is remembered and nothing of what was decided before counts: for who only wants to see it.
    That works while nobody is placed by load, too; demand is then that of the last half minute.
    """
    state.placement.leaders = state.placement.groups.leaders()
    rates = _rates(state, now=now)
    pods: list[PodRoom] = []
    wanted: list[PlacedAdapter] = []
    for side in sides.there(state):
        part = _Part(side, rows=[row for row in sides.rows_of(state, side) if not _away(state, row)])
        pods += [_room(state, row, side=side) for row in part.rows]
        replicas = _afresh(side) if afresh else _remembered(state.placement, side)
        adapters = [_placed(state, name, rate=rate, part=part, replicas=replicas, now=now) for name, rate in rates]
        wanted += [each for each in adapters if each.replicas > 0]
    wanted.sort(key=lambda each: (-each.rate, each.adapter))
    version = state.placement.asked_version
    return PlacementProblem(version=version, pods=tuple(pods), adapters=tuple(wanted))


class _Part(NamedTuple):
    """Pods of one side that adapters may be placed on."""

    side: Side
    rows: list[int]


def _remembered(placement: Placement, side: Side) -> Replicas:
    return placement.replicas if side is Side.DECODE else placement.prefill_replicas


def _afresh(side: Side) -> Replicas:
    return Replicas() if side is Side.DECODE else Replicas(PREFILL_RULES)


def _rates(state: FleetState, *, now: Seconds) -> list[tuple[AdapterName, float]]:
    burstiness = state.placement.burstiness
    found = [(name, burstiness.rate(name, now)) for name in burstiness.names()]
    return found or state.prices.demand.rates(now=now)


def _away(state: FleetState, row: int) -> bool:
    load, keeps = state.loads[row], state.placement.keeps.get(row)
    reserved = keeps is not None and keeps.reserved
    return load.draining or load.circuit_open or reserved


def _room(state: FleetState, row: int, *, side: Side) -> PodRoom:
    pod, keeps = state.columns.pods[row], state.placement.keeps.get(row)
    assert pod is not None
    slots = state.residency.home(row).shadow.gpu_slots - (len(keeps.pinned) if keeps is not None else 0)
    return PodRoom(
        pod=pod.name,
        slots=max(0, slots),
        base_model=pod.base_model,
        max_rank=int(state.columns.max_rank[row]),
        zone=pod.zone,
        load=state.columns.load[row],
        side=side,
    )


def _placed(
    state: FleetState, name: AdapterName, *, rate: float, part: _Part, replicas: Replicas, now: Seconds
) -> PlacedAdapter:
    placement, prices, adapter = state.placement, state.prices, state.adapters.get(name)
    rows = part.rows
    pinned = [
        row for row in placement.pinned.rows.get(name, ()) if row in state.loads and sides.of(state, row) is part.side
    ]
    share, service = _service(state, name, part=part)
    count = replicas.want(
        name,
        rate=rate * share,
        service=service,
        burst=placement.burstiness.burst(name, now),
        pods=len(rows),
        now=now,
    )
    if placement.is_deprioritised(name) or name in placement.problems or name in placement.retiring:
        count = 0
    tiers = np.frombuffer(state.columns.adapter_row(name), dtype=np.uint8)[: state.columns.rows] & TIER_BITS
    may = dict.fromkeys(row for row in rows if row not in pinned)
    base = adapter.base_model if adapter is not None else None
    return PlacedAdapter(
        adapter=name,
        replicas=max(0, min(count - len(pinned), len(may))),
        base_model=base if base is not None else state.settings.base_model,
        rank=adapter.rank if adapter is not None else None,
        rate=rate * share,
        load_seconds=prices.loads.disk,
        warm_seconds=prices.loads.cpu,
        now_on=_pods(state, np.flatnonzero(tiers >= Tier.LOADING), may=may),
        warm_on=_pods(state, np.flatnonzero(tiers == Tier.CPU), may=may),
        follows=placement.leaders.get(name),
        side=part.side,
    )


def _service(state: FleetState, name: AdapterName, *, part: _Part) -> tuple[Ratio, Seconds]:
    """Share of an adapter's requests that a side has to do with, and what one of them takes there."""
    if part.side is Side.DECODE:
        mean = sum(state.columns.load[row] for row in part.rows) / len(part.rows) if part.rows else 0.0
        return 1.0, state.prices.service.expected(mean)
    prompt = state.placement.prompts.mean(name)
    return (0.0, 0.0) if prompt is None else (prompt.share, prompt.tokens * state.legs.per_token)


def _pods(state: FleetState, rows: NDArray[np.intp], *, may: Mapping[int, None]) -> tuple[PodName, ...]:
    return tuple(state.columns.targets[row].pod for row in rows.tolist() if row in may)


def _per_pod(state: FleetState, found: PlacementProblem) -> dict[tuple[AdapterName, PodName], float]:
    """Whose the load of each pod is, by the requests that it has now: Little's law, the service being alike."""
    rates: dict[tuple[AdapterName, PodName], float] = {}
    for adapter in found.adapters:
        there = {pod: _in_flight(state, pod, name=adapter.adapter) for pod in adapter.now_on}
        total = sum(there.values())
        each = adapter.rate / total if total else 0.0
        rates |= {(adapter.adapter, pod): each * count for pod, count in there.items()}
    return rates


def _in_flight(state: FleetState, pod: PodName, *, name: AdapterName) -> int:
    cell = state.residency.home(state.columns.row_of[pod]).cells.get(name)
    return cell.in_flight if cell is not None else 0


def _rebalance(state: FleetState, found: PlacementProblem, *, now: Seconds, cause: int) -> list[Effect]:
    """Moves that pay, within what is left of the churn budget; the guard has its say as with any other."""
    placement, row_of = state.placement, state.columns.row_of
    budget = int(state.settings.placement.moves_per_minute - placement.commands.moves_in_last_minute(now))
    effects: list[Effect] = []
    moves: list[Move] = []
    for part in by_side(found):
        moves += rebalance(part, rates=_per_pod(state, part), budget=max(0, budget - len(moves)))
    for move in moves:
        if move.action is not Action.LOAD:
            continue
        if move.adapter in placement.plan:
            placement.plan[move.adapter] = tuple(pod for pod in placement.plan[move.adapter] if pod != move.source)
        placement.moving[row_of[move.pod], move.adapter] = now + MOVE_LASTS
        facts: dict[str, str | float] = {"adapter": move.adapter, "to": move.pod, "why": move.why}
        effects.append(Note(cause=cause, kind="rebalance", facts=facts))
    return effects


def take(placement: Placement, plan: dict[AdapterName, tuple[PodName, ...]], *, version: int, now: Seconds) -> bool:
    """A solver's answer; whether it is newer than what there is."""
    if version <= placement.plan_version or version > placement.asked_version:
        return False
    placement.plan, placement.plan_version = plan, version
    placement.hurry(now)
    return True
