"""What only the leader may do to pods, held back from all others.

In: commands of the core, who leads. Out: the commands, or the news that they came to nothing; `LeadershipChanged`.
Not here: who leads (see `leader`), how pods are told (see `live.control`).

Two fences: the core of a replica that does not lead plans no loads; and each command is looked at once more when it is
to be sent, since the lead may have ended in between.
"""

import asyncio
from typing import Protocol

from lorapick.live.driver import Controls, Driver, MakeEvent
from lorapick.model.effects import Load, Register, Touch, Unload
from lorapick.model.events import By, LeadershipChanged, LoadFailed, RegisterFailed, TouchFailed, UnloadFailed
from lorapick.model.units import AdapterName

WHY = "another replica leads"


class Leads(Protocol):
    """Who knows whether this replica leads."""

    @property
    def leads(self) -> bool:
        """Whether it does now."""
        ...


class Fenced(Protocol):
    """Whose `fenced` counts commands that were held back."""

    fenced: int


class Fence:
    """Stands between a driver and its control."""

    def __init__(self, driver: Driver, leader: Leads, *, inner: Controls, counts: Fenced) -> None:
        """Let nothing through that is not the leader's."""
        self._driver = driver
        self._leader = leader
        self._inner = inner
        self._counts = counts

    def changed(self, leads: bool) -> None:
        """Tell the core."""
        self._driver.submit(lambda t, i: LeadershipChanged(t=t, id=i, leads=leads))

    def perform(self, command: Load | Unload | Register | Touch, /) -> None:
        """Pass it on, or say soon that it failed: the core is still at the event that asked for it."""
        if self._leader.leads:
            self._inner.perform(command)
            return
        self._counts.fenced += 1
        asyncio.get_running_loop().call_soon(self._refuse, command)

    def _refuse(self, command: Load | Unload | Register | Touch) -> None:
        names = command.adapters if isinstance(command, Load) else (command.adapter,)
        for name in names:
            self._driver.submit(_failed(command, name))


def _failed(command: Load | Unload | Register | Touch, adapter: AdapterName) -> MakeEvent:
    pod = command.pod
    match command:
        case Load():
            return lambda t, i: LoadFailed(t=t, id=i, pod=pod, adapter=adapter, by=By.CONTROLLER, why=WHY)
        case Unload():
            return lambda t, i: UnloadFailed(t=t, id=i, pod=pod, adapter=adapter, why=WHY)
        case Register():
            return lambda t, i: RegisterFailed(t=t, id=i, pod=pod, adapter=adapter, why=WHY)
        case Touch():
            return lambda t, i: TouchFailed(t=t, id=i, pod=pod, adapter=adapter, why=WHY)
