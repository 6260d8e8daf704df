"""Answers of a placement, as values, and what has to move for them.

In: a problem and which pods each adapter should be on. Out: a `PlacementPlan` with every load, drop and copy that
stays, each with its reason. Not here: who decides where (`solving`), who carries it out (`controller`, `guard`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom, Side
from lorapick.model.units import AdapterName, PodName

Placed = dict[AdapterName, tuple[PodName, ...]]
"""Pods of each adapter of a problem, by name; no pods: it goes without."""


class Action(StrEnum):
    """What happens to one adapter on one pod."""

    LOAD = "load"
    DROP = "drop"
    KEEP = "keep"


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one adapter on one pod, and why."""

    adapter: AdapterName
    pod: PodName
    action: Action
    why: str
    """For people."""
    source: PodName | None = None
    """Of a load: the pod whose copy it replaces, which may go when the load has ended well; None: one copy more."""


class PlanCosts(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan costs, part by part, in seconds of requests' time (see `costs`)."""

    load: float = 0.0
    """Loads, and the requests that they stop."""
    churn: float = 0.0
    """Copies that move."""
    rank: float = 0.0
    """Large ranks among small ones."""
    group: float = 0.0
    """Followers away from their leaders."""
    zone: float = 0.0
    """Copies of one adapter in one zone."""
    spread: float = 0.0
    """Busy adapters on one pod."""
    preference: float = 0.0
    """Places in the order by hash."""

    @property
    def total(self) -> float:
        """All parts."""
        return self.load + self.churn + self.rank + self.group + self.zone + self.spread + self.preference


class PlacementPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A solver's answer."""

    version: int
    """Of the problem."""
    solver: str
    """`flow` or `rendezvous`."""
    placed: Placed
    short: dict[AdapterName, int] = {}
    """Replicas that found no slot, of those who lack any."""
    moves: tuple[Move, ...] = ()
    costs: PlanCosts | None = None
    """None: nobody reckoned (`rendezvous`)."""

    @property
    def loads(self) -> int:
        """Loads that the plan needs."""
        return sum(move.action is Action.LOAD for move in self.moves)


def fits(adapter: PlacedAdapter, pod: PodRoom) -> bool:
    """Whether the pod can serve the adapter at all."""
    alike = adapter.base_model == pod.base_model and adapter.side is pod.side
    return alike and (adapter.rank is None or adapter.rank <= pod.max_rank)


def by_side(problem: PlacementProblem) -> tuple[PlacementProblem, ...]:
    """The parts of a problem that have nothing to do with one another; itself when it has one side."""
    sides = dict.fromkeys([*(pod.side for pod in problem.pods), *(each.side for each in problem.adapters)])
    if len(sides) < 2:
        return (problem,)
    return tuple(
        PlacementProblem(
            version=problem.version,
            pods=tuple(pod for pod in problem.pods if pod.side is side),
            adapters=tuple(each for each in problem.adapters if each.side is side),
        )
        for side in Side
        if side in sides
    )


def joined(plans: Sequence[PlacementPlan]) -> PlacementPlan:
    """One plan of those of a problem's parts, whose pods are different ones."""
    first, *others = plans
    placed, short, costs = {**first.placed}, Counter(first.short), first.costs
    for plan in others:
        for name, pods in plan.placed.items():
            placed[name] = (*placed.get(name, ()), *pods)
        short.update(plan.short)
        costs = _sum(costs, plan.costs)
    return PlacementPlan(
        version=first.version,
        solver=first.solver,
        placed=placed,
        short=dict(short),
        moves=tuple(move for plan in plans for move in plan.moves),
        costs=costs,
    )


def _sum(one: PlanCosts | None, other: PlanCosts | None) -> PlanCosts | None:
    if one is None or other is None:
        return None
    names = PlanCosts.__struct_fields__
    return PlanCosts(**{name: getattr(one, name) + getattr(other, name) for name in names})


def shortfalls(problem: PlacementProblem, placed: Placed) -> dict[AdapterName, int]:
    """Replicas that each adapter lacks, of those who lack any."""
    missing = ((each.adapter, each.replicas - len(placed[each.adapter])) for each in problem.adapters)
    return {adapter: count for adapter, count in missing if count > 0}


def moves(problem: PlacementProblem, placed: Placed) -> tuple[Move, ...]:
    """What has to happen for `placed`, adapter by adapter in the problem's order."""
    pods = {pod.pod: pod for pod in problem.pods}
    used = Counter(pod for each in placed.values() for pod in each)
    full = {name for name, pod in pods.items() if used[name] >= pod.slots}
    return tuple(
        move
        for adapter in problem.adapters
        for move in _moves_of(adapter, placed[adapter.adapter], pods=pods, full=full)
    )


def _moves_of(
    adapter: PlacedAdapter, placed: Sequence[PodName], *, pods: Mapping[PodName, PodRoom], full: set[PodName]
) -> list[Move]:
    held = [pod for pod in sorted(adapter.now_on) if pod in pods]
    stay = [pod for pod in placed if pod in held]
    leave = [pod for pod in held if pod not in placed]
    come = [pod for pod in placed if pod not in held]
    name = adapter.adapter
    found = [Move(adapter=name, pod=pod, action=Action.KEEP, why="has it") for pod in stay]
    reasons = [_why_moved(adapter, pair, stay=stay, pods=pods, full=full) for pair in zip(leave, come, strict=False)]
    for index, pod in enumerate(come):
        source = leave[index] if index < len(leave) else None
        why = _why_more(adapter, held, pods=pods) if source is None else f"from {source}: {reasons[index]}"
        found.append(Move(adapter=name, pod=pod, action=Action.LOAD, why=why, source=source))
    for index, pod in enumerate(leave):
        why = f"to {come[index]}: {reasons[index]}" if index < len(come) else _why_fewer(adapter, held)
        found.append(Move(adapter=name, pod=pod, action=Action.DROP, why=why))
    return found


def _why_more(adapter: PlacedAdapter, held: Sequence[PodName], *, pods: Mapping[PodName, PodRoom]) -> str:
    gone = [pod for pod in adapter.now_on if pod not in pods]
    return f"wants {adapter.replicas}, has {len(held)}" + (f"; {', '.join(gone)} is no choice now" if gone else "")


def _why_fewer(adapter: PlacedAdapter, held: Sequence[PodName]) -> str:
    if adapter.replicas < len(held):
        return f"wants {adapter.replicas}, has {len(held)}"
    return "its slot goes to one that matters more"


def _why_moved(
    adapter: PlacedAdapter,
    pair: tuple[PodName, PodName],
    *,
    stay: Sequence[PodName],
    pods: Mapping[PodName, PodRoom],
    full: set[PodName],
) -> str:
    """The likeliest reason, by what differs between the two pods."""
    here, there = (pods[pod] for pod in pair)
    zones = [pods[pod].zone for pod in stay]
    if not fits(adapter, here):
        return f"rank {adapter.rank} or base model {adapter.base_model} does not fit there"
    if here.zone != there.zone and zones.count(here.zone) > zones.count(there.zone):
        return f"other copies are in zone {here.zone}"
    if pair[0] in full:
        return "its slot goes to another"
    return "better placed by rank, group or load"
