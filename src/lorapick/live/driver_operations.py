"""Everything that operators may do to the picker of a driver: `live.operations.Operations`, over the core.

In: names and bodies. Out: events through the driver's one door with what came of them; views; plans that nobody
carries out. Not here: HTTP (see `live.admin_changes`), changes (`live.changes`), views (`live.placement_views`).
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from lorapick.core.placement import by_load
from lorapick.core.placement.plans import Action, PlacementPlan
from lorapick.live.changes.loads import Loads
from lorapick.live.changes.mode import Modes
from lorapick.live.changes.naming import Naming
from lorapick.live.changes.submitting import Submitting
from lorapick.live.changes.wishes import Wishes
from lorapick.live.driver import Driver
from lorapick.live.insight import Insight, insight
from lorapick.live.operations import OperationError
from lorapick.live.placement_views import PlacementViews
from lorapick.live.solver import SolverProcess
from lorapick.model.adapters import Adapter, Alias, PinSpec
from lorapick.model.arms import ArmsReport, Mode
from lorapick.model.placement import PlacementProblem
from lorapick.model.units import AdapterName, PodName
from lorapick.wire.admin_answers import AliasesAnswer, Done, GroupsAnswer, Intent, PlacementAnswer, PlanAnswer
from lorapick.wire.admin_bodies import EventBody, LoadBody, MoveBody, PlanBody, PreloadBody
from lorapick.wire.api import ApiReason


class DriverOperations:
    """Implements `live.operations.Operations`; used on the driver's event loop."""

    def __init__(self, driver: Driver) -> None:
        """Change and show what `driver` drives."""
        door = Submitting(driver)
        self._driver = driver
        self._loads = Loads(door)
        self._wishes = Wishes(door)
        self._naming = Naming(door)
        self._modes = Modes(door)
        self._views = PlacementViews(driver)
        self._planning = False

    # -- views

    def placement(self) -> PlacementAnswer:
        """See `Operations`."""
        return self._views.placement()

    def groups(self) -> GroupsAnswer:
        """See `Operations`."""
        return self._views.groups()

    def aliases(self) -> AliasesAnswer:
        """See `Operations`."""
        return self._naming.aliases()

    def intents(self) -> Mapping[AdapterName, Intent]:
        """See `Operations`."""
        return self._views.intents()

    def insight(self) -> Insight:
        """See `Operations`."""
        return insight(self._driver)

    def report(self) -> ArmsReport:
        """See `Operations`."""
        return self._modes.report()

    # -- changes

    def set_mode(self, mode: Mode) -> Done:
        """See `Operations`."""
        return self._modes.set(mode)

    def load(self, name: AdapterName, body: LoadBody) -> Done:
        """See `Operations`."""
        return self._loads.load(name, body)

    def preload(self, name: AdapterName, body: PreloadBody) -> Done:
        """See `Operations`."""
        return self._loads.preload(name, body)

    def unload(self, name: AdapterName, pods: Sequence[PodName]) -> Done:
        """See `Operations`."""
        return self._loads.unload(name, pods)

    def move(self, name: AdapterName, body: MoveBody) -> Done:
        """See `Operations`."""
        return self._loads.move(name, body)

    def pin(self, name: AdapterName, pin: PinSpec) -> Done:
        """See `Operations`."""
        return self._wishes.pin(name, pin)

    def unpin(self, name: AdapterName) -> Done:
        """See `Operations`."""
        return self._wishes.unpin(name)

    def fire(self, body: EventBody) -> Done:
        """See `Operations`."""
        return self._wishes.fire(body)

    def set_alias(self, alias: Alias) -> Done:
        """See `Operations`."""
        return self._naming.set_alias(alias)

    def clear_alias(self, name: str) -> Done:
        """See `Operations`."""
        return self._naming.clear_alias(name)

    def declare(self, adapter: Adapter) -> Done:
        """See `Operations`."""
        return self._naming.declare(adapter)

    def retire(self, name: AdapterName) -> Done:
        """See `Operations`."""
        return self._naming.retire(name)

    # -- plans

    async def plan(self, body: PlanBody) -> PlanAnswer:
        """What a placement by load would do now; one at a time, in a process of its own, so that no pick waits."""
        if self._planning:
            detail = "another placement is being worked out for somebody; ask again in a second"
            raise OperationError(503, ApiReason.PLAN_BUSY, detail=detail)
        self._planning = True
        try:
            state, now = self._driver.fleet.state, self._driver.now()
            problem = by_load.problem(state, now=now, afresh=True)
            plan = await _solved(problem, solver=body.solver or state.settings.placement.solver)
        finally:
            self._planning = False
        return _answer(problem, plan)


async def _solved(problem: PlacementProblem, *, solver: str) -> PlacementPlan:
    """By a solver of this plan's own: the controller's would drop one of two problems."""
    answer: asyncio.Future[PlacementPlan] = asyncio.get_running_loop().create_future()
    process = SolverProcess(lambda plan: None if answer.done() else answer.set_result(plan), solver=solver)
    try:
        process.submit(problem)
        return await answer
    finally:
        await process.close()


def _answer(problem: PlacementProblem, plan: PlacementPlan) -> PlanAnswer:
    counts = Counter(move.action for move in plan.moves)
    return PlanAnswer(
        solver=plan.solver,
        pods=len(problem.pods),
        adapters=len(problem.adapters),
        loads=counts[Action.LOAD],
        drops=counts[Action.DROP],
        keeps=counts[Action.KEEP],
        moves=plan.moves,
        short=plan.short,
        costs=plan.costs,
        cost_s=None if plan.costs is None else plan.costs.total,
    )
