"""Times of arrivals.

In: a process, planned changes, a seed. Out: arrays of times in order, a few at a time: an endless process never sits
in memory, a window of measured demand does. Not here: rates over time (`rates`), what arrives (`flows`).

Apart from measured windows, bursts and followers, gaps of mean 1 are drawn in a time of their own, in which the rate
is always 1, and mapped to real time. So a cv holds under any rate, and where the rate is constant the gaps are exact.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain, islice

import numpy as np

from lorapick.model.units import Seconds
from lorapick.sim.workload.chance import LARGEST_BATCH, FloatArray, batch_sizes, chance, one_by_one
from lorapick.sim.workload.changes import Scale
from lorapick.sim.workload.processes import (
    Burst,
    Diurnal,
    FlashCrowd,
    Gamma,
    Hawkes,
    MarkovModulated,
    Poisson,
    Process,
    Profile,
    Windows,
)
from lorapick.sim.workload.rates import Stretch, changed, stretches

_WARM_UP = 20.0
"""Mean lifetimes of a crowd that a Hawkes process has behind it at t = 0."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What all arrivals of one flow depend on."""

    seed: int
    flow: str
    changes: Sequence[Scale] = ()
    clock: Seconds = 0.0
    """Seconds after midnight at t = 0."""
    scale: float = 1.0
    """Times the rate."""
    until: Seconds = math.inf
    """Nothing comes at or after."""

    def chance(self, what: str) -> np.random.Generator:
        """The generator for one purpose of the flow."""
        return chance(self.seed, self.flow, what)


def times(process: Process, timing: Timing) -> Iterator[FloatArray]:
    """Times of a flow's arrivals, none of the arrays empty, all in order."""
    if isinstance(process, Burst):
        return _nonempty(_burst(process, timing))
    rates = stretches(process, clock=timing.clock, chance=timing.chance("states"))
    rates = (each._replace(rate=each.rate * timing.scale) for each in rates)
    if isinstance(process, Hawkes):
        return _nonempty(_crowds(process, rates, timing))
    rates = changed(rates, timing.changes, until=timing.until)
    if isinstance(process, Windows):
        return _nonempty(_measured(rates, timing))
    return _nonempty(_renewal(rates, cv=_cv(process), random=timing.chance("gaps")))


def _nonempty(batches: Iterable[FloatArray]) -> Iterator[FloatArray]:
    return (batch for batch in batches if len(batch))


def _cv(process: Poisson | Gamma | MarkovModulated | Diurnal | Profile | FlashCrowd) -> float:
    return 1.0 if isinstance(process, (Poisson, MarkovModulated)) else process.cv


def _gaps(random: np.random.Generator, cv: float, size: int) -> FloatArray:
    """Gaps of mean 1."""
    if cv == 0:
        return np.ones(size)
    if cv == 1:
        return random.standard_exponential(size)
    return random.standard_gamma(cv**-2, size) * cv**2


def _renewal(rates: Iterator[Stretch], *, cv: float, random: np.random.Generator) -> Iterator[FloatArray]:
    """Gaps in the flow's own time, mapped to real time."""
    own = OwnTime(rates)
    last = 0.0
    for size in batch_sizes():
        wanted = last + np.cumsum(_gaps(random, cv, size))
        found = own.real(wanted)
        yield found
        if len(found) < size:
            return
        last = float(wanted[-1])


