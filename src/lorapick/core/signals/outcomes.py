"""How requests fare: latency, first bytes, failures, those that nobody answers.

In: ends of requests, of whatever kind. Out: shares and quantiles of the last minute, and of the last ten where there is
little traffic. Not here: what is promised to users (see `core.thrash_alarms`).

A client that gave up tells how long it waited at least, so it counts as late; what is still in flight does too (see
`core.signals.views`), since a fleet that answers nobody has no latency to show.
"""

from typing import NamedTuple

from lorapick.core.signals.windows import Durations, Sliding, above
from lorapick.model.requests import Outcome
from lorapick.model.signals import RATE_WINDOW
from lorapick.model.units import Ratio, Seconds

LONG_WINDOW: Seconds = 600.0
"""Looked back on where a minute has too few requests to say anything."""
SILENCE: Seconds = 300.0
"""For how long nobody may be served while requests come."""
ENOUGH = 20
"""Requests of a minute from which on shares of them say something."""
FEW = 5
"""Requests of ten minutes below which nobody is told anything of them."""
SPREAD = 3
"""Stretches (a twelfth of the window each) in which some must have failed."""
TOO_MANY_REQUESTS = 429
_SERVED, _ABANDONED = Outcome.SERVED, Outcome.ABANDONED


class Failures(NamedTuple):
    """Of requests that ended lately."""

    failed: int
    ended: int
    recent: int
    """Of those that failed, the ones of the last five minutes."""
    lasting: bool
    """Whether they did not fail all at once, as the requests of a pod do that restarts."""

    @property
    def share(self) -> Ratio | None:
        """None: nothing ended."""
        return self.failed / self.ended if self.ended else None


class Outcomes:
    """Counts of the last minutes."""

    def __init__(self) -> None:
        self.ended = Sliding(RATE_WINDOW)
        """But for those that gave up."""
        self.errors = Sliding(RATE_WINDOW)
        self.latency = Durations(RATE_WINDOW)
        """Of served requests, from arrival to end."""
        self.ttft = Durations(RATE_WINDOW)
        self.gave_up = Durations(RATE_WINDOW)
        """For how long those had waited that gave up."""
        self._ended_long = Sliding(LONG_WINDOW)
        self._errors_long = Sliding(LONG_WINDOW)
        self._errors_recent = Sliding(SILENCE)
        self._latency_long = Durations(LONG_WINDOW)
        self._ttft_long = Durations(LONG_WINDOW)
        self._arrived = Sliding(SILENCE)
        self._served = Sliding(SILENCE)
        self._since: Seconds | None = None
        """When the first request came."""

    def arrived(self, *, now: Seconds) -> None:
        """A request came."""
        if self._since is None:
            self._since = now
        self._arrived.add(now)

    def refused(self, status: int, *, now: Seconds) -> None:
        """We answered one ourselves. What is a client's mistake is no error of ours, and no service either."""
        self._end(now)
        if status >= 500 or status == TOO_MANY_REQUESTS:
            self._fail(now)
        else:
            self._served.add(now)

    def body_started(self, seconds: Seconds, *, now: Seconds) -> None:
        """The first bytes of an answer came, so long after its request had arrived."""
        self.ttft.add(seconds, now=now)
        self._ttft_long.add(seconds, now=now)

    def left(self, outcome: Outcome, status: int | None, *, seconds: Seconds, now: Seconds) -> None:
        """One left, so long after it had arrived."""
        if outcome is _ABANDONED:
            self.gave_up.add(seconds, now=now)
            return
        self._end(now)
        if outcome is _SERVED:
            self._served.add(now)
            self.latency.add(seconds, now=now)
            self._latency_long.add(seconds, now=now)
        elif status is None or status >= 500 or status == TOO_MANY_REQUESTS:
            self._fail(now)
        else:
            self._served.add(now)

    def _end(self, now: Seconds) -> None:
        self.ended.add(now)
        self._ended_long.add(now)

    def _fail(self, now: Seconds) -> None:
        self.errors.add(now)
        self._errors_long.add(now)
        self._errors_recent.add(now)

    def failures(self, now: Seconds) -> Failures:
        """Of the last minute where it had enough requests, else of the last ten."""
        ended, recent = self.ended.total(now), self._errors_recent.total(now)
        if ended >= ENOUGH:
            return Failures(self.errors.total(now), ended, recent, self.errors.spread(now) >= SPREAD)
        lasting = self._errors_long.spread(now) >= SPREAD
        return Failures(self._errors_long.total(now), self._ended_long.total(now), recent, lasting)

    def p95(self, which: str, *, now: Seconds) -> Seconds | None:
        """Of `latency` or `ttft`, as for failures; None: there were too few."""
        short, long = (self.latency, self._latency_long) if which == "latency" else (self.ttft, self._ttft_long)
        if short.count(now) >= ENOUGH:
            return short.quantile(0.95, now=now)
        return long.quantile(0.95, now=now) if long.count(now) >= FEW else None

    def late(self, promised: Seconds, *, now: Seconds) -> int:
        """Clients that gave up within the last minute, having waited for longer than that."""
        return above(self.gave_up.merged(now), promised)

    def nobody_served(self, now: Seconds) -> int:
        """Requests of the last five minutes, when none of them was served in that time; else 0."""
        if self._since is None or now - self._since < SILENCE or self._served.total(now):
            return 0
        return self._arrived.total(now)
