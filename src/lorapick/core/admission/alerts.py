"""Which alerts stand, so that none flaps.

In: at each look, whether the condition of an alert holds. Out: Raise and Clear effects, which alternate for each alert.
Not here: the conditions (see `core.alarms`), what a driver makes of an alert.

An alert is raised when its condition has held for longer than it has not, by so many seconds (`after`): what comes and
goes is seen through, what comes rarely is not raised. It is cleared when its condition was not seen for `clear_after`.
"""

from typing import NamedTuple, TypeAlias

from lorapick.model.alerts import Alert
from lorapick.model.effects import Clear, Effect, Raise
from lorapick.model.units import PodName, Ratio, Seconds

EVERY: Seconds = 1.0
"""Time between two looks, when there are events."""
LONGEST_STEP: Seconds = 2.0
"""A look says nothing of more time than this before it."""
WINDOW: Seconds = 60.0
"""Of traffic that `Traffic` looks back on."""

Facts: TypeAlias = dict[str, str | float]


class Finding(NamedTuple):
    """What a look says of one alert."""

    alert: Alert
    begins: bool
    """Whether what raises it is there."""
    lasts: bool
    """Whether what keeps it is there; the same, or less."""
    after: Seconds
    """For how long it must have been there before the alert is raised."""
    facts: Facts
    """What there is to know; read only when it begins or lasts."""


class Standing(NamedTuple):
    """An alert that stands."""

    since: Seconds
    facts: Facts
    """As of the last look that saw it."""


class Traffic:
    """How much of the traffic of the last minute some of the requests were."""

    __slots__ = ("_totals",)

    def __init__(self) -> None:
        self._totals: list[tuple[Seconds, int, int]] = []
        """Totals at each look, oldest first; one of them is older than the window, or the very first."""

    def look(self, every: int, some: int, *, now: Seconds) -> tuple[int, Ratio]:
        """Given both totals, return how many of some kind there were lately, and their share of all."""
        totals = self._totals
        totals.append((now, every, some))
        while len(totals) > 1 and totals[1][0] <= now - WINDOW:
            del totals[0]
        _, first_every, first_some = totals[0]
        recent = some - first_some
        return recent, recent / (every - first_every) if recent else 0.0


class Alerts:
    """All of them."""

    __slots__ = ("_level", "_looked", "_seen", "due", "pressed", "standing", "traffic")

    def __init__(self) -> None:
        self.due: Seconds = float("-inf")
        """When to look again."""
        self.standing: dict[Alert, Standing] = {}
        """To be read only."""
        self.traffic = Traffic()
        """Of adapters on probation."""
        self.pressed: dict[PodName, Seconds] = {}
        """Since when pods have been under pressure, as of the last look."""
        self._looked: Seconds = float("-inf")
        self._level: dict[Alert, Seconds] = {}
        """For how long a condition has held, less the time that it has not; not below 0."""
        self._seen: dict[Alert, Seconds] = {}
        """When what keeps an alert that stands was seen last."""

    @property
    def looked(self) -> Seconds:
        """When somebody looked last; minus infinity: nobody has."""
        return self._looked

    def look(self, findings: list[Finding], *, clear_after: Seconds, now: Seconds, cause: int) -> list[Effect]:
        """Take what is found now and say what begins and what ends."""
        step = min(now - self._looked, LONGEST_STEP)
        self._looked, self.due = now, now + EVERY
        effects = (self._take(each, step=step, clear_after=clear_after, now=now, cause=cause) for each in findings)
        return [effect for effect in effects if effect is not None]

    def _take(self, found: Finding, *, step: Seconds, clear_after: Seconds, now: Seconds, cause: int) -> Effect | None:
        alert, standing = found.alert, self.standing.get(found.alert)
        if standing is None:
            level = self._level[alert] = max(0.0, self._level.get(alert, 0.0) + (step if found.begins else -step))
            if not found.begins or level < found.after:
                return None
            self.standing[alert], self._seen[alert] = Standing(now, found.facts), now
            return Raise(cause=cause, alert=alert, facts=found.facts)
        if found.lasts:
            self.standing[alert], self._seen[alert] = Standing(standing.since, found.facts), now
            return None
        # What takes long to be raised takes as long to be over; without pods (0) nothing is waited for.
        if now - self._seen[alert] < (max(clear_after, found.after) if clear_after else 0.0):
            return None
        del self.standing[alert], self._level[alert]
        return Clear(cause=cause, alert=alert, facts={"seconds": now - standing.since})

    def check(self) -> None:
        """Whatever stands was seen since it began, and not after the last look."""
        for alert, standing in self.standing.items():
            assert standing.since <= self._seen[alert] <= self._looked, f"{alert}: seen at {self._seen[alert]}"