class OwnTime:
    """A flow's own time, that passes at the flow's rate; mapped to real time piece by piece."""

    __slots__ = ("_last", "_now", "_own", "_rates", "_stretch")

    def __init__(self, rates: Iterator[Stretch]) -> None:
        self._rates = rates
        self._stretch = next(rates, None)
        self._now = self._last = 0.0 if self._stretch is None else self._stretch.start
        self._own = -1.0 if self._stretch is None else 0.0
        """The flow's own time at `_now`; below all that can be asked for when there is no rate at all."""

    def real(self, own: FloatArray) -> FloatArray:
        """Real times of these, which must be in order and after those asked for before; fewer where the rates end."""
        knots, owns = [self._now], [self._own]
        wanted = float(own[-1])
        while self._own < wanted and self._stretch is not None:
            self._advance(self._stretch, wanted)
            knots.append(self._now)
            owns.append(self._own)
        found: FloatArray = np.interp(own[: np.searchsorted(own, self._own, side="right")], owns, knots)
        if len(found):
            # Rounding must not turn the order round.
            found = np.maximum.accumulate(np.maximum(found, self._last))
            self._last = float(found[-1])
        return found

    def _advance(self, stretch: Stretch, wanted: float) -> None:
        """To the end of the stretch, or as far into it as is wanted; or to the begin of one after an idle time."""
        if self._now < stretch.start:
            self._now = stretch.start
            return
        room = stretch.rate * (stretch.end - self._now) if stretch.rate else 0.0
        if self._own + room >= wanted:
            self._now = min(self._now + (wanted - self._own) / stretch.rate, stretch.end)
            self._own = wanted
            return
        self._own += room
        if math.isfinite(stretch.end):
            self._now = stretch.end
        self._stretch = next(self._rates, None)


def _measured(rates: Iterable[Stretch], timing: Timing) -> Iterator[FloatArray]:
    """Each stretch's own number of arrivals: gaps in a circle as long as the stretch, turned at random.

    So cv 1 is Poisson given the number, and bursts fall anywhere in the stretch.
    """
    counts, gaps = timing.chance("counts"), timing.chance("gaps")
    for start, end, rate, cv in rates:
        expected = rate * (end - start)
        number = int(expected + counts.random())
        if not number:
            continue
        steps = np.cumsum(_gaps(gaps, cv, number))
        # A cv so high that all gaps came out as 0: everybody comes at the same time.
        turned = steps / steps[-1] if steps[-1] > 0 else np.zeros(number)
        found = start + (end - start) * np.sort((turned + gaps.random()) % 1.0)
        yield from np.split(np.minimum(found, np.nextafter(end, start)), range(LARGEST_BATCH, number, LARGEST_BATCH))


def _burst(process: Burst, timing: Timing) -> Iterator[FloatArray]:
    found = process.at + process.over * np.sort(timing.chance("gaps").random(process.count))
    yield found[found < timing.until]


def _crowds(process: Hawkes, rates: Iterator[Stretch], timing: Timing) -> Iterator[FloatArray]:
    """Those whom nobody brought, a Poisson process, and all that follow; in batches."""
    everybody = _with_followers(_founders(process, rates, timing), process, timing)
    present = (time for time in everybody if time >= 0)
    for size in batch_sizes():
        batch = np.fromiter(islice(present, size), dtype=np.float64)
        yield batch
        if len(batch) < size:
            return


def _founders(process: Hawkes, rates: Iterator[Stretch], timing: Timing) -> Iterator[Seconds]:
    """They begin long before t = 0, so that there is a crowd by then."""
    long = _WARM_UP * process.decay / (1 - process.branching)
    before = Stretch(-long, 0.0, process.rate * (1 - process.branching) * timing.scale)
    rates = chain((before,), changed(rates, timing.changes, until=timing.until))
    for batch in _renewal(rates, cv=1.0, random=timing.chance("gaps")):
        yield from batch.tolist()


def _with_followers(founders: Iterable[Seconds], process: Hawkes, timing: Timing) -> Iterator[Seconds]:
    counts, delays = timing.chance("followers"), timing.chance("delays")
    count = one_by_one(lambda size: counts.poisson(process.branching, size))
    delay = one_by_one(lambda size: process.decay * delays.standard_exponential(size))
    coming: list[Seconds] = []
    for founder in chain(founders, (math.inf,)):
        while coming and coming[0] <= founder:
            time = heappop(coming)
            yield time
            _bring(coming, time, int(next(count)), delay, timing.until)
        if founder < math.inf:
            yield founder
            _bring(coming, founder, int(next(count)), delay, timing.until)


def _bring(coming: list[Seconds], time: Seconds, count: int, delay: Iterator[Seconds], until: Seconds) -> None:
    for _ in range(count):
        follows = time + next(delay)
        if follows < until:
            heappush(coming, follows)
