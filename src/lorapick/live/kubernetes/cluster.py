"""A picker's cluster: what is watched becomes pods, priorities, aliases and adapters; what came of it becomes status.

In: settings, a driver, access to the API server. Out: events through the driver's door, statuses, metrics.
Not here: the parts (see the other files of this package), any decision.

The API server may be away at any time: the last known pods, priorities, aliases and adapters stay, requests are served,
and logs and metrics say so. Nothing is kept here over a restart: the API server has it all.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from lorapick.live.discovery import PodSet
from lorapick.live.driver import Driver
from lorapick.live.fencing import Fence
from lorapick.live.kubernetes.access import Access
from lorapick.live.kubernetes.client import Client
from lorapick.live.kubernetes.counts import KubernetesCounts
from lorapick.live.kubernetes.endpoints import EndpointList
from lorapick.live.kubernetes.families import KubernetesFamilies
from lorapick.live.kubernetes.following import Following
from lorapick.live.kubernetes.leader import Leader, own_identity
from lorapick.live.kubernetes.objects import Problems, Readings
from lorapick.live.kubernetes.statuses import Statuses, holders, truth
from lorapick.live.kubernetes.watching import Watching
from lorapick.live.kubernetes.wishes import Outcome, Refused, Wishes
from lorapick.model.pods import Engine
from lorapick.model.settings import KubernetesSettings, Objective, Settings
from lorapick.model.units import Seconds
from lorapick.wire.kubernetes.adapter import AdapterWish, read_adapter
from lorapick.wire.kubernetes.naming import Rewrite, aliases_of, priorities, read_objective, read_rewrite
from lorapick.wire.kubernetes.objects import age_order
from lorapick.wire.kubernetes.pods import Defaults
from lorapick.wire.kubernetes.pool import Pool, is_for
from lorapick.wire.kubernetes.status import AdapterTruth

log = logging.getLogger(__name__)

PASS_EVERY: Seconds = 1.0
"""Without news: pods that leave do so with time, and what was refused may have become possible."""
GATHER: Seconds = 0.02
"""News that come within so long are one pass."""
STATUS_EVERY: Seconds = 2.0


class Cluster:
    """Everything of one picker that needs the API server."""

    def __init__(
        self, settings: Settings, driver: Driver, *, access: Access, environment: Mapping[str, str] | None = None
    ) -> None:
        """Ask for nothing yet; from here on commands to pods are fenced.

        Args:
            settings: the whole configuration; `discovery.kubernetes` is set.
            driver: whose pods these are. Its control is in place already.
            access: the API server.
            environment: gives the replica its name; None: the process's own.
        """
        found = settings.discovery.kubernetes
        if found is None:
            raise ValueError("discovery.kubernetes is not set")
        self.counts = KubernetesCounts()
        self.client = Client(access)
        self.on_priorities: Callable[[dict[str, int]], None] = lambda _: None
        """Told the priorities of objectives when they change."""
        self._driver = driver
        self._declared = {each.name: each.priority for each in settings.objectives}
        self._dirty = asyncio.Event()
        self._following = Following(self.client, found, counts=self.counts, changed=self._dirty.set)
        identity = own_identity() if environment is None else own_identity(environment)
        self.leader = self._candidate(found, identity)
        self._statuses = Statuses(self.client, self.leader, counts=self.counts, identity=identity)
        self._endpoints = EndpointList(_defaults(settings), self.counts)
        self._pods = PodSet(driver.submit)
        self._wishes = Wishes(driver, settings)
        self._names = _Names(self.counts)
        self._outcomes: dict[str, Outcome] = {}
        self._priorities: dict[str, int] = {}
        self._said_gone = False
        self.families = KubernetesFamilies(self.counts, watches=lambda: self._following.watches, leader=self.leader)

    def _candidate(self, found: KubernetesSettings, identity: str) -> Leader | None:
        if not found.leader.enabled:
            return None
        leader = Leader(self.client, found.leader, name=f"lorapick-{found.pool or 'pods'}", identity=identity)
        control = self._driver.control
        if control is not None:
            fence = Fence(self._driver, leader, inner=control, counts=self.counts)
            self._driver.control = fence
            leader.on_change = fence.changed
            fence.changed(False)
        return leader

    @property
    def problems(self) -> dict[str, str]:
        """Why what is known may be old, by kind; empty: it is not."""
        found = {each.kind: each.problem for each in self._following.watches if each.problem is not None}
        if self.leader is not None and self.leader.problem is not None:
            found["leases"] = self.leader.problem
        return found

    async def run(self) -> None:
        """Follow the cluster until cancelled; then give the lead back."""
        async with self.client:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._following.run(), name="follow")
                group.create_task(self._passes(), name="passes")
                group.create_task(self._write(), name="statuses")
                if self.leader is not None:
                    group.create_task(self.leader.run(), name="leader")

    async def _passes(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PASS_EVERY):
                    await self._dirty.wait()
                await asyncio.sleep(GATHER)
            self._dirty.clear()
            try:
                self.look()
            except Exception:
                log.exception("a pass over the cluster's objects failed; what it had not done is as before")
                await asyncio.sleep(PASS_EVERY)

    def look(self) -> None:
        """Make what is known now true."""
        found = self._following.pool
        self._look_at_pods(found)
        if found is None:
            return
        self._look_at_objectives(found)
        self._look_at_adapters(found)
        self._look_at_rewrites(found)

    # -- pods

    def _look_at_pods(self, found: Pool | None) -> None:
        watching = self._following.pods
        if self._following.pool_is_gone:
            if not self._said_gone:
                log.error("there is no such InferencePool in %s; so there are no pods", self.client.access.namespace)
            self._said_gone = True
            self._pods.replace(())
            self._endpoints.forget()
            return
        self._said_gone = False
        if found is not None and watching is not None:
            pods = self._endpoints.pods(watching, found, now=time.time())
            if pods is not None:
                self._pods.replace(pods)

    # -- names

    def _look_at_objectives(self, found: Pool) -> None:
        values = self._names.objectives(self._following.objectives, found)
        wanted = priorities(values, declared=self._declared)
        if wanted != self._priorities:
            self._priorities = wanted
            self.on_priorities(dict(wanted))

    def _look_at_rewrites(self, found: Pool) -> None:
        aliases = aliases_of(self._names.rewrites(self._following.rewrites, found))
        refused = self._wishes.set_aliases(aliases.by_name)
        self._names.tell(aliases.problems, refused)

    def _look_at_adapters(self, found: Pool) -> None:
        watching = self._following.adapters
        if not watching.synced:
            return
        wishes = self._names.adapters(watching, found)
        self._outcomes = self._wishes.set_adapters(wishes)
        if self._wishes.unfinished:
            self._dirty.set()

    # -- status

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(STATUS_EVERY)
            try:
                if self._statuses.may_write:
                    await self._statuses.write(self.truths(), self._following.adapters.objects)
            except Exception:
                log.exception("statuses were not all written; they are at the next pass")

    def truths(self) -> dict[str, AdapterTruth]:
        """What is so of each LoraAdapter of this pool, by its object's name."""
        state, now = self._driver.fleet.state, self._driver.now()
        objects = self._following.adapters.objects
        held = holders(state)
        found = {}
        for name, outcome in self._outcomes.items():
            if name in objects:
                found[name] = truth(state, self._names.with_problem(outcome), item=objects[name], held=held, now=now)
        return found | self._names.unreadable(objects)


