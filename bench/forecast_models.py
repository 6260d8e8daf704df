"""Cold starts with slots filled by each forecast: ServeGen's m-small clients as adapters, without pods.

    python -m bench.forecast_models [--days 8-14] [--seeds 5] [--rates 0.5 2] [--slots 8 12 16] [--json]

Prints the tables of docs/forecast.md. Requests of each client are drawn per bin (Poisson, or negative binomial with the
variance that the window's CV gives), with the total rate scaled to `--rates`. One cache of distinct adapters stands for
the fleet; within a bin it evicts the least recently used that is not firm, as an engine does. At each bin's edge
`choose` says whom to hold; they are loaded and touched. A request for an absent adapter is a cold start.
Models were tuned on days 4-7. Simulated, so machine and load do not matter: the same seeds give the same figures.
"""

import argparse
import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.forecast.blend import Blend
from lorapick.core.forecast.choose import Turnover, choose
from lorapick.core.forecast.history import BIN, PER_DAY, History
from lorapick.core.forecast.models import Forecast, LastHour, Perfect, Seasonal
from lorapick.model.placement import DemandBin
from lorapick.plan.datafiles import data_path, open_lines
from lorapick.wire.traces.servegen import all_windows

MONDAY = 5_797 * 7 * PER_DAY
"""Number of the bin in which the trace begins; which weekday it was is not known."""
SLICES = 2
"""Bins per window of the trace."""
RESAMPLES = 4_000


class Histories(NamedTuple):
    past: History
    future: History
    """The past too."""


Model = Callable[[Histories], Forecast | None]
MODELS: dict[str, Model] = {
    "none": lambda _: None,
    "last_hour": lambda known: LastHour(known.past),
    "last_hour, capped": lambda known: LastHour(known.past, every=False),
    "seasonal": lambda known: Seasonal(known.past),
    "blend": lambda known: Blend(known.past),
    "perfect": lambda known: Perfect(known.future),
}


class Trace(NamedTuple):
    names: list[str]
    share: NDArray[np.float64]
    """Of all requests, by bin and client; the mean over bins of the sums is 1."""
    cv: NDArray[np.float64]


class Played(NamedTuple):
    """By day."""

    requests: NDArray[np.float64]
    cold: NDArray[np.float64]
    ahead: NDArray[np.float64]


def trace() -> Trace:
    rate: dict[str, list[float]] = {}
    cv: dict[str, list[float]] = {}
    for window in all_windows(open_lines(data_path("traces/servegen_m_small.csv.zst"))):
        rate.setdefault(window.client, []).append(window.rate)
        cv.setdefault(window.client, []).append(window.cv or 0.0)
    rates = np.repeat(np.array(list(rate.values())).T, SLICES, axis=0)
    cvs = np.repeat(np.array(list(cv.values())).T, SLICES, axis=0)
    return Trace([f"client-{client}" for client in rate], rates / rates.sum(axis=1).mean(), cvs)


def drawn(given: Trace, *, rate: float, seed: int) -> NDArray[np.int64]:
    """Requests by bin and client."""
    rng = np.random.default_rng(seed)
    mean = given.share * rate * BIN
    spread = np.maximum(given.cv**2 - 1.0, 0.0)
    bursty = (spread > 1e-3) & (mean > 0.0)
    mean[bursty] = rng.gamma(mean[bursty] / spread[bursty], spread[bursty])
    return rng.poisson(mean)


