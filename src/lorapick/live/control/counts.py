"""What commands to pods came to, in numbers.

In: each command's end. Out: `ControlCounts`, a value. Not here: who shows them (see `live.metrics`).
"""

from collections import Counter, defaultdict

import msgspec

from lorapick.live.control.problems import Outcome
from lorapick.model.units import Seconds


class ControlCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Commands of one picker since its start; a command for several adapters counts once for each."""

    ended: dict[tuple[str, str], int]
    """By kind (`load`, `unload`, `register`, `touch`) and outcome (a value of `problems.Outcome`); only ever grow."""
    seconds: dict[str, Seconds]
    """By kind: time from a command's turn to its end, summed over those whose turn came. Divided by `begun`: a mean."""
    begun: dict[str, int]
    """By kind: those whose turn came."""
    waiting: int
    """Commands that wait for their turn now."""
    under_way: int
    """Pods that carry out a command now."""


class Tally:
    """Counts as they grow."""

    def __init__(self) -> None:
        self._ended: Counter[tuple[str, str]] = Counter()
        self._seconds: defaultdict[str, Seconds] = defaultdict(float)
        self._begun: Counter[str] = Counter()

    def end(self, kind: str, outcome: Outcome, *, seconds: Seconds | None) -> None:
        """A command has ended; `seconds` None: its turn never came."""
        self._ended[kind, outcome.value] += 1
        if seconds is not None:
            self._begun[kind] += 1
            self._seconds[kind] += seconds

    def shown(self, *, waiting: int, under_way: int) -> ControlCounts:
        """As a value."""
        return ControlCounts(
            ended=dict(self._ended),
            seconds=dict(self._seconds),
            begun=dict(self._begun),
            waiting=waiting,
            under_way=under_way,
        )
