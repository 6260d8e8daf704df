"""Rewrites and LoraAdapters, made true in a running picker through the doors of its admin API.

In: aliases and adapters as the API server has them. Out: declarations, pins, aliases, groups and schedules; and of each
object what was refused. Not here: HTTP, status (see `statuses`).

Level-based: each pass compares what is wanted with what is so, and does what differs; what is refused is tried again at
the next pass, since pods or adapters that it needs may have come. Only what came from here is taken back from here, and
what the configuration says under the same name is then said again.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from lorapick.live.driver import Driver
from lorapick.live.operations import OperationError, Operations
from lorapick.model.adapters import Adapter, AffinityGroup, Alias, Schedule
from lorapick.model.events import ConfigChanged
from lorapick.model.settings import Settings
from lorapick.model.units import AdapterName
from lorapick.wire.api import ApiReason
from lorapick.wire.kubernetes.adapter import AdapterWish

_WITHOUT_PIN = (ApiReason.PIN_REFUSED, ApiReason.POD_UNKNOWN)
CONFLICT = "NameTaken"


class Refused(NamedTuple):
    """Why something of an object is not so."""

    reason: str
    """A word in CamelCase, for conditions."""
    message: str


class Outcome(msgspec.Struct, kw_only=True):
    """What came of one LoraAdapter."""

    wish: AdapterWish
    refused: Refused | None = None
    """It is not declared."""
    pin: Refused | None = None
    """It is declared, and not kept where it should be."""


class Wishes:
    """What the API server wants of one picker."""

    def __init__(self, driver: Driver, operations: Operations, *, settings: Settings) -> None:
        """Change nothing yet; `settings` are those of the configuration."""
        self._driver = driver
        self._operations = operations
        self._file = settings
        self._aliases: dict[str, Alias] = {}
        self._adapters: dict[AdapterName, Adapter] = {}
        """As last declared from here."""
        self._extra: tuple[tuple[AffinityGroup, ...], tuple[Schedule, ...]] = ((), ())
        self.pending = False
        """Whether something was refused that may be possible later."""

    # -- aliases

    def set_aliases(self, wanted: Mapping[str, Alias]) -> dict[str, str]:
        """Make these the aliases that come from here; what is refused, by name."""
        refused: dict[str, str] = {}
        for name in [name for name in self._aliases if name not in wanted]:
            self._take_back(name)
        for name, alias in wanted.items():
            if self._driver.fleet.state.aliases.get(name) == alias:
                self._aliases[name] = alias
                continue
            try:
                self._operations.set_alias(alias)
                self._aliases[name] = alias
            except OperationError as error:
                refused[name] = f"{name}: {error}"
        return refused

    def _take_back(self, name: str) -> None:
        del self._aliases[name]
        declared = next((alias for alias in self._file.aliases if alias.name == name), None)
        try:
            if declared is not None:
                self._operations.set_alias(declared)
            elif name in self._driver.fleet.state.aliases:
                self._operations.clear_alias(name)
        except OperationError:
            pass  # somebody else moved it, and it is theirs now

    # -- adapters

    def set_adapters(self, wishes: Sequence[AdapterWish]) -> dict[str, Outcome]:
        """Make these the adapters that come from here, oldest first; what came of each, by its object's name."""
        outcomes: dict[str, Outcome] = {}
        owner: dict[AdapterName, str] = {}
        for wish in wishes:
            outcome = outcomes[wish.object_name] = Outcome(wish=wish)
            first = owner.setdefault(wish.adapter.name, wish.object_name)
            if first != wish.object_name:
                message = f"LoraAdapter {first} is older and has the name {wish.adapter.name}"
                outcome.refused = Refused(CONFLICT, message)
            else:
                self._declare(wish.adapter, outcome)
        left = [name for name in self._adapters if name not in owner]
        stuck = [name for name in left if not self._retire(name)]
        self._settle([outcome.wish for outcome in outcomes.values() if outcome.refused is None])
        self.pending = bool(stuck) or any(each.refused or each.pin for each in outcomes.values())
        return outcomes

    def _declare(self, adapter: Adapter, outcome: Outcome) -> None:
        if self._stands(adapter):
            return
        try:
            self._operations.declare(adapter)
            self._adapters[adapter.name] = adapter
            if adapter.pin is not None and self._driver.fleet.state.pins.get(adapter.name) != adapter.pin:
                self._operations.pin(adapter.name, adapter.pin)  # somebody took it away; the object still says so
        except OperationError as error:
            refused = Refused(_word(error.reason), str(error))
            if error.reason not in _WITHOUT_PIN or adapter.pin is None:
                outcome.refused = refused
                return
            outcome.pin = refused
            self._declare_without(adapter, outcome)

    def _declare_without(self, adapter: Adapter, outcome: Outcome) -> None:
        """A pin that does not fit takes nothing else away: the one before it stays."""
        before = self._adapters.get(adapter.name)
        reduced = msgspec.structs.replace(adapter, pin=before.pin if before is not None else None)
        if self._stands(reduced):
            return
        try:
            self._operations.declare(reduced)
            self._adapters[adapter.name] = reduced
        except OperationError as error:
            outcome.refused = Refused(_word(error.reason), str(error))

    def _stands(self, adapter: Adapter) -> bool:
        """Whether it is declared like this, and nobody changed that since."""
        state = self._driver.fleet.state
        known = state.adapters.get(adapter.name)
        return (
            self._adapters.get(adapter.name) == adapter
            and known is not None
            and known.source == adapter.source
            and state.pins.get(adapter.name) == adapter.pin
        )

    def _retire(self, name: AdapterName) -> bool:
        """Whether it is not declared from here any more."""
        declared = next((each for each in self._file.adapters if each.name == name), None)
        try:
            if declared is not None:
                self._operations.declare(declared)
            elif name in self._driver.fleet.state.adapters:
                self._operations.retire(name)
        except OperationError as error:
            if error.reason is ApiReason.IN_USE:
                return False
        del self._adapters[name]
        return True

    # -- groups and schedules

    def _settle(self, wishes: Sequence[AdapterWish]) -> None:
        """Groups and schedules are settings: those of the configuration, and these."""
        taken = {group.name for group in self._file.groups}
        groups = tuple(wish.group for wish in wishes if wish.group is not None and wish.group.name not in taken)
        schedules = tuple(each for wish in wishes for each in wish.schedules)
        if (groups, schedules) == self._extra:
            return
        self._extra = (groups, schedules)
        state = self._driver.fleet.state
        settings = msgspec.structs.replace(
            state.settings,
            groups=(*self._file.groups, *groups),
            schedules=(*self._file.schedules, *schedules),
            # As they are now: what the admin API changed must not change back.
            aliases=tuple(state.aliases.values()),
            adapters=tuple(
                state.adapters[each.name] for each in state.settings.adapters if each.name in state.adapters
            ),
        )
        self._driver.submit(lambda t, i: ConfigChanged(t=t, id=i, settings=settings))


def _word(reason: ApiReason) -> str:
    return "".join(part.capitalize() for part in reason.value.replace("-", "_").split("_"))
