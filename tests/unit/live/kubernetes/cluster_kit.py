"""One picker's cluster against an API server for tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from lorapick.core.state import FleetState
from lorapick.live.driver import Driver
from lorapick.live.kubernetes.access import Access
from lorapick.live.kubernetes.cluster import Cluster
from lorapick.model.effects import Effect
from lorapick.model.events import Event, PodReported
from lorapick.model.pods import PodReport
from lorapick.model.settings import DiscoverySettings, KubernetesSettings, LeaderSettings, Settings
from lorapick.testing.apiserver import ApiServer

FAST = LeaderSettings(duration=60.0, renew_within=40.0, retry=0.1)
"""Long enough for a machine that is busy: nobody loses a lead by being slow."""
POOL = {
    "apiVersion": "inference.networking.k8s.io/v1",
    "kind": "InferencePool",
    "metadata": {"name": "llama"},
    "spec": {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}]},
}


def pod(name: str, ip: str, *, ready: bool = True, app: str = "vllm", **metadata: Any) -> dict[str, Any]:
    labels = {"app": app, **metadata.pop("labels", {})}
    return {
        "metadata": {"name": name, "labels": labels, **metadata},
        "spec": {"nodeName": f"node-of-{name}"},
        "status": {"podIP": ip, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def adapter(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "lorapick.dev/v1alpha1",
        "kind": "LoraAdapter",
        "metadata": {"name": name},
        "spec": {"source": f"/adapters/{name}", **spec},
    }


class Control:
    """Keeps commands."""

    def __init__(self) -> None:
        self.commands: list[Effect] = []

    def perform(self, command: Any, /) -> None:
        self.commands.append(command)


class Picker:
    """A driver and its cluster; commands go nowhere."""

    def __init__(self, server: ApiServer, settings: Settings, *, name: str = "picker") -> None:
        self.events: list[Event] = []
        self.driver = Driver(settings, seed=1, observers=[self])
        self.control = Control()
        self.driver.control = self.control
        self.priorities: dict[str, int] = {}
        self.cluster = Cluster(
            settings, self.driver, access=Access(server.url, namespace="default"), environment={"POD_NAME": name}
        )
        self.cluster.on_priorities = self._objectives

    def _objectives(self, found: dict[str, int]) -> None:
        self.priorities = found

    def observe(self, event: Event, effects: Any) -> None:
        self.events.append(event)

    @property
    def state(self) -> FleetState:
        return self.driver.fleet.state

    @property
    def pods(self) -> dict[str, bool]:
        """Names of endpoints, and whether each drains."""
        return {each.name: self.state.loads[row].draining for row, each in self.state.columns.live()}

    def report(self) -> int:
        """All pods say that they are there, and have no adapters; how many there are."""
        names = [*self.pods]
        report = PodReport(registered=(), base_models=("llama",), running=0, waiting=0)
        for name in names:
            self.driver.submit(lambda t, i, name=name: PodReported(t=t, id=i, pod=name, report=report))
        return len(names)

    def metric(self, name: str, **labels: str) -> float | None:
        for family in self.cluster.families.collect():
            for sample in family.samples:
                if sample.name == name and sample.labels == labels:
                    return float(sample.value)
        return None


def settings(**changes: Any) -> Settings:
    cluster = KubernetesSettings(pool="llama", leader=changes.pop("leader", FAST))
    found = msgspec.structs.replace(cluster, **changes.pop("cluster", {}))
    return Settings(base_model="llama", discovery=DiscoverySettings(kubernetes=found), **changes)


@contextlib.asynccontextmanager
async def running(picker: Picker) -> AsyncIterator[Picker]:
    task = asyncio.create_task(picker.cluster.run())
    try:
        yield picker
        if task.done():
            await task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(check: Callable[[], object], *, within: float = 10.0) -> None:
    """Wait for something to become so; how soon is not judged."""
    async with asyncio.timeout(within):
        while not check():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)
