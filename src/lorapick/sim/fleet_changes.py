"""What happens to pods, pins and orders during a run, as values.

In: numbers and names. Out: frozen values; times are seconds since the run's begin. Not here: what happens to traffic
(see `sim.workload.changes`), performing (see `sim.performing`).
"""

from typing import TypeAlias

import msgspec

from lorapick.model.adapters import PinSpec
from lorapick.model.units import AdapterName, PodName, Ratio, Seconds


class Restart(msgspec.Struct, frozen=True, kw_only=True, tag="restart"):
    """A pod's process dies and is back, empty, after `down` seconds."""

    at: Seconds
    pod: PodName
    down: Seconds


class Drain(msgspec.Struct, frozen=True, kw_only=True, tag="drain"):
    """A pod is told to drain. It is gone when the picker sends it nothing more and it has ended what it had."""

    at: Seconds
    pod: PodName
    grace: Seconds
    """Then it is gone in any case, and what it still has fails."""
    down: Seconds | None = None
    """So long after it went it is back, as a new process with nothing loaded; None: it stays away."""


class Join(msgspec.Struct, frozen=True, kw_only=True, tag="join"):
    """A pod appears, with nothing loaded; one that drains is told to stay."""

    at: Seconds
    pod: PodName


class Pin(msgspec.Struct, frozen=True, kw_only=True, tag="pin"):
    """An operator pins adapters; the picker does what it does live."""

    at: Seconds
    adapters: tuple[AdapterName, ...]
    pin: PinSpec


class Unpin(msgspec.Struct, frozen=True, kw_only=True, tag="unpin"):
    """An operator no longer insists."""

    at: Seconds
    adapters: tuple[AdapterName, ...]


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag="ask"):
    """An operator has adapters loaded."""

    at: Seconds
    adapters: tuple[AdapterName, ...]
    pods: tuple[PodName, ...] = ()
    replicas: int = 1
    selector: dict[str, str] = {}
    lasts: Seconds | None = None
    """For how long they are kept; None: they are loaded once."""


class Unask(msgspec.Struct, frozen=True, kw_only=True, tag="unask"):
    """An operator has adapters unloaded, on these pods or on all."""

    at: Seconds
    adapters: tuple[AdapterName, ...]
    pods: tuple[PodName, ...] = ()


class Move(msgspec.Struct, frozen=True, kw_only=True, tag="move"):
    """An operator has an adapter moved."""

    at: Seconds
    adapter: AdapterName
    source: PodName
    target: PodName


class Fire(msgspec.Struct, frozen=True, kw_only=True, tag="fire"):
    """Something happened outside that triggers wait for."""

    at: Seconds
    event: str
    attributes: dict[str, str] = {}


class FailLoads(msgspec.Struct, frozen=True, kw_only=True, tag="fail_loads"):
    """From now on so many loads fail, on all pods; 0: none."""

    at: Seconds
    share: Ratio


FleetChange: TypeAlias = Restart | Drain | Join | Pin | Unpin | Ask | Unask | Move | Fire | FailLoads
"""What happens to pods and pins, and what operators say. What happens to traffic is part of the workload."""
