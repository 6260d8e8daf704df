"""What the admin API asks of the picker: views of its placement, and changes of what operators want.

In: nothing. Out: the protocol `Operations`, and the error that says why a change is refused.
Not here: HTTP (see `live.admin_changes`), who does it on a running picker (see `live.commanding`).

Methods return at once but for `plan`, are called on the picker's event loop, and raise `OperationError` when the change
is refused: then nothing was changed.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from lorapick.live.insight import Insight
from lorapick.model.adapters import Adapter, Alias, PinSpec
from lorapick.model.arms import ArmsReport, Mode
from lorapick.model.units import AdapterName, PodName
from lorapick.wire.admin_answers import AliasesAnswer, Done, GroupsAnswer, Intent, PlacementAnswer, PlanAnswer
from lorapick.wire.admin_bodies import EventBody, LoadBody, MoveBody, PlanBody, PreloadBody
from lorapick.wire.api import ApiReason, FieldProblem


class OperationError(Exception):
    """A change is refused; the message says what was found, and the remedy."""

    def __init__(
        self,
        status: int,
        reason: ApiReason,
        *,
        detail: str,
        near: Sequence[str] = (),
        errors: Sequence[FieldProblem] = (),
    ) -> None:
        """Keep what the answer says; `near` has names that are alike."""
        super().__init__(detail)
        self.status = status
        self.reason = reason
        self.near = tuple(near)
        self.errors = tuple(errors)


class Operations(Protocol):
    """Everything that operators may do to a running picker, and see of its placement."""

    def placement(self) -> PlacementAnswer:
        """What should be where, beside what is believed."""
        ...

    def groups(self) -> GroupsAnswer:
        """Who follows whom."""
        ...

    def aliases(self) -> AliasesAnswer:
        """Names that stand for adapters."""
        ...

    def intents(self) -> Mapping[AdapterName, Intent]:
        """What is wanted of each adapter, and known of its files; adapters of which nothing is may be left out."""
        ...

    def insight(self) -> Insight:
        """What only the doctor asks for."""
        ...

    def report(self) -> ArmsReport:
        """Both arms of a trial side by side."""
        ...

    def set_mode(self, mode: Mode) -> Done:
        """Which requests picks are in force for from now on."""
        ...

    def load(self, name: AdapterName, body: LoadBody) -> Done:
        """Load an adapter once."""
        ...

    def preload(self, name: AdapterName, body: PreloadBody) -> Done:
        """Load an adapter, and keep it for a while."""
        ...

    def unload(self, name: AdapterName, pods: Sequence[PodName]) -> Done:
        """Take an adapter from pods; none named: from all."""
        ...

    def pin(self, name: AdapterName, pin: PinSpec) -> Done:
        """Keep an adapter resident."""
        ...

    def unpin(self, name: AdapterName) -> Done:
        """Insist no longer."""
        ...

    def move(self, name: AdapterName, body: MoveBody) -> Done:
        """Load on one pod first, then unload on another."""
        ...

    def fire(self, body: EventBody) -> Done:
        """Something happened outside."""
        ...

    def set_alias(self, alias: Alias) -> Done:
        """An alias leads to these adapters from now on."""
        ...

    def clear_alias(self, name: str) -> Done:
        """There is no such alias any more."""
        ...

    def declare(self, adapter: Adapter) -> Done:
        """Name an adapter, or say more of it."""
        ...

    def retire(self, name: AdapterName) -> Done:
        """Withdraw an adapter."""
        ...

    async def plan(self, body: PlanBody) -> PlanAnswer:
        """What a placement by load would do now; changes nothing."""
        ...
