"""Axes: from values to places on a drawing, and the round numbers beside them.

In: ranges. Out: functions and ticks. Not here: drawing.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from lorapick.model.units import Seconds

_STEPS = (1.0, 2.0, 5.0, 10.0)
_CLOCK_STEPS = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 43_200.0, 86_400.0)


class Scale(NamedTuple):
    """A linear or logarithmic axis."""

    low: float
    high: float
    start: float
    """Place of `low`."""
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Place of a value; values outside lie on the edge."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        at = math.log(max(value, self.low)) if self.log else value
        share = (at - low) / (high - low) if high > low else 0.0
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))


def ticks(high: float, *, most: int = 5) -> list[float]:
    """Round numbers from 0 to about `high`."""
    if high <= 0:
        return [0.0]
    rough = high / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * each for each in _STEPS if size * each >= rough * (1 - 1e-9))
    return [step * number for number in range(int(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 and their tenfolds between the bounds; only tenfolds when there are many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1.0,) if last - first > 3 else (1.0, 2.0, 5.0)
    found = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    return [each for each in found if low * (1 - 1e-9) <= each <= high * (1 + 1e-9)]


def log_range(values: Sequence[float]) -> tuple[float, float]:
    """Bounds that hold all values: one of 1, 2, 5 and their tenfolds below and above."""
    positive = [value for value in values if value > 0]
    if not positive:
        return 1.0, 10.0
    low, high = min(positive), max(positive)
    steps = [factor * 10.0**power for power in range(-9, 10) for factor in (1.0, 2.0, 5.0)]
    below = max((each for each in steps if each <= low), default=low)
    above = min((each for each in steps if each >= high and each > below), default=high)
    return below, above


def clock_ticks(start: Seconds, end: Seconds, *, begin: Seconds, most: int = 7) -> list[tuple[Seconds, str]]:
    """Round times between two moments of a run that began at `begin` after midnight, with their names."""
    step = next((each for each in _CLOCK_STEPS if (end - start) / each <= most), _CLOCK_STEPS[-1])
    first = math.ceil((begin + start) / step - 1e-9)
    found = []
    number = first
    while number * step - begin <= end + 1e-9:
        found.append((number * step - begin, clock(number * step, seconds=step < 60)))
        number += 1
    return found


def clock(moment: Seconds, *, seconds: bool) -> str:
    """A time of day, with or without seconds."""
    whole = round(moment)
    text = f"{whole // 3600:02d}:{whole // 60 % 60:02d}"
    return f"{text}:{whole % 60:02d}" if seconds else text
