"""What the last requests of an adapter say of the present, which a long memory learns too late.

In: the adapter of each request. Out: the rate of the stretch of requests that is going on, and the most that a rate can
still be after a silence. Not here: how often it is asked for in the long run (see `core.retention.demand`).

Requests of a stretch come at gaps that resemble each other. It is over when nothing came for five of its usual gaps:
for an adapter with one request a second that is 5 s, for a batch of 200 in 2 s it is at once (a floor of 2 s allows
for the batches and retries of clients). So a batch is worth much while it runs, when evicting its adapter would only
bring it back, and nothing as soon as it is over. A single request is no stretch.

And whoever was silent for a time in which its rate would have brought more than three requests (chance lets one in
twenty be silent so long) no longer has that rate: that is how a ghost is told from a popular adapter in minutes.
"""

from math import inf

from lorapick.core.retention.scored import MOST_NAMES
from lorapick.model.units import AdapterName, Seconds

GAPS_OF_SILENCE = 5.0
"""By then e^-5 of steady (Poisson) stretches would still go on: 0.7 %."""
LEAST_SILENCE: Seconds = 2.0
NEWEST_GAP = 0.125
"""Share of the newest gap in the usual one: about the last eight count."""
SHORTEST: Seconds = 0.01
"""Shorter gaps and silences count as this long."""
MISSED = 3.0
"""Requests that a rate may have missed; e^-3 is 5 %."""


class Recency:
    """The last request and the present stretch of each adapter. Remembers `MOST_NAMES`, those used last."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[AdapterName, tuple[Seconds, Seconds | None]] = {}
        """Time of the last request, usual gap of the stretch (None: it has one request), in order of use."""

    def add(self, adapter: AdapterName, now: Seconds) -> None:
        """One request."""
        before = self._known.pop(adapter, None)
        self._known[adapter] = now, None if before is None else _gap(before, now)
        if len(self._known) > MOST_NAMES:
            del self._known[next(iter(self._known))]

    def stretch(self, adapter: AdapterName, now: Seconds) -> float:
        """Requests per second of the stretch that it is in, no more than one in the time since the last; 0: in none."""
        last, gap = self._known.get(adapter, (now, None))
        if gap is None or _over(last, gap, now=now):
            return 0.0
        return 1.0 / max(gap, now - last, SHORTEST)

    def most(self, adapter: AdapterName, now: Seconds) -> float:
        """The highest rate that agrees with the silence since its last request; infinity for one without a request."""
        known = self._known.get(adapter)
        return inf if known is None else MISSED / max(now - known[0], SHORTEST)


def _gap(before: tuple[Seconds, Seconds | None], now: Seconds) -> Seconds | None:
    last, usual = before
    if usual is None:
        return now - last
    if _over(last, usual, now=now):
        return None
    return usual + NEWEST_GAP * (now - last - usual)


def _over(last: Seconds, gap: Seconds, *, now: Seconds) -> bool:
    return now - last > max(LEAST_SILENCE, GAPS_OF_SILENCE * gap)
