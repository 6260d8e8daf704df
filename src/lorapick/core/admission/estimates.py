"""What requests and loads take on this fleet, learnt from its own answers.

In: ends of requests, with what their pod had to do when they were sent. Out: seconds. Not here: what follows from them
(see `core.admission.prices`).

Before the first answers there are documented defaults; how fast they fade is `FADING`.
"""

from lorapick.model.settings import LoadTimes
from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds

FADING = 0.002
"""Weight of one answer against all before: the last 500 or so count."""
STEP = 0.05
"""By how much of itself one load moves an estimate, whatever that load took."""
SHORTEST, FARTHEST = 0.75, 20.0
"""Times what is documented (`load_times`) between which estimates of loads stay. Whoever takes loads for shorter than
they are thrashes, so what the operator says is doubted slowly in that direction."""
LONGEST_ANSWER = 10.0
"""Times what was expected beyond which an answer counts as no longer: one that hung says nothing of the others."""
_USUAL_LOAD = 4.0
"""Requests at a pod around which the defaults hold, give or take as many."""
_LEAST_SPREAD = 0.5
"""Variance of loads seen below which nothing can be said of their influence."""


class Service:
    """Seconds from dispatch to end of a request whose adapter was there: `base` + `each` x requests at its pod.

    A straight line through what was seen (least squares, fading). A batch that grows makes each of its steps longer,
    and a queue makes newcomers wait: over the range that a fleet works in both are near enough to a line.
    """

    __slots__ = ("_load", "_load_seconds", "_loads_squared", "_seconds", "base", "each")

    def __init__(self, *, base: Seconds = 0.3, each: Seconds = 0.02) -> None:
        self.base, self.each = base, each
        self._load = _USUAL_LOAD
        self._loads_squared = 2 * _USUAL_LOAD**2
        self._seconds = base + each * self._load
        self._load_seconds = base * self._load + each * self._loads_squared

    def served(self, load: float, seconds: Seconds) -> None:
        """One answer: `load` requests were at the pod when this one was sent there, itself not counted."""
        seconds = min(seconds, LONGEST_ANSWER * max(self.expected(load), 0.1))
        self._load += FADING * (load - self._load)
        self._seconds += FADING * (seconds - self._seconds)
        self._loads_squared += FADING * (load * load - self._loads_squared)
        self._load_seconds += FADING * (load * seconds - self._load_seconds)
        spread = self._loads_squared - self._load * self._load
        if spread > _LEAST_SPREAD:
            self.each = max(0.0, (self._load_seconds - self._load * self._seconds) / spread)
            self.base = max(0.0, self._seconds - self.each * self._load)

    def expected(self, load: float) -> Seconds:
        """For one more request at a pod with so many."""
        return self.base + self.each * load


class Loads:
    """Seconds that a load adds to the request that causes it, by the tier that the adapter comes from.

    The median of what was seen, followed by steps: an answer's length varies by more than a load does, and in both
    directions, so means of what is left over would take long answers for long loads.
    """

    __slots__ = ("_defaults", "cpu", "disk")

    def __init__(self, defaults: LoadTimes) -> None:
        self._defaults = defaults
        self.cpu = defaults.cpu
        self.disk = defaults.disk

    def ended(self, tier: Tier, seconds: Seconds) -> None:
        """One load from `tier`, however that is known; only loads from host memory and from disk are learnt.

        `seconds` may be negative: the answer came sooner than one without a load is expected to.
        """
        if tier is Tier.CPU:
            self.cpu = _stepped(self.cpu, seconds, default=self._defaults.cpu)
        elif tier is Tier.DISK:
            self.disk = _stepped(self.disk, seconds, default=self._defaults.disk)


def _stepped(estimate: Seconds, seconds: Seconds, *, default: Seconds) -> Seconds:
    moved = estimate * (1.0 + STEP if seconds > estimate else 1.0 - STEP)
    return min(max(moved, default * SHORTEST), default * FARTHEST)
