"""Preloads at set times [R3.5]: who should be loaded by the calendar now.

In: the schedules of the configuration; the driver's clock and the wall clock, together. Out: wants, each with its end.
Not here: when a cron expression fires (see `core.placement.calendar`), and which pods are taken.

It is asked every second and answers by state, not by what it saw happen: who starts late, sleeps, or has its wall clock
put right gets what should be loaded now. Each schedule's next change is reckoned once; in between, an answer costs one
comparison.
"""

from collections.abc import Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

from lorapick.core.placement.calendar import END, Firings
from lorapick.core.placement.cron import parse_cron
from lorapick.core.placement.wants import Want, names_apart
from lorapick.model.adapters import Schedule
from lorapick.model.placement import Why
from lorapick.model.units import Seconds

_JUMP: Seconds = 1.0
"""So far may the wall clock leave the driver's before everything is reckoned anew."""
_NEVER = float("inf")


class Span(NamedTuple):
    """One time for which a schedule wants its adapters loaded; Unix time, end exclusive."""

    start: Seconds
    end: Seconds


def active(firings: Firings, *, lasts: Seconds, wall: Seconds) -> Span | None:
    """The span that `wall` is in, from the latest firing; `lasts` counts elapsed seconds, whatever clocks show."""
    start = firings.last(wall, within=lasts)
    return Span(start, start + lasts) if start is not None else None


class Schedules:
    """What all schedules want."""

    __slots__ = ("_changes", "_due", "_firings", "_names", "_offset", "_schedules", "_wants")

    def __init__(self, schedules: Sequence[Schedule]) -> None:
        """Read the cron expressions.

        Raises:
            CronError: a cron expression that is none.
            CalendarError: a time zone that this machine's database does not have.
        """
        self._schedules = tuple(schedules)
        self._firings = [Firings(parse_cron(each.cron), each.timezone) for each in schedules]
        self._names = names_apart((f"{each.cron} {each.timezone}", each.selector) for each in schedules)
        self._wants: list[tuple[Want, ...]] = [()] * len(self._schedules)
        """By schedule."""
        self._changes: list[tuple[Seconds, int]] = []
        """A heap of the next change of each schedule, on the wall clock."""
        self._offset: Seconds | None = None
        """Wall clock less driver's clock when all was reckoned last."""
        self._due: tuple[Want, ...] = ()

    def due(self, wall: Seconds, *, now: Seconds) -> tuple[Want, ...]:
        """Who should be loaded at Unix time `wall`, which is `now` on the driver's clock; in the order of the file.

        While nothing changes it is the same tuple as before.
        """
        if not 0 <= wall < END:  # no time of any calendar
            self._offset = None
            return ()
        if self._offset is None or abs(wall - now - self._offset) > _JUMP:
            self._offset = wall - now
            self._changes = [(self._reckon(at, wall), at) for at in range(len(self._schedules))]
            heapify(self._changes)
        elif not self._changes or self._changes[0][0] > wall:
            return self._due
        while self._changes and self._changes[0][0] <= wall:
            at = self._changes[0][1]
            heapreplace(self._changes, (self._reckon(at, wall), at))
        self._due = tuple(want for wants in self._wants for want in wants)
        return self._due

    def next_change(self) -> Seconds | None:
        """Unix time at which `due` will answer otherwise, as of the last time it was asked; None: never."""
        return self._changes[0][0] if self._changes and self._changes[0][0] < _NEVER else None

    def _reckon(self, at: int, wall: Seconds) -> Seconds:
        """Set the wants of one schedule; the time of its next change, later than `wall`."""
        schedule, firings = self._schedules[at], self._firings[at]
        span = active(firings, lasts=schedule.lasts, wall=wall)
        self._wants[at] = self._wanted(at, span.end) if span is not None else ()
        following = firings.after(wall)
        return min(_NEVER if following is None else following, _NEVER if span is None else span.end)

    def _wanted(self, at: int, end: Seconds) -> tuple[Want, ...]:
        schedule = self._schedules[at]
        return tuple(
            Want(
                adapter,
                Why.SCHEDULE,
                self._names[at],
                replicas=schedule.replicas,
                selector=schedule.selector,
                until=end - (self._offset or 0.0),
            )
            for adapter in schedule.adapters
        )