class Cache:
    """Slots of a fleet, as one."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.turnover = Turnover()
        self.held: dict[str, None] = {}
        """Least recently used first."""
        self.firm: dict[str, None] = {}
        self.cold: list[int] = []
        self.ahead: list[int] = []

    def edge(self, forecast: Forecast, *, start: float, chances: dict[str, float]) -> None:
        rates = forecast.rates(start, most=self.turnover.most(self.slots))
        choice = choose(rates, chances, residents=self.held, slots=self.slots)
        self.firm = dict.fromkeys(choice.hold[: choice.firm])
        wanted = dict.fromkeys(choice.hold)
        self.ahead.append(sum(self.used(name, stays=wanted) for name in choice.touches))

    def play(self, requests: Iterable[str]) -> None:
        self.cold.append(sum(self.used(name, stays=self.firm) for name in requests))
        self.turnover.turn(firm=len(self.firm))

    def used(self, name: str, *, stays: dict[str, None]) -> bool:
        """Whether it had to be loaded."""
        absent = name not in self.held
        if absent:
            self.turnover.loaded()
            if len(self.held) >= self.slots:
                del self.held[next((each for each in self.held if each not in stays), next(iter(self.held)))]
        else:
            del self.held[name]
        self.held[name] = None
        return absent


def demand(given: Trace, counts: NDArray[np.int64], *, bins: range) -> list[DemandBin]:
    return [
        DemandBin(start=(MONDAY + number) * BIN, adapter=given.names[client], count=int(counts[number, client]))
        for number in bins
        for client in np.flatnonzero(counts[number])
    ]


def played(given: Trace, counts: NDArray[np.int64], *, model: Model, slots: list[int], bins: range) -> list[Played]:
    """One run of a model, by number of slots."""
    past, future = History(), History()
    past.recall(demand(given, counts, bins=range(bins.start)))
    future.recall(demand(given, counts, bins=range(bins.stop)))
    forecast = model(Histories(past, future))
    caches = [Cache(each) for each in slots]
    for number in bins:
        start = (MONDAY + number) * BIN
        if forecast is not None:
            chances = forecast.chances(start)
            for cache in caches:
                cache.edge(forecast, start=start, chances=chances)
        order = np.repeat(np.arange(len(given.names)), counts[number])
        np.random.default_rng(number).shuffle(order)
        requests = [given.names[client] for client in order]
        for cache in caches:
            cache.play(requests)
        past.recall(demand(given, counts, bins=range(number, number + 1)))
    total = by_day(counts[bins.start : bins.stop].sum(axis=1))
    return [Played(total, by_day(cache.cold), by_day(cache.ahead or [0] * len(bins))) for cache in caches]


def by_day(values: Iterable[int]) -> NDArray[np.float64]:
    return np.array(list(values), dtype=np.float64).reshape(-1, PER_DAY).sum(axis=1)


def fewer(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> tuple[float, float, float]:
    """Share of cold starts saved, and its 95 % interval: days are drawn again, each with all its seeds, in pairs."""
    rng = np.random.default_rng(0)
    days = rng.integers(0, ours.shape[1], size=(RESAMPLES, ours.shape[1]))
    mine, yours = ours.sum(axis=0), theirs.sum(axis=0)
    again = 1.0 - mine[days].sum(axis=1) / yours[days].sum(axis=1)
    low, high = np.quantile(again, [0.025, 0.975])
    return float(1.0 - mine.sum() / yours.sum()), float(low), float(high)


def table(given: Trace, *, rate: float, seeds: int, slots: list[int], bins: range) -> list[dict[str, object]]:
    runs: dict[str, list[list[Played]]] = {name: [] for name in MODELS}
    for seed in range(seeds):
        counts = drawn(given, rate=rate, seed=seed)
        for name, model in MODELS.items():
            runs[name].append(played(given, counts, model=model, slots=slots, bins=bins))
    rows: list[dict[str, object]] = []
    for place, many in enumerate(slots):
        cold = {name: np.array([run[place].cold for run in of]) for name, of in runs.items()}
        asked = sum(run[place].requests.sum() for run in runs["none"])
        rows += [
            {
                "rate": rate,
                "slots": many,
                "model": name,
                "cold_per_1000": 1000 * float(cold[name].sum() / asked),
                "ahead_per_1000": 1000 * float(sum(run[place].ahead.sum() for run in of) / asked),
                "fewer_than_last_hour": fewer(cold[name], cold["last_hour"]),
                "fewer_than_capped": fewer(cold[name], cold["last_hour, capped"]),
            }
            for name, of in runs.items()
        ]
    return rows


def shown(row: dict[str, object]) -> str:
    saved = [
        f"{share:+7.1%} ({low:+.1%} to {high:+.1%})"
        for share, low, high in (row["fewer_than_last_hour"], row["fewer_than_capped"])  # type: ignore[misc]
    ]
    return (
        f"| {row['rate']} | {row['slots']} | {row['model']} | {row['cold_per_1000']:.2f} "
        f"| {row['ahead_per_1000']:.2f} | {saved[0]} | {saved[1]} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", default="8-14", help="first and last day of the trace that is played, from 1 on")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.5, 2.0], help="requests per second of all")
    parser.add_argument("--slots", type=int, nargs="+", default=[8, 12, 16])
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    first, last = (int(each) for each in asked.days.split("-"))
    bins = range((first - 1) * PER_DAY, last * PER_DAY)
    given = trace()
    rows = [
        row for rate in asked.rates for row in table(given, rate=rate, seeds=asked.seeds, slots=asked.slots, bins=bins)
    ]
    if asked.json:
        print(json.dumps(rows, indent=1))
        return
    print(
        "| req/s | slots | model | cold starts per 1,000 | loads ahead per 1,000 | fewer than last_hour | than capped |"
    )
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(shown(row))


if __name__ == "__main__":
    main()
