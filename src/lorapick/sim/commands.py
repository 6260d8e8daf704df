"""What the core's commands do to simulated pods: loads and unloads that no request asked for.

In: Load and Unload effects, and what pods say of them. Out: the events that a controller's HTTP calls would lead to.
Not here: loads that requests cause (the pod model does them by itself), when anything happens (see `sim.world`).
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from lorapick.model import events as said
from lorapick.model.effects import Load, Unload
from lorapick.model.events import Event
from lorapick.model.units import AdapterName, PodName
from lorapick.pod.errors import UnknownAdapter
from lorapick.pod.values import AdapterSpec, AdapterUnloaded, SwapEnded, SwapFailed
from lorapick.sim.kernel import Kernel
from lorapick.sim.simpod import SimPod


class Fleet(Protocol):
    """What commands need of a world."""

    kernel: Kernel

    def spec(self, name: AdapterName) -> AdapterSpec:
        """What is known of an adapter."""
        ...

    @property
    def pods(self) -> Mapping[PodName, SimPod]:
        """By name."""
        ...

    def apply(self, kind: Callable[..., Event], **fields: Any) -> None:
        """Hand the core an event, now."""
        ...

    def advance(self, sim: SimPod) -> bool:
        """Let a pod live up to now."""
        ...

    def rewake(self, sim: SimPod) -> None:
        """A pod may have something to do sooner than it had."""
        ...


class Commands:
    """Commands to all pods of a world."""

    def __init__(self, world: Fleet) -> None:
        self._world = world

    def load(self, effect: Load) -> None:
        """A controller's load, as the pod's HTTP server does it."""
        world = self._world
        sim = world.pods[effect.pod]
        if sim.engine.config.unload_frees:
            self._fetch(sim, effect)
            return
        world.apply(said.LoadStarted, pod=effect.pod, adapters=effect.adapters, by=said.By.CONTROLLER)
        for adapter in effect.adapters:
            sim.commanded[adapter] = None
            sim.engine.load(adapter, world.kernel.now)
        sim.note_slots(world.kernel.now)
        world.rewake(sim)

    def _fetch(self, sim: SimPod, effect: Load) -> None:
        """SGLang's load: the name is known again, and the weights are in host memory."""
        world = self._world
        fields = {"pod": effect.pod, "by": said.By.CONTROLLER}
        for adapter in effect.adapters:
            if not sim.alive:
                world.apply(said.LoadFailed, adapter=adapter, why="the pod is not there", **fields)
                continue
            sim.engine.fetch(world.spec(adapter), world.kernel.now)
            world.rewake(sim)
            world.apply(said.LoadSucceeded, adapter=adapter, **fields)

    def unload(self, effect: Unload) -> None:
        """A controller's unload. A name that is gone already counts as unloaded."""
        world = self._world
        sim = world.pods[effect.pod]
        if not sim.alive:
            self._not_unloaded(effect.pod, effect.adapter, why="the pod is not there")
            return
        waits = sim.engine.config.unload_frees
        try:
            sim.engine.unload(effect.adapter, world.kernel.now)
        except UnknownAdapter:
            waits = False
        if waits:
            world.advance(sim)
            world.rewake(sim)
        else:
            world.apply(said.Unloaded, pod=effect.pod, adapter=effect.adapter)

    # -- what pods say

    def loaded(self, sim: SimPod, event: SwapEnded) -> None:
        """A load ended well."""
        if sim.commanded.pop(event.adapter, event) is None:
            fields = {"pod": sim.pod.name, "adapter": event.adapter, "by": said.By.CONTROLLER}
            self._world.apply(said.LoadSucceeded, **fields)

    def not_loaded(self, sim: SimPod, event: SwapFailed) -> None:
        """A load ended badly."""
        if sim.commanded.pop(event.adapter, event) is None:
            fields = {"pod": sim.pod.name, "adapter": event.adapter, "by": said.By.CONTROLLER, "why": event.why}
            self._world.apply(said.LoadFailed, **fields)

    def unloaded(self, sim: SimPod, event: AdapterUnloaded) -> None:
        """An unload is done."""
        self._world.apply(said.Unloaded, pod=sim.pod.name, adapter=event.adapter)

    def _not_unloaded(self, pod: PodName, adapter: AdapterName, *, why: str) -> None:
        self._world.apply(said.UnloadFailed, pod=pod, adapter=adapter, why=why)
