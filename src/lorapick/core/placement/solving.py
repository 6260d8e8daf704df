"""Solve a placement: the one function that callers need.

In: a `PlacementProblem`. Out: a `PlacementPlan`. The same problem gives the same plan, in whatever order its pods come.
Not here: a process to run it in (`live.solver`), when to ask (`controller`).
"""

from lorapick.core.placement.plans import Placed, PlacementPlan, PlanCosts, moves, shortfalls
from lorapick.core.placement.rendezvous_plan import by_rendezvous
from lorapick.model.placement import PlacementProblem

FLOW = "flow"
RENDEZVOUS = "rendezvous"


def solve(problem: PlacementProblem, *, solver: str = FLOW) -> PlacementPlan:
    """The plan; never an error for want of slots: who goes without is in `short`."""
    del solver
    return planned(problem, by_rendezvous(problem), solver=RENDEZVOUS)


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
