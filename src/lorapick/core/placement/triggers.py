"""Preloads on named events [R3.5]: a tenant logs in, a document comes in, and who will be called next is loaded.

In: events with attributes, the triggers of the configuration. Out: wants, each until its time has passed; refusals with
their reason. Not here: how events come in (see the admin API), and which pods are taken.
Bounded: of `MOST` wants the one that was fired longest ago gives way, and is counted.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from lorapick.core.near_names import NearNames
from lorapick.core.placement.wants import Want, names_apart
from lorapick.model.adapters import Trigger
from lorapick.model.placement import Why
from lorapick.model.units import AdapterName, Seconds

MOST = 10_000
"""Wants at once."""
LONGEST_NAME = 256
"""Letters of a filled name."""
_SHOWN = 80
"""Letters of a stranger's text that a refusal repeats."""
_NEVER: Seconds = float("inf")
PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]*)\}")
"""An attribute of the event, in `preload`."""


class Refused(StrEnum):
    """Why an event, or one of its triggers, loads nothing."""

    UNKNOWN_EVENT = "unknown_event"
    MISSING_ATTRIBUTE = "missing_attribute"
    BAD_NAME = "bad_name"
    UNKNOWN_ADAPTER = "unknown_adapter"


class Refusal(NamedTuple):
    """What did not become a want."""

    why: Refused
    words: str
    """For people: the value, what is wrong with it, the remedy."""


class Fired(NamedTuple):
    """What came of one event."""

    wants: tuple[Want, ...] = ()
    refusals: tuple[Refusal, ...] = ()


class Triggers:
    """The triggers, and what they want now."""

    __slots__ = ("_active", "_by_event", "_due", "_ends", "_names", "_near", "_triggers", "dropped", "most")

    def __init__(self, triggers: Sequence[Trigger], *, most: int = MOST) -> None:
        self._triggers = tuple(triggers)
        self._by_event: dict[str, list[tuple[int, Trigger]]] = {}
        self._names = names_apart((each.event, each.selector) for each in triggers)
        for number, trigger in enumerate(triggers):
            self._by_event.setdefault(trigger.event, []).append((number, trigger))
        self._active: OrderedDict[tuple[int, AdapterName], Want] = OrderedDict()
        """By trigger and adapter; those that were fired longest ago first."""
        self._ends: Seconds = _NEVER
        """No want ends before this."""
        self._due: tuple[Want, ...] | None = ()
        """The answer while nothing changes; None: something did."""
        self._near = NearNames()
        self.most = most
        self.dropped = 0
        """Wants that gave way before their time, since there were too many."""

    def fired(
        self, name: str, attributes: Mapping[str, str], *, now: Seconds, known: Callable[[AdapterName], bool]
    ) -> Fired:
        """Take in one event; a want that is there already lasts from now on.

        Args:
            name: The event's.
            attributes: What fills the placeholders.
            now: On the driver's clock; never less than before.
            known: Whether there is such an adapter. Names of strangers become wants of existing adapters only.
        """
        triggers = self._by_event.get(name)
        if triggers is None:
            return Fired(refusals=(self._unknown_event(name, now),))
        self._expire(now)  # so that none that has ended counts as dropped
        wants: list[Want] = []
        refusals: list[Refusal] = []
        for number, trigger in triggers:
            adapter = _filled(trigger, attributes, known=known)
            if isinstance(adapter, Refusal):
                refusals.append(adapter)
                continue
            wants.append(
                Want(
                    adapter,
                    Why.TRIGGER,
                    self._names[number],
                    replicas=trigger.replicas,
                    selector=trigger.selector,
                    until=now + trigger.lasts,
                )
            )
            self._keep((number, adapter), wants[-1], ends=now + trigger.lasts)
        return Fired(tuple(wants), tuple(refusals))

    def due(self, now: Seconds) -> tuple[Want, ...]:
        """Wants whose time has not passed; those that were fired last come last."""
        self._expire(now)
        if self._due is None:
            self._due = tuple(self._active.values())
        return self._due

    def changed_to(self, triggers: Sequence[Trigger]) -> "Triggers":
        """These triggers instead; what an unchanged one wants is still wanted."""
        changed = Triggers(triggers, most=self.most)
        changed.dropped = self.dropped
        numbers = [triggers.index(each) if each in triggers else None for each in self._triggers]
        for (number, adapter), want in self._active.items():
            kept = numbers[number]
            if kept is not None and want.until is not None:
                changed._keep((kept, adapter), want, ends=want.until)
        return changed

    def _keep(self, key: tuple[int, AdapterName], want: Want, *, ends: Seconds) -> None:
        self._active[key] = want
        self._active.move_to_end(key)
        self._ends = min(self._ends, ends)
        self._due = None
        if len(self._active) > self.most:
            self._active.popitem(last=False)
            self.dropped += 1

    def _expire(self, now: Seconds) -> None:
        if now >= self._ends:
            for key in [key for key, want in self._active.items() if want.until is not None and want.until <= now]:
                del self._active[key]
            self._ends = min((want.until for want in self._active.values() if want.until is not None), default=_NEVER)
            self._due = None

    def _unknown_event(self, name: str, now: Seconds) -> Refusal:
        near = self._near.of(name, lambda: [*self._by_event], now=now)
        if near:
            hint = f"near ones: {', '.join(near)}"
        elif self._by_event:
            hint = "see `triggers` of the configuration"
        else:
            hint = "the configuration has no `triggers`"
        return Refusal(Refused.UNKNOWN_EVENT, f"no trigger is for the event {_shown(name)}; {hint}")


def _filled(
    trigger: Trigger, attributes: Mapping[str, str], *, known: Callable[[AdapterName], bool]
) -> AdapterName | Refusal:
    """The adapter that one trigger wants at an event with these attributes."""
    missing = [name for name in PLACEHOLDER.findall(trigger.preload) if name not in attributes]
    if missing:
        there = ", ".join(_shown(name) for name in list(attributes)[:5]) or "none"
        return Refusal(
            Refused.MISSING_ATTRIBUTE,
            f'"{trigger.preload}" needs the attribute "{missing[0]}" of {trigger.event}, which has {there}',
        )
    adapter = PLACEHOLDER.sub(lambda found: attributes[found[1]], trigger.preload)
    if len(adapter) > LONGEST_NAME:
        words = f'"{trigger.preload}" filled has {len(adapter)} letters; adapter names have at most {LONGEST_NAME}'
        return Refusal(Refused.BAD_NAME, words)
    if not adapter.isprintable() or any(letter == "," or letter.isspace() for letter in adapter):
        words = f'"{trigger.preload}" filled is {_shown(adapter)}; adapter names have no blank, comma or control letter'
        return Refusal(Refused.BAD_NAME, words)
    if not known(adapter):
        return Refusal(Refused.UNKNOWN_ADAPTER, f"there is no adapter {_shown(adapter)}; declare it, or add its files")
    return adapter


def _shown(text: str) -> str:
    """A stranger's text within quotes, cut and without control letters."""
    cut = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return '"' + "".join(letter if letter.isprintable() else "?" for letter in cut) + '"'
