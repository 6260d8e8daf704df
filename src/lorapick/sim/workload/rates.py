"""A process's rate over time, as stretches of constant rate.

In: a process, planned changes of its rate, the time of day at t = 0. Out: `Stretch` after `Stretch`, in order, perhaps
for ever. Smooth rates become steps with the exact mean of each: 1,440 to a period of `Diurnal`, 32 to a `decay` of
`FlashCrowd`, 60 to a change. Not here: arrivals (`times`).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise
from typing import NamedTuple, TypeAlias, assert_never

import numpy as np

from lorapick.model.units import Seconds
from lorapick.sim.workload.changes import Scale, progress
from lorapick.sim.workload.processes import (
    Diurnal,
    FlashCrowd,
    Gamma,
    Hawkes,
    MarkovModulated,
    Poisson,
    Profile,
    Windows,
)

Rated: TypeAlias = Poisson | Gamma | MarkovModulated | Diurnal | Profile | FlashCrowd | Hawkes | Windows
"""Processes that have a rate: all but bursts."""
_DIURNAL_STEPS = 1440
_DECAY_STEPS = 32
_DECAYS = 16
"""e^-16 of a crowd is nobody."""
_CHANGE_STEPS = 60


class Stretch(NamedTuple):
    """A time of constant rate; `end` may be infinite."""

    start: Seconds
    end: Seconds
    rate: float
    cv: float = 1.0


def stretches(process: Rated, *, clock: Seconds, chance: np.random.Generator) -> Iterator[Stretch]:
    """The rate of a process from t = 0 on, changes not counted; of `Hawkes` the rate of those whom nobody brought.

    Args:
        process: it.
        clock: seconds after midnight at t = 0.
        chance: draws the states of `MarkovModulated`.
    """
    match process:
        case Poisson(rate) | Gamma(rate):
            yield Stretch(0.0, math.inf, rate)
        case Hawkes():
            yield Stretch(0.0, math.inf, process.rate * (1 - process.branching))
        case MarkovModulated():
            yield from _states(process, chance)
        case Diurnal():
            yield from _sinusoid(process, clock)
        case Profile():
            yield from _profile(process, clock)
        case FlashCrowd():
            yield from _crowd(process)
        case Windows(windows):
            yield from (Stretch(each.start, each.end, each.rate, each.cv) for each in windows)
        case _:
            assert_never(process)


def _states(process: MarkovModulated, chance: np.random.Generator) -> Iterator[Stretch]:
    states = process.states
    now, current = 0.0, 0
    while True:
        end = now + states[current].dwell * chance.standard_exponential()
        yield Stretch(now, end, states[current].rate)
        other = int(chance.integers(len(states) - 1))
        now, current = end, other + (other >= current)


def _sinusoid(process: Diurnal, clock: Seconds) -> Iterator[Stretch]:
    swing = (process.ratio - 1) / (process.ratio + 1)
    turn = 2 * math.pi / process.period
    step = process.period / _DIURNAL_STEPS
    # The mean of a cosine over a step is its middle, flattened by this.
    flat = swing * math.sin(turn * step / 2) / (turn * step / 2)
    for number in count():
        middle = clock + (number + 0.5) * step - process.peak
        rate = process.rate * (1 + flat * math.cos(turn * middle))
        yield Stretch(number * step, (number + 1) * step, max(rate, 0.0))


def _profile(process: Profile, clock: Seconds) -> Iterator[Stretch]:
    first = int(clock // process.step)
    for number in count(first):
        start, end = number * process.step - clock, (number + 1) * process.step - clock
        yield Stretch(max(start, 0.0), end, process.rates[number % len(process.rates)])


def _crowd(process: FlashCrowd) -> Iterator[Stretch]:
    if process.at > 0:
        yield Stretch(0.0, process.at, process.rate)
    edges = process.at + process.decay * np.arange(_DECAYS * _DECAY_STEPS + 1) / _DECAY_STEPS
    flat = _DECAY_STEPS * -math.expm1(-1 / _DECAY_STEPS)
    for start, end in pairwise(edges.tolist()):
        more = (process.factor - 1) * flat * math.exp(-(start - process.at) / process.decay)
        yield Stretch(start, end, process.rate * (1 + more))
    yield Stretch(float(edges[-1]), math.inf, process.rate)


def changed(rates: Iterable[Stretch], changes: Sequence[Scale], *, until: Seconds = math.inf) -> Iterator[Stretch]:
    """The same with planned changes, cut off at `until`; ends where the changes leave no rate for ever."""
    edges = sorted({edge for change in changes for edge in _edges(change)})
    last = edges[-1] if edges else 0.0
    over = _factor(changes, math.inf) == 0
    for stretch in rates:
        end = min(stretch.end, until)
        inside = [edge for edge in edges if stretch.start < edge < end]
        for start, stop in pairwise((stretch.start, *inside, end)):
            if start >= until or (over and start >= last):
                return
            if start < stop:
                middle = (start + stop) / 2 if math.isfinite(stop) else max(start, last)
                yield Stretch(start, stop, stretch.rate * _factor(changes, middle), stretch.cv)
        if end >= until:
            return


def _edges(change: Scale) -> list[Seconds]:
    steps = _CHANGE_STEPS if change.over else 1
    return [change.at + change.over * step / steps for step in range(steps + 1)]


def _factor(changes: Sequence[Scale], time: Seconds) -> float:
    held = [progress(change, np.array([time])).item() for change in changes]
    return math.prod(1 + part * (change.factor - 1) for part, change in zip(held, changes, strict=True))
