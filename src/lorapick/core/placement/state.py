"""What placement remembers of one fleet. Only `core.placement` changes it, and only within `Fleet.apply`.

Not here: behaviour (see `core.placement.controller`, `core.placement.guard`).
"""

from collections import OrderedDict
from math import inf
from typing import Any, NamedTuple

from lorapick.core.placement.commands import Commands
from lorapick.core.placement.keeping import Keeps
from lorapick.core.placement.pins import Pinned
from lorapick.core.placement.wants import Want
from lorapick.model.placement import AdapterFacts, Why
from lorapick.model.units import AdapterName, PodName, Seconds

MOST_REFUSALS = 512


class Order(NamedTuple):
    """One thing that an operator asked for, until it is done."""

    want: Want
    once: bool
    """Done when it is loaded; else kept until `want.until`."""
    asked: Seconds
    leaves: PodName | None = None
    """Pod that is to lose it once it is loaded (a move)."""


class Refusal(NamedTuple):
    """What the guard said last of a pair."""

    reason: str
    why: Why
    since: Seconds


class Placement:
    """State of the controller."""

    __slots__ = (
        "assigned", "commands", "facts", "keeps", "leaving", "longest_missing", "missing_since", "next_tick", "orders",
        "pinned", "plan", "problems", "refusals", "retiring", "said_of_pins", "unknown", "unloads", "unwanted",
        "wall_offset", "wanted", "warming",
    )  # fmt: skip

    def __init__(self) -> None:
        self.commands = Commands()
        self.keeps: dict[int, Keeps] = {}
        """By row; only of pods where something is pinned or that are reserved."""
        self.pinned = Pinned({}, {})
        self.said_of_pins: dict[AdapterName, str] = {}
        """Problems of pins that a note told of."""
        self.orders: list[Order] = []
        self.unloads: dict[tuple[int, AdapterName], Why] = {}
        """Unloads that are wanted and not done."""
        self.unwanted: dict[tuple[int, AdapterName], None] = {}
        """Names that the operator took from a pod: they are not told to it again until the operator loads them."""
        self.unknown: dict[int, tuple[tuple[int, int], list[AdapterName], object]] = {}
        """Names that a pod should know and does not, as of its last list."""
        self.assigned: dict[tuple[Why, str, AdapterName], tuple[int, ...]] = {}
        """Rows that each want was given, so that it keeps them."""
        self.wanted: dict[int, dict[AdapterName, Why]] = {}
        """What each pod should hold, as of the last tick."""
        self.plan: dict[AdapterName, tuple[PodName, ...]] = {}
        """The solver's last answer."""
        self.warming: dict[int, Seconds] = {}
        """Pods that take no traffic yet, and since when."""
        self.leaving: dict[int, Seconds] = {}
        """Pods that drain and still serve what nobody else has, and until when at most."""
        self.retiring: dict[AdapterName, None] = {}
        self.problems: dict[AdapterName, str] = {}
        """What is wrong with an adapter's files, or that they have changed under its name."""
        self.facts: dict[AdapterName, AdapterFacts] = {}
        self.refusals: OrderedDict[tuple[int, AdapterName], Refusal] = OrderedDict()
        self.missing_since: dict[tuple[int, AdapterName], Seconds] = {}
        """Pins that are not where they should be."""
        self.longest_missing: Seconds = 0.0
        """For how long a pin that came back was away, at most."""
        self.wall_offset: Seconds | None = None
        """Unix time minus the driver's; None: nobody has told the time of day."""
        self.next_tick: Seconds = inf

    def load_began(self, row: int, *, now: Seconds) -> None:
        """A request makes a pod load; where something is pinned, who goes next is looked at before anybody else."""
        self.commands.load_began(row, now=now)
        if row in self.keeps:
            self.hurry(now)

    def hurry(self, now: Seconds) -> None:
        """Something happened that the next tick should not wait for."""
        self.next_tick = min(self.next_tick, now)

    def refused(self, row: int, adapter: AdapterName, *, refusal: Refusal) -> bool:
        """Remember what the guard said; whether that is news."""
        before = self.refusals.pop((row, adapter), None)
        same = before is not None and before.reason == refusal.reason and before.why is refusal.why
        self.refusals[row, adapter] = before if same and before is not None else refusal
        if len(self.refusals) > MOST_REFUSALS:
            self.refusals.popitem(last=False)
        return not same

    def forget_pod(self, row: int) -> None:
        """The pod is gone."""
        self.commands.forget_pod(row)
        self.keeps.pop(row, None)
        self.wanted.pop(row, None)
        self.warming.pop(row, None)
        self.leaving.pop(row, None)
        self.unknown.pop(row, None)
        tables: tuple[dict[tuple[int, AdapterName], Any], ...]
        tables = (self.refusals, self.missing_since, self.unloads, self.unwanted)
        for table in tables:
            for pair in [pair for pair in table if pair[0] == row]:
                del table[pair]

    def restarted(self, row: int) -> None:
        """The pod's process is new."""
        self.commands.forget_pod(row)
