"""Perform what a scenario plans for pods, pins and orders.

In: a world, changes. Out: events of the core at the times of the changes, processes that die and come back. Not here:
when (see `sim.build`), what they are (see `sim.fleet_changes`).
"""

from typing import NamedTuple

from lorapick.model import events as said
from lorapick.model.units import PodName, Seconds
from lorapick.sim.failing import FailingLoads
from lorapick.sim.fleet_changes import (
    Ask,
    Drain,
    FailLoads,
    Fire,
    FleetChange,
    Join,
    Move,
    Pin,
    Restart,
    Unask,
    Unpin,
)
from lorapick.sim.kernel import Priority
from lorapick.sim.world import World

LOOK: Seconds = 1.0
"""How often somebody looks whether a pod that drains is empty."""


class _Leaving(NamedTuple):
    change: Drain
    until: Seconds


class Performer:
    """Performs changes on one world."""

    def __init__(self, world: World, failing: FailingLoads) -> None:
        self._world = world
        self._failing = failing
        self._leaving: dict[PodName, _Leaving] = {}

    def perform(self, change: FleetChange) -> None:
        """Do it now."""
        world = self._world
        match change:
            case Restart():
                world.restart_pod(change.pod, down=change.down)
            case Drain():
                self._drain(change)
            case Join():
                self._join(change.pod)
            case FailLoads():
                self._failing.share = change.share
            case _:
                self._say(change)

    def _say(self, change: Pin | Unpin | Ask | Unask | Move | Fire) -> None:
        tell = self._world.apply
        match change:
            case Pin():
                for name in change.adapters:
                    tell(said.PinSet, adapter=name, pin=change.pin)
            case Unpin():
                for name in change.adapters:
                    tell(said.PinCleared, adapter=name)
            case Ask():
                where = {"pods": change.pods, "replicas": change.replicas, "selector": change.selector}
                for name in change.adapters:
                    tell(said.LoadAsked, adapter=name, lasts=change.lasts, **where)
            case Unask():
                for name in change.adapters:
                    tell(said.UnloadAsked, adapter=name, pods=change.pods)
            case Move():
                tell(said.MoveAsked, adapter=change.adapter, source=change.source, target=change.target)
            case Fire():
                tell(said.TriggerFired, name=change.event, attributes=change.attributes)

    # -- pods that leave and come

    def _drain(self, change: Drain) -> None:
        world = self._world
        if world.pods[change.pod].listed:
            leaving = self._leaving[change.pod] = _Leaving(change, world.kernel.now + change.grace)
            world.apply(said.PodDraining, pod=change.pod)
            self._look(leaving)

    def _look(self, leaving: _Leaving) -> None:
        """Let it go when it is empty or its time is over; else look again."""
        world, change = self._world, leaving.change
        if self._leaving.get(change.pod) is not leaving:
            return  # it was told to stay
        kernel = world.kernel
        if kernel.now < leaving.until and not self._empty(change.pod):
            kernel.at(min(kernel.now + LOOK, leaving.until), self._look, argument=leaving, priority=Priority.CHANGE)
            return
        del self._leaving[change.pod]
        world.remove_pod(change.pod)
        if change.down is not None:
            kernel.at(kernel.now + change.down, self._join, argument=change.pod, priority=Priority.CHANGE)

    def _empty(self, pod: PodName) -> bool:
        """Whether the picker sends nothing there, and everything sent before has ended."""
        state = self._world.fleet.state
        row = state.columns.row_of[pod]
        return bool(state.columns.gate[row]) and not state.loads[row].in_flight

    def _join(self, pod: PodName) -> None:
        self._leaving.pop(pod, None)
        self._world.return_pod(pod)
