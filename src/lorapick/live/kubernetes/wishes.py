"""Rewrites and LoraAdapters, made true in a running picker through the doors of its admin API.

In: aliases and adapters as the API server has them. Out: declarations, pins, aliases, groups and schedules; and of each
object what was refused. Not here: HTTP, status (see `statuses`).

Level-based: each pass compares what is wanted with what is so, and does what differs; what is refused is tried again at
the next pass, since pods or adapters that it needs may have come. Only what came from here is taken back from here, and
what the configuration says under the same name is then said again.
"""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from lorapick.live.changes.naming import Naming
from lorapick.live.changes.submitting import Submitting
from lorapick.live.driver import Driver
from lorapick.live.operations import OperationError
from lorapick.model.adapters import Adapter, AffinityGroup, Alias, Schedule
from lorapick.model.events import ConfigChanged
from lorapick.model.settings import Settings
from lorapick.model.units import AdapterName, Seconds
from lorapick.wire.api import ApiReason
from lorapick.wire.kubernetes.adapter import AdapterWish

CONFLICT = "NameTaken"
SPENT_AT_ONCE: Seconds = 0.05
"""In a fleet of thousands of pods an adapter takes milliseconds to declare, and picks must not wait for a thousand."""


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
    stale: Refused | None = None
    """Its object cannot be read now; what it said before is so."""


class Wishes:
    """What the API server wants of one picker."""

    def __init__(self, driver: Driver, settings: Settings) -> None:
        """Change nothing yet; `settings` are those of the configuration."""
        self._driver = driver
        self._naming = Naming(Submitting(driver))
        self._file = settings
        self._aliases: dict[str, Alias] = {}
        self._adapters: dict[AdapterName, Adapter] = {}
        """As last declared from here."""
        self._extra: tuple[tuple[AffinityGroup, ...], tuple[Schedule, ...]] = ((), ())
        self.unfinished = False
        """Whether there was no time for all adapters; the next pass goes on."""

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
                self._naming.set_alias(alias)
                self._aliases[name] = alias
            except OperationError as error:
                refused[name] = f"{name}: {error}"
        return refused

    def _take_back(self, name: str) -> None:
        del self._aliases[name]
        declared = next((alias for alias in self._file.aliases if alias.name == name), None)
        try:
            if declared is not None:
                self._naming.set_alias(declared)
            elif name in self._driver.fleet.state.aliases:
                self._naming.clear_alias(name)
        except OperationError:
            pass  # somebody else moved it, and it is theirs now

    # -- adapters

    def set_adapters(self, wishes: Sequence[AdapterWish]) -> dict[str, Outcome]:
        """Make these the adapters that come from here, oldest first; what came of each, by its object's name."""
        outcomes: dict[str, Outcome] = {}
        owner: dict[AdapterName, str] = {}
        spent: Seconds = 0.0
        self.unfinished = False
        for wish in wishes:
            first = owner.setdefault(wish.adapter.name, wish.object_name)
            stands = self._stands(wish.adapter)
            if spent > SPENT_AT_ONCE and not stands:
                self.unfinished = True
                continue
            outcome = outcomes[wish.object_name] = Outcome(wish=wish)
            if first != wish.object_name:
                message = f"LoraAdapter {first} is older and has the name {wish.adapter.name}"
                outcome.refused = Refused(CONFLICT, message)
            elif not stands:
                began = time.perf_counter()
                self._declare(wish.adapter, outcome)
                spent += time.perf_counter() - began
        left = [name for name in self._adapters if name not in owner]
        for name in left:
            self._retire(name)
        if not self.unfinished:
            self._settle([outcome.wish for outcome in outcomes.values() if outcome.refused is None])
        return outcomes

    def _declare(self, adapter: Adapter, outcome: Outcome) -> None:
        try:
            self._naming.announce(adapter)
            self._adapters[adapter.name] = adapter
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

    def _retire(self, name: AdapterName) -> None:
        """Take back what was declared; while an alias leads there, the next pass tries again."""
        declared = next((each for each in self._file.adapters if each.name == name), None)
        try:
            if declared is not None:
                self._naming.announce(declared)
            elif name in self._driver.fleet.state.adapters:
                self._naming.retire(name)
        except OperationError as error:
            if error.reason is ApiReason.IN_USE:
                return
        del self._adapters[name]

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
