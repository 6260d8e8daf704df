"""What placement needs beside the driver: the weights' catalogue, commands to pods, a solver, kept demand, the time.

In: settings, a driver. Out: its commands, problems and demand are carried out and come back as events; so does the
time of day. Whatever fails here, requests are served.
Not here: any decision (see `core.placement`), any of the parts.
"""

import asyncio
import logging
from collections.abc import Awaitable
from pathlib import Path

from lorapick.core.placement.plans import PlacementPlan
from lorapick.live.catalogue import Catalogue
from lorapick.live.control import PodControl
from lorapick.live.control.counts import ControlCounts
from lorapick.live.demand import Demand
from lorapick.live.driver import Driver
from lorapick.live.history import HistoryStore
from lorapick.live.solver import SolverProcess
from lorapick.model.events import PlacementComputed
from lorapick.model.placement import PlacementProblem
from lorapick.model.pods import Pod
from lorapick.model.settings import Settings
from lorapick.model.units import PodName, Seconds

log = logging.getLogger(__name__)

TELL_TIME_EVERY: Seconds = 10.0
"""A clock that was set is noticed within so long, however many requests keep the controller's own ticks from coming."""


class Placing:
    """Placement's parts of one picker. Made on the event loop that `run` runs on."""

    def __init__(self, settings: Settings, driver: Driver, *, beside: Path) -> None:
        """Connect them with the driver; nothing is begun.

        Args:
            settings: the whole configuration.
            driver: whose `control`, `on_problem` and `on_demand` these are from now on.
            beside: folder that relative paths of the configuration start from.
        """
        self._driver = driver
        self._catalogue = Catalogue(
            settings, beside=beside, submit=driver.submit, adapters=lambda: driver.fleet.state.adapters
        )
        self._control = PodControl(
            submit=driver.submit,
            find=self._pod,
            sources=self._catalogue,
            allowed=self._catalogue.allow,
            on_missing=lambda pod: driver.on_missing(pod),
        )
        self._solver = SolverProcess(self._planned)
        history = settings.placement.history
        self._demand = None if history is None else Demand(HistoryStore(beside / history), driver)
        driver.control = self._control
        driver.wordings.path_of = self._catalogue.path
        driver.on_problem = self._solve
        driver.on_demand = self._demand.keep if self._demand is not None else None

    def counts(self) -> ControlCounts:
        """What came of all commands until now."""
        return self._control.counts()

    @property
    def solver_pid(self) -> int | None:
        """The solver's process; None: there is none, since it was not needed yet."""
        return self._solver.pid

    async def run(self) -> None:
        """Work until cancelled; then end what was begun, within seconds."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._control.run(), name="control")
                group.create_task(_alone(self._catalogue.run(), "the catalogue"), name="catalogue")
                group.create_task(self._tell_time(), name="time of day")
                if self._demand is not None:
                    group.create_task(_alone(self._demand.run(), "demand"), name="demand")
        finally:
            await self._end()

    async def _end(self) -> None:
        """The core may go on asking for a while, as long as streams end."""
        self._driver.on_problem = lambda _: None
        self._driver.on_demand = None
        await self._solver.close()
        if self._demand is not None:
            await self._demand.end()

    async def _tell_time(self) -> None:
        while True:
            await asyncio.sleep(TELL_TIME_EVERY)
            self._driver.tell_time()

    def _pod(self, name: PodName) -> Pod | None:
        columns = self._driver.fleet.state.columns
        row = columns.row_of.get(name)
        return columns.pods[row] if row is not None else None

    def _solve(self, problem: PlacementProblem) -> None:
        """The first problem starts the solver; settings may have changed since the last one."""
        self._solver.solver = self._driver.fleet.state.settings.placement.solver
        self._solver.submit(problem)

    def _planned(self, plan: PlacementPlan) -> None:
        log.debug("placement %d by %s: %d moves", plan.version, plan.solver, len(plan.moves))
        self._driver.submit(lambda t, i: PlacementComputed(t=t, id=i, plan=plan.placed, version=plan.version))


async def _alone(work: Awaitable[None], what: str) -> None:
    """A mistake of ours in a part that no request needs ends that part only."""
    try:
        await work
    except Exception:
        log.exception("%s ends; requests are served without it", what)
