"""Commands that were given to pods and have not been answered, and what was spent on them.

In: commands as they are given, and what came of them. Out: whether a pod may be given another; how many loads it has
had; how often a pair of pod and adapter failed. One load, unload or registration at a time per pod, and one touch
beside it. A command of which nothing is heard for `LONGEST` counts as failed: drivers give up sooner.
Not here: which commands are wise (see `core.placement.guard`).
"""

from collections import deque
from enum import Enum, StrEnum
from math import inf
from typing import Any, NamedTuple, TypeVar

from lorapick.model.placement import Why
from lorapick.model.units import AdapterName, Seconds

LONGEST: Seconds = 90.0
MINUTE: Seconds = 60.0
PATIENT = 8
"""Failures in a row up to which a pair is tried again at the next tick; from then on after pauses that double."""
SOON: Seconds = 0.5
"""A pair that failed is left alone for so long at least, however soon the next tick comes."""
PAUSE: Seconds = 5.0
LONGEST_PAUSE: Seconds = 120.0
REMEMBERED = 20_000
"""Pairs of which failures and loads are remembered."""


class Kind(StrEnum):
    """What a pod was told."""

    LOAD = "load"
    REGISTER = "register"
    UNLOAD = "unload"
    TOUCH = "touch"


class Failed(Enum):
    """How a command ended."""

    NO = "done"
    THIS_TIME = "failed"
    LASTING = "failed, and will until something changes"


class Brings(Enum):
    """What a command is to do for an adapter that is in no slot."""

    NOTHING = "nothing"
    HALFWAY = "into host memory"
    """A touch brings it on from there; both are one move."""
    IN = "into a slot"


class Command(NamedTuple):
    """One command under way."""

    kind: Kind
    adapter: AdapterName
    why: Why
    asked: Seconds
    brings: Brings = Brings.NOTHING
    uses: int = -1
    """Of a touch: uses of the pod's slots when it was asked for; another number at its end: some came since."""