class _Names:
    """Objectives, rewrites and adapters of one pool, each read once."""

    def __init__(self, counts: KubernetesCounts) -> None:
        self._objectives = (Readings(read_objective), Readings(read_objective))
        self._rewrites = (Readings(read_rewrite), Readings(read_rewrite))
        self._adapters = Readings(read_adapter)
        self._seen: tuple[int, Pool] | None = None
        self._wishes: list[AdapterWish] = []
        """As of what was seen."""
        kinds = ("inferenceobjectives", "inferencemodelrewrites", "loraadapters")
        self._problems = {kind: Problems(kind, counts) for kind in kinds}

    def objectives(self, watches: list[Watching], pool: Pool) -> list[Objective]:
        """Those of the older group first, so that the newer one's count."""
        found: list[Objective] = []
        problems: dict[str, tuple[str, ...]] = {}
        for reading, watching in zip(reversed(self._objectives), reversed(watches), strict=True):
            reading.look(_of(pool, watching))
            found += reading.good.values()
            problems |= reading.problems
        self._problems["inferenceobjectives"].now(problems)
        return found

    def rewrites(self, watches: list[Watching], pool: Pool) -> list[Rewrite]:
        """All of them; `aliases_of` puts them in order."""
        found: list[Rewrite] = []
        for reading, watching in zip(self._rewrites, watches, strict=True):
            reading.look(_of(pool, watching))
            found += reading.good.values()
        return found

    def tell(self, problems: Mapping[str, tuple[str, ...]], refused: Mapping[str, str]) -> None:
        """Say what of rewrites does not count: unreadable, overruled, refused."""
        found = dict(problems)
        for reading in self._rewrites:
            for name, texts in reading.problems.items():
                found[name] = (*found.get(name, ()), *texts)
        for model, text in refused.items():
            found[f"for {model}"] = (text,)
        self._problems["inferencemodelrewrites"].now(found)

    def adapters(self, watching: Watching, pool: Pool) -> list[AdapterWish]:
        """Oldest first."""
        if self._seen == (watching.changes, pool):
            return self._wishes
        self._seen = (watching.changes, pool)
        objects = _of(pool, watching)
        self._adapters.look(objects)
        self._problems["loraadapters"].now(self._adapters.problems)
        good = self._adapters.good
        self._wishes = [good[name] for name in sorted(good, key=lambda name: age_order(objects[name]))]
        return self._wishes

    def with_problem(self, outcome: Outcome) -> Outcome:
        """An object that cannot be read now: what it said before is still so, and is told as trouble."""
        problem = self._adapters.problems.get(outcome.wish.object_name)
        if problem is None:
            return outcome
        return Outcome(wish=outcome.wish, refused=outcome.refused, stale=Refused("Invalid", problem[0]))

    def unreadable(self, objects: Mapping[str, dict[str, Any]]) -> dict[str, AdapterTruth]:
        """Objects that could never be read."""
        found = {}
        for name, problem in self._adapters.problems.items():
            if name in objects and name not in self._adapters.good:
                generation = objects[name]["metadata"].get("generation")
                found[name] = AdapterTruth(
                    generation=generation if isinstance(generation, int) else None,
                    desired=0,
                    pods=(),
                    refused=("Invalid", problem[0]),
                )
        return found


def _of(pool: Pool, watching: Watching) -> dict[str, dict[str, Any]]:
    return {name: item for name, item in watching.objects.items() if is_for(item, pool)}


def _defaults(settings: Settings) -> Defaults:
    return Defaults(engine=Engine(settings.default_engine), base_model=settings.base_model, limits=settings.defaults)
