"""What the core's commands do to simulated pods: loads and unloads that no request asked for.

In: Load, Unload, Register and Touch effects, and what pods say of them. Out: the events that a controller's HTTP calls
would lead to.
Not here: loads that requests cause (the pod model does them by itself), when anything happens (see `sim.world`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from lorapick.core.placement.plans import PlacementPlan
from lorapick.core.placement.solving import solve
from lorapick.model import events as said
from lorapick.model.effects import Load, Register, Solve, Touch, Unload
from lorapick.model.events import Event
from lorapick.model.settings import Settings
from lorapick.model.units import AdapterName, PodName, RequestId, Seconds
from lorapick.pod.errors import PodError, UnknownAdapter
from lorapick.pod.values import (
    AdapterSpec,
    AdapterUnloaded,
    PodEvent,
    PodRequest,
    RequestFailed,
    RequestFinished,
    SwapEnded,
    SwapFailed,
)
from lorapick.sim.kernel import Kernel, Priority
from lorapick.sim.simpod import SimPod

SOLVING: Seconds = 0.2
"""What a solver takes, live: it runs beside the picker."""
AWAY = "the pod is not there"


class _AwayError(Exception):
    """Nobody answers."""


class Fleet(Protocol):
    """What commands need of a world."""

    kernel: Kernel
    settings: Settings

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
        self._touches: dict[RequestId, tuple[SimPod, AdapterName]] = {}
        """Requests of our own, of one token."""
        self._count = 0

    def load(self, effect: Load) -> None:
        """A controller's load, as the pod's HTTP server does it. One that knows the name already is touched."""
        sim = self._world.pods[effect.pod]
        if sim.alive and not sim.engine.config.unload_frees:
            self._world.apply(said.LoadStarted, pod=effect.pod, adapters=effect.adapters, by=said.By.CONTROLLER)
        for adapter in effect.adapters:
            if not sim.alive:
                self._failed(sim, adapter, why=AWAY)
            elif sim.engine.config.unload_frees:
                self._world.apply(said.LoadSucceeded, adapter=adapter, **self._fetched(sim, adapter))
            else:
                self._activate(sim, adapter)

    def register(self, effect: Register) -> None:
        """A name that a pod is told: with vLLM, a load like any other; its end is the same."""
        sim = self._world.pods[effect.pod]
        if not sim.alive:
            self._world.apply(said.RegisterFailed, pod=effect.pod, adapter=effect.adapter, why=AWAY)
        elif sim.engine.config.unload_frees:
            self._fetched(sim, effect.adapter)
            self._world.apply(said.Registered, pod=effect.pod, adapter=effect.adapter)
        else:
            sim.registering[effect.adapter] = None
            self._activate(sim, effect.adapter)

    def _activate(self, sim: SimPod, adapter: AdapterName) -> None:
        """Bring an adapter into a slot, as vLLM's load does."""
        world = self._world
        now = world.kernel.now
        world.advance(sim)
        try:
            sim.engine.load(world.spec(adapter), now)
        except PodError as error:
            self._failed(sim, adapter, why=str(error))
            return
        if adapter in sim.engine.stats(now).on_gpu:
            self._done(sim, adapter)
            return
        sim.commanded[adapter] = None
        sim.note_slots(now)
        world.rewake(sim)

    def _fetched(self, sim: SimPod, adapter: AdapterName) -> dict[str, Any]:
        """SGLang's load: the name is known again, and the weights are in host memory."""
        sim.engine.fetch(self._world.spec(adapter), self._world.kernel.now)
        self._world.rewake(sim)
        return {"pod": sim.pod.name, "by": said.By.CONTROLLER}

    def touch(self, effect: Touch) -> None:
        """A request of one token, straight to the pod."""
        world, sim = self._world, self._world.pods[effect.pod]
        self._count += 1
        request = PodRequest(id=f"touch~{self._count}", adapter=effect.adapter, prompt_tokens=1, output_tokens=1)
        try:
            if not sim.alive:
                raise _AwayError(AWAY)
            sim.engine.submit(request, world.kernel.now)
        except (PodError, _AwayError) as error:
            world.apply(said.TouchFailed, pod=effect.pod, adapter=effect.adapter, why=str(error))
            return
        self._touches[request.id] = (sim, effect.adapter)
        sim.note_slots(world.kernel.now)
        world.rewake(sim)

    def ours(self, event: PodEvent) -> bool:
        """Whether an event is of a touch; the end of one is told."""
        request_id = getattr(event, "request_id", None) if self._touches else None
        if request_id not in self._touches:
            return False
        if isinstance(event, RequestFinished | RequestFailed):
            sim, adapter = self._touches.pop(request_id)
            if isinstance(event, RequestFinished):
                self._world.apply(said.Touched, pod=sim.pod.name, adapter=adapter)
            else:
                self._world.apply(said.TouchFailed, pod=sim.pod.name, adapter=adapter, why="the pod failed it")
        return True

    def died(self, sim: SimPod, lost: Iterable[RequestId]) -> list[RequestId]:
        """A process died: what was asked of it comes to nothing. Returns those of `lost` that are no touches."""
        for adapter in [*sim.commanded]:
            del sim.commanded[adapter]
            self._failed(sim, adapter, why="the pod died")
        others = []
        for request_id in lost:
            touch = self._touches.pop(request_id, None)
            if touch is None:
                others.append(request_id)
            else:
                self._world.apply(said.TouchFailed, pod=sim.pod.name, adapter=touch[1], why="the pod died")
        return others

    def unload(self, effect: Unload) -> None:
        """A controller's unload. A name that is gone already counts as unloaded."""
        world = self._world
        sim = world.pods[effect.pod]
        if not sim.alive:
            self._not_unloaded(effect.pod, effect.adapter, why=AWAY)
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

    def solve(self, effect: Solve) -> None:
        """The solver's child process: it answers a little later."""
        world = self._world
        plan = solve(effect.problem, solver=world.settings.placement.solver)
        world.kernel.at(world.kernel.now + SOLVING, self._solved, argument=plan, priority=Priority.CHANGE)

    def _solved(self, plan: PlacementPlan) -> None:
        self._world.apply(said.PlacementComputed, plan=plan.placed, version=plan.version)

    # -- what pods say

    def loaded(self, sim: SimPod, event: SwapEnded) -> None:
        """A load ended well."""
        if sim.commanded.pop(event.adapter, event) is None:
            self._done(sim, event.adapter)

    def not_loaded(self, sim: SimPod, event: SwapFailed) -> None:
        """A load ended badly."""
        if sim.commanded.pop(event.adapter, event) is None:
            self._failed(sim, event.adapter, why=event.why)

    def _done(self, sim: SimPod, adapter: AdapterName) -> None:
        if sim.registering.pop(adapter, adapter) is None:
            self._world.apply(said.Registered, pod=sim.pod.name, adapter=adapter)
        else:
            self._world.apply(said.LoadSucceeded, pod=sim.pod.name, adapter=adapter, by=said.By.CONTROLLER)

    def _failed(self, sim: SimPod, adapter: AdapterName, *, why: str) -> None:
        if sim.registering.pop(adapter, adapter) is None:
            self._world.apply(said.RegisterFailed, pod=sim.pod.name, adapter=adapter, why=why)
        else:
            self._world.apply(said.LoadFailed, pod=sim.pod.name, adapter=adapter, by=said.By.CONTROLLER, why=why)

    def unloaded(self, sim: SimPod, event: AdapterUnloaded) -> None:
        """An unload is done."""
        self._world.apply(said.Unloaded, pod=sim.pod.name, adapter=event.adapter)

    def _not_unloaded(self, pod: PodName, adapter: AdapterName, *, why: str) -> None:
        self._world.apply(said.UnloadFailed, pod=pod, adapter=adapter, why=why)
