"""How many pods should hold each adapter.

In: rate, service time and burstiness of an adapter. Out: its replicas, with hysteresis.
Not here: how these are measured (`burstiness`, `prompts`), on which pods (`solving`).

By square-root staffing. The requests of one adapter in the system have mean `rate × service` (Little) and, when they
come in bursts that last about as long as a service, a variance of about `burst` times that. Replicas are what runs
`mean + z × standard deviation` of them at once, when one pod runs `target`.
"""

import math

import msgspec

from lorapick.model.units import AdapterName, Seconds


class ReplicaRules(msgspec.Struct, frozen=True, kw_only=True):
    """How much room is wanted, and how quickly the number follows."""

    target: float = 8.0
    """Requests of one adapter that one pod runs at once without harm to the others there."""
    z: float = 1.645
    """Standard deviations above the mean load: 1.645 has room 95 % of the time, were loads normal."""
    idle_below: float = 1 / 900
    """Requests per second; whoever is asked for less often needs no copy on purpose."""
    grow_after: Seconds = 2.0
    """For how long more must be wanted."""
    shrink_after: Seconds = 120.0
    """For how long less must be wanted, by `margin`, and how far back the most that was wanted counts."""
    margin: float = 0.25
    """How much higher the load may become without the smaller number being too small."""


DEFAULT_RULES = ReplicaRules()
PREFILL_RULES = ReplicaRules(target=2.0)
"""On pods that only prefill: these take one prompt after another, so that of two at once one waits."""
_MOST_ADAPTERS = 10_000
"""Remembered; beyond, whoever was not asked about for longest is forgotten."""


def wanted(load: float, *, burst: float = 1.0, rules: ReplicaRules = DEFAULT_RULES) -> int:
    """Replicas for so many requests in the system at once (`rate × service`), at this moment.

    `burst` is the variance of the requests in a window over their mean, 1 for a Poisson process. At least one.
    """
    room = load + rules.z * math.sqrt(max(0.0, load * burst))
    return max(1, math.ceil(room / rules.target - 1e-9))


class _Known:
    """One adapter's number, and what would change it."""

    __slots__ = ("count", "least_more", "less_since", "more_since", "most_less")

    def __init__(self, count: int) -> None:
        self.count = count
        self.more_since: Seconds | None = None
        self.least_more = 0
        """The least of what was wanted since."""
        self.less_since: Seconds | None = None
        self.most_less = 0
        """The most of what was wanted since."""


class Replicas:
    """Remembers for each adapter how many replicas it has been given.

    More come when more have been wanted for `grow_after` on end, at first at once: as many as were wanted all that
    time. Fewer come when fewer would do for `shrink_after` on end, even if the load were `margin` higher: as many as
    would have done all that time. So a load that wavers around a threshold by less than `margin` changes the number at
    most once, and back never.
    """

    def __init__(self, rules: ReplicaRules = DEFAULT_RULES, *, most_adapters: int = _MOST_ADAPTERS) -> None:
        self._rules = rules
        self._most_adapters = most_adapters
        self._known: dict[AdapterName, _Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def want(
        self, adapter: AdapterName, *, rate: float, service: Seconds, burst: float = 1.0, pods: int, now: Seconds
    ) -> int:
        """Replicas now, at most `pods`; 0 for one that is hardly asked for.

        `rate` in requests per second; `service` is how long one is in the system. Never raises; what makes no sense (a
        negative or undefined rate) counts as 0.
        """
        least = self._at(_sane(rate), service=_sane(service), burst=_sane(burst))
        most = self._at(_sane(rate) * (1.0 + self._rules.margin), service=_sane(service), burst=_sane(burst))
        known = self._known.pop(adapter, None) or _Known(least)
        self._known[adapter] = known
        if len(self._known) > self._most_adapters:
            del self._known[next(iter(self._known))]
        self._grow(known, least, now=now)
        self._shrink(known, most, now=now)
        return min(known.count, max(0, pods))

    def forget(self, adapter: AdapterName) -> None:
        """It is retired, or had a change that makes what was wanted meaningless."""
        self._known.pop(adapter, None)

    def _at(self, rate: float, *, service: Seconds, burst: float) -> int:
        return 0 if rate < self._rules.idle_below else wanted(rate * service, burst=burst, rules=self._rules)

    def _grow(self, known: _Known, least: int, *, now: Seconds) -> None:
        if least <= known.count:
            known.more_since = None
            return
        if known.more_since is None:
            known.more_since, known.least_more = now, least
        known.least_more = min(known.least_more, least)
        if now - known.more_since >= self._rules.grow_after or known.count == 0:
            known.count, known.more_since = known.least_more, None

    def _shrink(self, known: _Known, most: int, *, now: Seconds) -> None:
        if most >= known.count:
            known.less_since = None
            return
        if known.less_since is None:
            known.less_since, known.most_less = now, most
        known.most_less = max(known.most_less, most)
        if now - known.less_since >= self._rules.shrink_after:
            known.count, known.less_since = known.most_less, None


def _sane(value: float) -> float:
    return value if 0.0 < value < math.inf else 0.0
