"""How soon a split is named, and how often something else is called one.

    python -m bench.shifts [--seeds 40]

Prints the figures of docs/doctor.md. Requests per adapter and minute are drawn from rates (Poisson), names are random;
the detector sees what a picker's counts would be. Simulated, so machine and load do not matter: the same seeds give the
same figures. Forty seeds take about twenty minutes on one core.
"""

import argparse
from collections.abc import Callable, Iterable
from statistics import median

import numpy as np

from lorapick.core.signals.shifts import find
from lorapick.model.shifts import ShiftKind
from lorapick.testing.courses import Course, Rates, added, bursts, day, split, steady, zipf

CALLED = (ShiftKind.SPLIT, ShiftKind.REPLACED)
EIGHT_HOURS = 480
AT = 72
FLEET, MANY = zipf(40), zipf(100)


def burn(rate: float) -> Rates:
    """The war story: from minute 75 on the top 20 give ever more, and all traffic is 5 % more."""
    rates = split(steady(260, FLEET, rate=rate), range(20), at=75, share=0.5, over=285)
    rates[75:] *= 1.05
    return rates


DELAYS: dict[str, tuple[Callable[[], Rates], int, Iterable[int]]] = {
    "top 20, 50/50 at once": (
        lambda: split(steady(90, FLEET), range(20), at=AT, share=0.5),
        AT,
        range(AT + 1, 90),
    ),
    "all, 50/50 at once": (lambda: split(steady(100, FLEET), range(40), at=AT, share=0.5), AT, range(AT + 1, 100)),
    "new names for half": (
        lambda: split(steady(90, FLEET), range(0, 40, 2), at=AT, share=1.0),
        AT,
        range(AT + 1, 90),
    ),
    "top 20, 10 % at once": (
        lambda: split(steady(160, FLEET), range(20), at=AT, share=0.1),
        AT,
        range(AT + 2, 160, 2),
    ),
    "war story": (lambda: burn(50.0), 75, range(95, 260, 5)),
    "war story, 200/s": (lambda: burn(200.0), 75, range(90, 260, 5)),
    "war story, 10/s": (lambda: burn(10.0), 75, range(120, 260, 5)),
}


def tenants(rates: Rates, chance: np.random.Generator) -> Rates:
    """One to three new customers with up to 30 adapters each, at any time, at once or by and by."""
    for _ in range(chance.integers(1, 4)):
        count, exponent = int(chance.integers(1, 30)), chance.uniform(0.5, 1.5)
        new = zipf(count, exponent) * chance.uniform(1, 20)
        rates = added(rates, new, at=int(chance.integers(40, 300)), over=int(chance.choice([0, 0, 30, 120])))
    return rates


def own_days(count: int, chance: np.random.Generator) -> Rates:
    return day(EIGHT_HOURS, chance.uniform(0, 2 * np.pi, count))


def common_day(chance: np.random.Generator) -> Rates:
    return day(EIGHT_HOURS, chance.uniform(0, 2 * np.pi, 1))


def bursty(count: int, chance: np.random.Generator, *, sd: float, minutes: float) -> Rates:
    return bursts(chance, (EIGHT_HOURS, count), sd=sd, minutes=minutes)


def leavers(chance: np.random.Generator) -> Rates:
    """The fourth goes at minute 100, the eighth shrinks to 30 % at minute 200."""
    rates = steady(EIGHT_HOURS, FLEET)
    rates[100:, 3] = 0.0
    rates[200:, 7] *= 0.3
    return tenants(rates, chance)


def over(shares: Rates, *, rate: float = 50.0) -> Rates:
    return steady(EIGHT_HOURS, shares, rate=rate)


NOTHING: dict[str, Callable[[np.random.Generator], Rates]] = {
    "steady": lambda _: over(FLEET),
    "tail of 1000": lambda _: over(zipf(1000)),
    "tail of 1000, 500/s": lambda _: over(zipf(1000), rate=500.0),
    "a common day": lambda c: over(zipf(200)) * common_day(c),
    "days of their own": lambda c: over(zipf(200)) * own_days(200, c),
    "bursts": lambda c: over(zipf(200)) * bursty(200, c, sd=0.3, minutes=20),
    "tenants": lambda c: tenants(over(FLEET), c),
    "tenants, a common day": lambda c: tenants(over(FLEET) * common_day(c), c),
    "tenants, days of their own": lambda c: tenants(over(MANY) * own_days(100, c), c),
    "tenants, bursts": lambda c: tenants(over(MANY) * bursty(100, c, sd=0.3, minutes=20), c),
    "tenants, slow bursts": lambda c: tenants(over(MANY) * bursty(100, c, sd=0.1, minutes=120), c),
    "tenants, others leave": leavers,
}


def called(course: Course, minute: int) -> bool:
    return any(shift.kind in CALLED for shift in find(course.table(minute)))


def delay(name: str, seed: int) -> float:
    """Minutes until it is named; infinity: it is not."""
    make, at, minutes = DELAYS[name]
    course = Course(make(), seed=100 + seed)
    return next((minute - at for minute in minutes if called(course, minute)), float("inf"))


def false_alarm(name: str, seed: int) -> bool:
    """Whether any of six looks at eight hours calls something a split or a replacement."""
    course = Course(NOTHING[name](np.random.default_rng(1000 + seed)), seed=seed)
    return any(called(course, int(minute)) for minute in np.linspace(40, EIGHT_HOURS, 6))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=40)
    seeds = range(parser.parse_args().seeds)
    print("minutes until a split is named: median, worst")
    for name in DELAYS:
        found = [delay(name, seed) for seed in seeds[:15]]
        print(f"  {name:28} {median(found):.0f}, {max(found):.0f} of {len(found)}", flush=True)
    print("courses of eight hours in which something else is called a split or a replacement")
    for name in NOTHING:
        print(f"  {name:28} {sum(false_alarm(name, seed) for seed in seeds)} of {len(seeds)}", flush=True)


if __name__ == "__main__":
    main()
