"""Whose doing a change of residency was.

In: the change, its event and effects. Out: who caused a load, how one ended that brought nothing, why an adapter left
its slot. What the controller asked for is remembered until the load begins. Not here: rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lorapick.model.effects import LOAD_FAILED, Dispatch, Effect, Load, Note, Register, Touch
from lorapick.model.events import (
    By,
    Event,
    LoadFailed,
    LoadStarted,
    LoadSucceeded,
    PodGone,
    Registered,
    RegisterFailed,
    RequestDispatched,
    Touched,
    TouchFailed,
    Unloaded,
)
from lorapick.model.ledger import LeftWhy, LoadBy, LoadEnd
from lorapick.model.signals import Change
from lorapick.model.tiers import Tier
from lorapick.model.units import AdapterName, PodName, RequestId

MOST_ASKED = 10_000
"""Commands that are remembered."""
REGISTER, TOUCH = "register", "touch"
"""Why something came into a slot through a command that says no reason."""


class Happened(NamedTuple):
    """One event and what came of it."""

    event: Event
    effects: Sequence[Effect]


Command = Load | Register | Touch
Cause = tuple[LoadBy, RequestId | None, str | None]
_ENGINE: Cause = (LoadBy.ENGINE, None, None)


class Blame:
    """Remembers what the controller asked for."""

    def __init__(self) -> None:
        self._asked: dict[tuple[PodName, AdapterName], str] = {}

    def remember(self, command: Command) -> None:
        """The controller gives a command."""
        if isinstance(command, Load):
            for adapter in command.adapters:
                self._ask(command.pod, adapter, why=command.why)
        else:
            self._ask(command.pod, command.adapter, why=REGISTER if isinstance(command, Register) else TOUCH)

    def _ask(self, pod: PodName, adapter: AdapterName, *, why: str) -> None:
        self._asked[pod, adapter] = why
        if len(self._asked) > MOST_ASKED:
            del self._asked[next(iter(self._asked))]

    def cause(self, change: Change, happened: Happened) -> Cause:
        """Who caused the load that begins."""
        pod, adapter, event = change.pod, change.adapter, happened.event
        for effect in happened.effects:
            match effect:
                case Dispatch() if effect.pick.adapter == adapter and pod in (effect.target.pod, effect.pick.prefill):
                    return LoadBy.REQUEST, effect.request_id, None
                case Load() if effect.pod == pod and adapter in effect.adapters:
                    return LoadBy.CONTROLLER, None, effect.why
                case _:
                    pass
        if isinstance(event, RequestDispatched) and event.pod == pod:
            return LoadBy.REQUEST, event.request_id, None
        asked = self._asked.pop((pod, adapter), None)
        by_controller = isinstance(event, LoadStarted | LoadSucceeded) and event.by is By.CONTROLLER
        if asked is not None or by_controller or isinstance(event, Registered | Touched):
            return LoadBy.CONTROLLER, None, asked
        return _ENGINE

    def load_end(self, change: Change, happened: Happened) -> LoadEnd:
        """How a load ended that did not bring its adapter into a slot."""
        failed = change.restart or _failed(change, happened)
        return LoadEnd.FAILED if failed else LoadEnd.DROPPED

    def left_why(self, change: Change, happened: Happened) -> LeftWhy:
        """Why an adapter left its slot, or the slot that was to be its own."""
        event = happened.event
        if change.restart:
            return LeftWhy.GONE if isinstance(event, PodGone) else LeftWhy.RESTART
        if _failed(change, happened):
            return LeftWhy.FAILED
        if change.before is Tier.LOADING:
            return LeftWhy.DROPPED
        unloaded = isinstance(event, Unloaded) and (event.pod, event.adapter) == (change.pod, change.adapter)
        return LeftWhy.UNLOAD if unloaded else LeftWhy.CAPACITY


def _failed(change: Change, happened: Happened) -> bool:
    event = happened.event
    where = change.pod, change.adapter
    if isinstance(event, LoadFailed | RegisterFailed | TouchFailed) and (event.pod, event.adapter) == where:
        return True
    return any(
        isinstance(effect, Note)
        and effect.kind == LOAD_FAILED
        and (effect.facts.get("pod"), effect.facts.get("adapter")) == where
        for effect in happened.effects
    )
