"""How much each fleet bears: the rate that loads are shares of.

    python -m bench.tournament.rates [--only zipf,hot] [--workers 2]

In: fresh traffic. Out: `rates.json`, `Borne` by traffic and kind of pod, which is kept with the code: cells
are then the same for everybody. Not here: playing them.

A fleet bears a rate if *some* policy keeps P95 of latency within `PATIENCE` times what a request takes on an idle
fleet, loads included: the highest rate of three different kinds of policy, searched with a seed that nothing else
uses. Were it
the rate that one policy bears, the others would be judged beyond it or far below.
"""

import argparse
from pathlib import Path

import msgspec

from bench.tournament.cells import FRESH, MODES, Cell, Traffic, scenario
from bench.tournament.seeds import SEARCH
from lorapick.model.units import Seconds
from lorapick.plan.simulations import Job, capacities, play_all

FILE = Path(__file__).with_name("rates.json")
KINDS = ("weighted", "cost", "chwbl")
PATIENCE = 2.5
BEGIN = 10.0
"""Arrivals per second at which the search begins."""
IDLE = 0.5
"""Arrivals per second of an idle fleet."""


class Borne(msgspec.Struct, frozen=True):
    """What one fleet bears."""

    rate: float
    """Arrivals per second."""
    limit: Seconds
    """P95 of latency that was kept."""


Rates = dict[str, dict[str, Borne]]
"""By traffic, and by kind of pod."""


def known() -> Rates:
    """What was searched before."""
    return msgspec.json.decode(FILE.read_bytes(), type=Rates) if FILE.is_file() else {}


def search(traffic: Traffic, *, workers: int | None) -> dict[str, Borne]:
    """The same for one kind of traffic."""
    return {mode: _borne(Cell(traffic, mode, 1.0), workers) for mode in MODES}


def _borne(cell: Cell, workers: int | None) -> Borne:
    (idle,) = play_all([_idle(cell)], workers=1)
    usual = idle.whole.latency.p95
    assert usual is not None, f"{cell.name}: nothing was served"
    limit = round(PATIENCE * usual, 3)
    played = scenario(cell, rate=BEGIN)
    jobs = [Job(scenario=played, policy=kind, seed=SEARCH) for kind in KINDS]
    rates = [found.rate or 0.0 for found in capacities(jobs, limit, workers=workers)]
    return Borne(rate=round(max(rates), 3), limit=limit)


def _idle(cell: Cell) -> Job:
    return Job(scenario=scenario(cell, rate=IDLE), policy="weighted", seed=SEARCH)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="search how much each fleet bears, and keep it")
    parser.add_argument("--only", help="names of traffic, with commas between them")
    parser.add_argument("--workers", type=int)
    asked = parser.parse_args()
    names = set(asked.only.split(",")) if asked.only else {each.name for each in FRESH}
    rates = known()
    for traffic in FRESH:
        if traffic.name in names:
            rates[traffic.name] = search(traffic, workers=asked.workers)
            print(traffic.name, rates[traffic.name], flush=True)
            FILE.write_bytes(msgspec.json.format(msgspec.json.encode(rates, order="sorted"), indent=1) + b"\n")


if __name__ == "__main__":
    main()
