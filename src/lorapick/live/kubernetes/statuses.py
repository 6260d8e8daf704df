"""Status and Events of LoraAdapters: written by the leader, when something changed, at a bounded rate.

In: what came of each wish, the fleet's state, the objects as they are. Out: PATCHes of status, Events.
Not here: what a status says (see `wire.kubernetes.status`), who leads.

A status is written with the resource version that it was worked out from: an object that changed meanwhile answers 409,
and its next version brings the next try. So a replica that led a moment ago overwrites nothing newer.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from lorapick.core.placement.pins import meant
from lorapick.core.state import FleetState
from lorapick.live.changes.known import is_resident, pods_of
from lorapick.live.kubernetes.client import MERGE_PATCH, ApiError, Client
from lorapick.live.kubernetes.counts import KubernetesCounts
from lorapick.live.kubernetes.leader import Leader
from lorapick.live.kubernetes.wishes import Outcome
from lorapick.model.adapters import PinSpec
from lorapick.model.units import AdapterName, PodName, Seconds
from lorapick.wire.kubernetes import adapter as kind
from lorapick.wire.kubernetes.objects import Object, look
from lorapick.wire.kubernetes.status import AdapterTruth, event, news, next_status

log = logging.getLogger(__name__)

AT_ONCE = 50
"""Statuses written in one pass; the others wait for the next."""
EVENTS = 25
EVENTS_WITHIN: Seconds = 60.0
"""So many Events in so long at most; what is left out is in the statuses."""


class Budget:
    """So many in so long."""

    def __init__(self, count: int, within: Seconds) -> None:
        """Start with all of them."""
        self._count, self._within = count, within
        self._spent: deque[Seconds] = deque()

    def take(self, now: Seconds) -> bool:
        """One, if there is one."""
        while self._spent and self._spent[0] <= now - self._within:
            self._spent.popleft()
        if len(self._spent) >= self._count:
            return False
        self._spent.append(now)
        return True


Holders: TypeAlias = Mapping[AdapterName, Sequence[PodName]]
"""Pods that hold each adapter, in the fleet's order."""


def holders(state: FleetState) -> Holders:
    """All of them in one go: a look at each pod's own adapters, and not at each adapter on each pod."""
    found: dict[AdapterName, list[PodName]] = {}
    for row, pod in state.columns.live():
        for name in state.residency.home(row).cells:
            if is_resident(state, name, row=row):
                found.setdefault(name, []).append(pod.name)
    return found


def truth(state: FleetState, outcome: Outcome, *, item: Object, held: Holders, now: Seconds) -> AdapterTruth:
    """What is so of one LoraAdapter."""
    generation = look(item, "metadata", "generation")
    adapter = outcome.wish.adapter
    return AdapterTruth(
        generation=generation if isinstance(generation, int) else None,
        desired=_desired(state, adapter.pin),
        pods=() if outcome.refused is not None else tuple(held.get(adapter.name, ())),
        refused=outcome.refused,
        trouble=outcome.stale or _trouble(state, adapter.name, now=now),
    )


def _desired(state: FleetState, pin: PinSpec | None) -> int:
    if pin is None:
        return 0
    if pin.replicas is None and (pin.pods or pin.selector):
        return sum(meant(pin, pod) for _, pod in state.columns.live())
    return (pin.replicas or 0) + (pin.prefill_replicas or 0)


def _trouble(state: FleetState, name: AdapterName, *, now: Seconds) -> tuple[str, str] | None:
    placement = state.placement
    if name in placement.problems:
        return "FilesRefused", placement.problems[name]
    if name in placement.said_of_pins:
        return "PinDoesNotFit", placement.said_of_pins[name]
    rows = state.quarantine.rows(name, now=now)
    if rows:
        return "LoadFailing", f"nobody loads it for a while, after failures, on {', '.join(pods_of(state, rows)[:5])}"
    return None


class Statuses:
    """Writes what changed."""

    def __init__(
        self,
        client: Client,
        leader: Leader | None,
        *,
        counts: KubernetesCounts,
        identity: str,
        wall: Callable[[], Seconds] = time.time,
    ) -> None:
        """Write nothing yet; without a leader this replica writes."""
        self._client = client
        self._leader = leader
        self._counts = counts
        self._identity = identity
        self._wall = wall
        self._budget = Budget(EVENTS, EVENTS_WITHIN)
        self._stale: dict[str, object] = {}
        """Resource version that answered 409, by object: it is not tried again."""
        self.problem: str | None = None
        """Why statuses cannot be written now."""

    @property
    def may_write(self) -> bool:
        """Whether this replica is the one to write."""
        return self._leader is None or self._leader.leads

    async def write(self, truths: Mapping[str, AdapterTruth], objects: Mapping[str, dict[str, Any]]) -> None:
        """Write what differs from the objects as they are known, at most `AT_ONCE` of them."""
        written = 0
        for name, known in truths.items():
            item = objects.get(name)
            if item is None or written >= AT_ONCE:
                continue
            version = look(item, "metadata", "resourceVersion")
            status = (
                None if self._stale.get(name) == version else next_status(known, item.get("status"), now=self._wall())
            )
            if status is None:
                continue
            if not self.may_write:
                return
            written += 1
            if await self._one(name, item, status=status):
                self._stale[name] = version  # until the watch brings what we wrote
            await asyncio.sleep(0)

    async def _one(self, name: str, item: dict[str, Any], *, status: dict[str, Any]) -> bool:
        """Whether this version of the object is done with."""
        namespace = self._client.access.namespace
        path = f"/apis/{kind.GROUP}/{kind.VERSION}/namespaces/{namespace}/{kind.PLURAL}/{name}/status"
        body = {"metadata": {"resourceVersion": look(item, "metadata", "resourceVersion")}, "status": status}
        try:
            await self._client.request("PATCH", path, body=body, content_type=MERGE_PATCH)
        except ApiError as error:
            return self._failed(name, error)
        self.problem = None
        self._counts.statuses += 1
        for each in news(status, item.get("status")):
            await self._tell(event(item, each, by=self._identity, now=self._wall()))
        return True

    def _failed(self, name: str, error: ApiError) -> bool:
        if error.status in (404, 409):
            self._counts.status_conflicts += 1
            return True
        self._counts.failures["status"] += 1
        if self.problem is None:
            log.error("status of LoraAdapter %s: %s", name, error)
        self.problem = str(error)
        return False

    async def _tell(self, body: Mapping[str, Any]) -> None:
        if not self._budget.take(self._wall()):
            self._counts.untold += 1
            return
        try:
            await self._client.request("POST", f"/api/v1/namespaces/{self._client.access.namespace}/events", body=body)
        except ApiError as error:
            self._counts.failures["events"] += 1
            log.warning("an Event could not be made: %s", error)
        else:
            self._counts.told += 1