class Commands:
    """Of all pods, by row."""

    __slots__ = (
        "_failures",
        "_halfway",
        "_loads",
        "_moves",
        "_settled",
        "_touched",
        "failed",
        "given",
        "succeeded",
        "touches",
        "under_way",
    )  # fmt: skip

    def __init__(self) -> None:
        self.under_way: dict[int, Command] = {}
        """Loads, unloads and registrations."""
        self.touches: dict[int, Command] = {}
        self._touched: dict[int, tuple[Seconds, int]] = {}
        """By row: when the last touch ended, and how many in a row have failed."""
        self._loads: dict[int, deque[Seconds]] = {}
        """When the loads of the last minute began, by row."""
        self._moves: deque[Seconds] = deque()
        """When loads that nobody insisted on began, of the whole fleet."""
        self._failures: dict[tuple[int, AdapterName], tuple[int, Seconds]] = {}
        """Failures in a row, and until when nobody tries again."""
        self._halfway: dict[tuple[int, AdapterName], None] = {}
        """Brought into host memory, and yet to be brought into a slot."""
        self._settled: dict[tuple[int, AdapterName], Seconds] = {}
        """When an adapter was last brought there by command."""
        self.given: dict[tuple[Kind, Why], int] = {}
        self.succeeded: dict[Kind, int] = {}
        self.failed: dict[Kind, int] = {}

    # -- giving

    def busy(self, row: int) -> bool:
        """Whether a pod has a command other than a touch."""
        return row in self.under_way

    def bringing(self, row: int, adapter: AdapterName) -> bool:
        """Whether a pod was told to bring an adapter in, and has not answered."""
        commands = (self.under_way.get(row), self.touches.get(row))
        return any(each is not None and each.adapter == adapter and each.brings is Brings.IN for each in commands)

    def unloading(self, adapter: AdapterName) -> list[int]:
        """Rows of pods that are told to forget an adapter."""
        return [
            row for row, command in self.under_way.items() if command.kind is Kind.UNLOAD and command.adapter == adapter
        ]

    def begin(self, row: int, command: Command, *, insisted: bool = True) -> None:
        """A command is given; what brings an adapter and is not `insisted` on counts against the churn budget."""
        table = self.touches if command.kind is Kind.TOUCH else self.under_way
        assert row not in table, f"row {row} has a command already: {table[row]}"
        table[row] = command
        self.given[command.kind, command.why] = self.given.get((command.kind, command.why), 0) + 1
        pair, brings = (row, command.adapter), command.brings
        if brings is not Brings.NOTHING:
            _remember(self._settled, pair, value=command.asked)
            second = brings is Brings.IN and self.halfway(*pair)
            if not insisted and not second:
                self._moves.append(command.asked)
        if brings is Brings.HALFWAY:
            _remember(self._halfway, pair, value=None)
        elif brings is Brings.IN:
            self._halfway.pop(pair, None)

    def end(
        self, row: int, adapter: AdapterName, *, kind: Kind, now: Seconds, failed: Failed = Failed.NO
    ) -> Command | None:
        """What came of a command; None: it was none of ours, or was given up before."""
        table = self.touches if kind is Kind.TOUCH else self.under_way
        command = table.get(row)
        if command is None or command.adapter != adapter or command.kind is not kind:
            return None
        del table[row]
        counts = self.succeeded if failed is Failed.NO else self.failed
        counts[kind] = counts.get(kind, 0) + 1
        if kind is Kind.TOUCH:
            self._touched[row] = (now, 0 if failed is Failed.NO else self._touched.get(row, (now, 0))[1] + 1)
        if failed is Failed.NO:
            self._failures.pop((row, adapter), None)
        elif kind is not Kind.TOUCH:
            count = self._failures.get((row, adapter), (0, now))[0] + 1
            if failed is Failed.LASTING:
                count = max(count, PATIENT)
            _remember(self._failures, (row, adapter), value=(count, now + _pause(count)))
        return command

    def since_touch(self, row: int, *, now: Seconds) -> Seconds:
        """Time since a pod last did what a touch asked for; infinity when the last one failed: it is tried again."""
        at, failures = self._touched.get(row, (-inf, 0))
        return inf if failures else now - at

    def may_touch(self, row: int, *, now: Seconds) -> bool:
        """Whether a pod may be asked for a touch: none is under way, and it has not failed several just now."""
        at, failures = self._touched.get(row, (-inf, 0))
        pause = min(LONGEST_PAUSE, 2.0 ** min(failures, 16)) if failures else 0.0
        return row not in self.touches and now - at >= pause

    def overdue(self, now: Seconds) -> list[tuple[int, Command]]:
        """Commands of which nothing was heard for too long."""
        found = [*self.under_way.items(), *self.touches.items()]
        return [(row, command) for row, command in found if now - command.asked >= LONGEST]

    def forget_pod(self, row: int) -> None:
        """The pod is gone, or its process is new: nothing that was asked of it will happen."""
        self.under_way.pop(row, None)
        self.touches.pop(row, None)
        self._touched.pop(row, None)
        self._loads.pop(row, None)
        for table in (self._failures, self._settled, self._halfway):
            _forget(table, row)

    # -- what was spent

    def load_began(self, row: int, *, now: Seconds) -> None:
        """A pod begins a load, whoever caused it."""
        times = self._loads.get(row)
        if times is None:
            times = self._loads[row] = deque(maxlen=1024)
        times.append(now)

    def loads_in_last_minute(self, row: int, *, now: Seconds) -> int:
        """Loads of a pod."""
        times = self._loads.get(row)
        return _within(times, now) if times else 0

    def moves_in_last_minute(self, now: Seconds) -> int:
        """Loads that nobody insisted on."""
        return _within(self._moves, now)

    def failures(self, row: int, adapter: AdapterName) -> int:
        """Failures in a row."""
        return self._failures.get((row, adapter), (0, 0.0))[0]

    def resting(self, row: int, adapter: AdapterName, *, now: Seconds) -> bool:
        """Whether a pair has failed so often that nobody tries it now."""
        return now < self._failures.get((row, adapter), (0, 0.0))[1]

    def halfway(self, row: int, adapter: AdapterName) -> bool:
        """Whether it was brought into host memory, and is yet to be brought into a slot."""
        return (row, adapter) in self._halfway

    def brought(self, row: int, adapter: AdapterName) -> Seconds | None:
        """When an adapter was last brought there by command; None: never, or it is forgotten."""
        return self._settled.get((row, adapter))


def _within(times: "deque[Seconds]", now: Seconds) -> int:
    while times and times[0] <= now - MINUTE:
        times.popleft()
    return len(times)


def _pause(failures: int) -> Seconds:
    if failures < PATIENT:
        return SOON
    return min(LONGEST_PAUSE, PAUSE * 2.0 ** min(failures - PATIENT, 16))


def _forget(table: dict[tuple[int, AdapterName], Any], row: int) -> None:
    for pair in [pair for pair in table if pair[0] == row]:
        del table[pair]


V = TypeVar("V")


def _remember(table: dict[tuple[int, AdapterName], V], pair: tuple[int, AdapterName], *, value: V) -> None:
    table.pop(pair, None)
    table[pair] = value
    if len(table) > REMEMBERED:
        del table[next(iter(table))]
