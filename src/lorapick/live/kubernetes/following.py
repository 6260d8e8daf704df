"""What the API server has for one picker: its pool, pods, objectives, rewrites, adapters.

In: a client, settings. Out: the watched objects, and a sign that something of them changed.
Not here: what is done about it (see `cluster`).

Pods are watched by the pool's labels, so that watch begins when the pool is known and anew when its labels change;
until the new list is there, the pods of the old one stay.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from lorapick.live.kubernetes.client import Client
from lorapick.live.kubernetes.counts import KubernetesCounts
from lorapick.live.kubernetes.objects import Problems, Readings
from lorapick.live.kubernetes.watching import Kind, Watching
from lorapick.model.settings import KubernetesSettings
from lorapick.wire.kubernetes import adapter, naming, pool
from lorapick.wire.kubernetes.pods import slim
from lorapick.wire.kubernetes.pool import Pool, pool_of_settings, read_pool

log = logging.getLogger(__name__)


class Following:
    """All watches of one picker."""

    def __init__(
        self, client: Client, settings: KubernetesSettings, *, counts: KubernetesCounts, changed: Callable[[], None]
    ) -> None:
        """Ask for nothing yet; `changed` is told whenever anything may have changed."""
        self._client = client
        self._settings = settings
        self._counts = counts
        self._changed = changed
        self._fixed = pool_of_settings(settings)
        """In place of an InferencePool."""
        self._pools: Watching | None = None
        self._readings = Readings(read_pool)
        self._problems = Problems("inferencepools", counts)
        self._pods: Watching | None = None
        self._pods_of: Pool | None = None
        self._pods_task: asyncio.Task[None] | None = None
        if settings.pool is not None:
            params = {"fieldSelector": f"metadata.name={settings.pool}"}
            self._pools = self._watching("inferencepools", pool.GROUP, version="v1", params=params)
        self.objectives = [
            self._watching("inferenceobjectives", each, version=naming.VERSION) for each in naming.GROUPS
        ]
        self.rewrites = [
            self._watching("inferencemodelrewrites", each, version=naming.VERSION) for each in naming.GROUPS
        ]
        self.adapters = self._watching(adapter.PLURAL, adapter.GROUP, version=adapter.VERSION)

    def _watching(self, kind: str, group: str, *, version: str, params: dict[str, str] | None = None) -> Watching:
        path = f"/apis/{group}/{version}/namespaces/{self._client.access.namespace}/{kind}"
        return self._watch(Kind(f"{kind}.{group}", path, params or {}, _without_managers))

    def _watch(self, kind: Kind) -> Watching:
        return Watching(self._client, kind, counts=self._counts, changed=self._changed)

    @property
    def watches(self) -> Sequence[Watching]:
        """All that there are now."""
        found = [self._pools, self._pods, *self.objectives, *self.rewrites, self.adapters]
        return [each for each in found if each is not None]

    @property
    def pool(self) -> Pool | None:
        """As it is, or was when it could be read last; None: there is none."""
        if self._pools is None:
            return self._fixed
        if self._readings.look(self._pools.objects):
            self._problems.now(self._readings.problems)
        return self._readings.good.get(self._settings.pool or "")

    @property
    def pods(self) -> Watching | None:
        """The pods' watch, once it has listed them; None: nobody knows any."""
        return self._pods if self._pods is not None and self._pods.synced else None

    @property
    def pool_is_gone(self) -> bool:
        """Whether the server says that there is no such pool."""
        return self._pools is not None and self._pools.synced and self._pools.problem is None and self.pool is None

    async def run(self) -> None:
        """Follow everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            for watching in self.watches:
                group.create_task(watching.run(), name=f"watch {watching.kind}")
            group.create_task(self._follow_pods(group), name="watch pods of the pool")

    async def _follow_pods(self, group: asyncio.TaskGroup) -> None:
        """Watch the pods of the pool as it is now."""
        while True:
            found = self.pool
            if found is not None and (self._pods_of is None or found.selector != self._pods_of.selector):
                self._begin(found, group)
            self._pods_of = found if found is not None else self._pods_of
            await asyncio.sleep(_LOOK_EVERY)

    def _begin(self, found: Pool, group: asyncio.TaskGroup) -> None:
        log.info("pods are those with %s", found.label_selector)
        if found.protocol != "http":
            log.warning("the pool says %s; pods are scraped and told over HTTP/1.1 on the same ports", found.protocol)
        if self._pods_task is not None:
            self._pods_task.cancel()
        path = f"/api/v1/namespaces/{self._client.access.namespace}/pods"
        self._pods = self._watch(Kind("pods", path, {"labelSelector": found.label_selector}, slim))
        self._pods_task = group.create_task(self._pods.run(), name="watch pods")


_LOOK_EVERY = 0.05
"""How soon a pool that came, or changed its labels, has its pods listed."""


def _without_managers(item: dict[str, object]) -> dict[str, object]:
    """Who wrote which field last is half of an object, and nobody here asks."""
    metadata = item.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return item
