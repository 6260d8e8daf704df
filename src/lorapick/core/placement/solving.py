"""Solve a placement: the one function that callers need.

In: a `PlacementProblem`. Out: a `PlacementPlan`. The same problem gives the same plan, in whatever order its pods come.

A flow is solved again when a first answer says more than was known before: where leaders will be whom others follow,
at most `PASSES` times; and with all pods as candidates for adapters that found no slot while there are free ones.

The two sides of a fleet have no pods in common and no cost of one depends on the other, so a problem that has both is
solved part by part, and the answers are put together. They come as one problem, so that there is one question and one
answer at a time, of one version.

Not here: a process to run it in (`live.solver`), when to ask (`controller`).
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from lorapick.core.placement.candidates import Leaders, candidates
from lorapick.core.placement.costs import pair_costs
from lorapick.core.placement.plans import Placed, PlacementPlan, PlanCosts, by_side, fits, joined, moves, shortfalls
from lorapick.core.placement.rank_groups import rank_classes
from lorapick.core.placement.rendezvous_plan import by_rendezvous
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom
from lorapick.model.units import AdapterName

FLOW = "flow"
RENDEZVOUS = "rendezvous"
PASSES = 3


class _Answer(NamedTuple):
    placed: Placed
    costs: PlanCosts


def solve(problem: PlacementProblem, *, solver: str = FLOW) -> PlacementPlan:
    """The plan; never an error for want of slots: who goes without is in `short`.

    Raises:
        NotSolved: HiGHS failed, which is no property of the problem; a plan by `rendezvous` always works.
        ImportError: HiGHS is not installed.
    """
    return joined([_solve(part, solver=solver) for part in by_side(problem)])


def _solve(problem: PlacementProblem, *, solver: str) -> PlacementPlan:
    if solver == RENDEZVOUS:
        return planned(problem, by_rendezvous(problem), solver=RENDEZVOUS)
    answer = _by_flow(problem.adapters, sorted(problem.pods, key=lambda pod: pod.pod))
    return planned(problem, answer.placed, solver=FLOW, costs=answer.costs)


def planned(problem: PlacementProblem, placed: Placed, *, solver: str, costs: PlanCosts | None = None) -> PlacementPlan:
    """A plan of where adapters should be, with what that takes."""
    return PlacementPlan(
        version=problem.version,
        solver=solver,
        placed=placed,
        short=shortfalls(problem, placed),
        moves=moves(problem, placed),
        costs=costs,
    )


def _by_flow(adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom]) -> _Answer:
    followed = {each.follows for each in adapters if each.follows is not None}
    leaders: Leaders = {each.adapter: each.now_on for each in adapters if each.adapter in followed}
    wide: Collection[AdapterName] = ()
    for _ in range(PASSES):
        answer = _once(adapters, pods, leaders=leaders, wide=wide)
        found = {name: answer.placed[name] for name in leaders}
        short = _short_of_candidates(adapters, pods, placed=answer.placed)
        if found == leaders and all(name in wide for name in short):
            break
        leaders, wide = found, [*wide, *short]
    return answer


def _once(
    adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom], *, leaders: Leaders, wide: Collection[AdapterName]
) -> _Answer:
    from lorapick.core.placement.flow import choose  # HiGHS is loaded when it is first needed

    pairs = candidates(adapters, pods, leaders=leaders, wide=wide)
    costs = pair_costs(adapters, pods, pairs=pairs, classes=rank_classes(adapters, pods))
    chosen = choose(adapters, pods, pairs=pairs, costs=costs.total)
    taken: list[list[str]] = [[] for _ in adapters]
    for adapter, pod in zip(pairs.adapter[chosen.pairs].tolist(), pairs.pod[chosen.pairs].tolist(), strict=True):
        taken[adapter].append(pods[pod].pod)
    placed = {each.adapter: tuple(sorted(rows)) for each, rows in zip(adapters, taken, strict=True)}
    load, churn, rank, group, place = (float(part[chosen.pairs].sum()) / 1e3 for part in costs)
    return _Answer(
        placed,
        PlanCosts(
            load=load,
            churn=churn,
            rank=rank,
            group=group,
            zone=chosen.zone / 1e3,
            spread=chosen.spread / 1e3,
            preference=place,
        ),
    )


def _short_of_candidates(
    adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom], *, placed: Placed
) -> list[AdapterName]:
    """Adapters that lack a copy, although some pod could serve one more that has no copy of it."""
    used = Counter(pod for each in placed.values() for pod in each)
    free = [pod for pod in pods if used[pod.pod] < pod.slots]
    return [
        each.adapter
        for each in adapters
        if len(placed[each.adapter]) < each.replicas
        and any(fits(each, pod) and pod.pod not in placed[each.adapter] for pod in free)
    ]
