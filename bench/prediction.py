"""How near the prediction comes to the simulator.

    python -m bench.prediction [--quick | --fitted | --fresh] [--workers N] [--json]

Fleets play for some minutes; hits, loads, residency and P95 are held against `plan.prediction`, which is told rates,
slots, policy, what a swap takes, and how long requests take where nothing is swapped (a run of the same fleet with a
slot for every adapter). Errors of hit ratios are in percentage points, the others relative. Played are

- the policies by which pickers route, all of them on three fleets, and those that send adapters to where they are on
  eight;
- pins: the most popular adapters, once each;
- pods that evict otherwise than by recency.

What was fitted: the dispersion of `rendezvous` to five fleets, the first and the fourth of `GRID` among them; the one
more slot of `weighted` to `FITTED`, with `GRID` in sight; the dispersion of `chwbl`, the steady time of `cost` and what
draws requests of `gie-lora` with both in view. `FRESH` was played after all that.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

import msgspec

from lorapick.model.adapters import Adapter, PinSpec
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Costs, Demand, FleetShape, Prediction
from lorapick.plan.scenario_files import load_scenario
from lorapick.plan.simulations import Job, play_all
from lorapick.sim.build import pods_of
from lorapick.sim.measures import Measures
from lorapick.sim.scenario import PODS_OWN, Scenario
from lorapick.sim.workload.popularity import shares

SWAP = 0.1
"""Seconds of a load from host memory on the pods that play, which load between two steps and drain nothing."""


class Case(NamedTuple):
    """A fleet and its traffic."""

    adapters: int
    pods: int
    slots: int
    zipf: float
    rate: float
    """Requests per second."""


class Way(NamedTuple):
    """How the fleet is run."""

    policy: str
    eviction: str = PODS_OWN
    pins: int = 0
    """Of the most popular adapters, one copy each."""

    def __str__(self) -> str:
        words = "" if self.eviction == PODS_OWN else f", {self.eviction} pods"
        return f"{self.policy}{words}{f', {self.pins} pins' if self.pins else ''}"


GRID = (
    Case(40, 8, 4, 1.0, 20.0),
    Case(80, 8, 8, 0.9, 20.0),
    Case(200, 4, 16, 1.0, 16.0),
    Case(60, 8, 4, 1.0, 20.0),
    Case(30, 6, 4, 0.6, 12.0),
    Case(24, 4, 2, 1.2, 8.0),
    Case(16, 2, 6, 0.0, 6.0),
    Case(120, 12, 6, 0.8, 24.0),
)
FEW = GRID[:3]
FITTED = (
    Case(32, 6, 4, 1.1, 15.0),
    Case(20, 5, 2, 0.8, 10.0),
    Case(100, 10, 5, 0.9, 30.0),
    Case(50, 3, 10, 1.0, 10.0),
    Case(12, 3, 2, 0.5, 5.0),
    Case(64, 16, 3, 1.0, 40.0),
)
FRESH = (Case(90, 7, 6, 1.1, 18.0), Case(36, 9, 3, 0.7, 22.0))
"""Played after everything was chosen."""
KNOWING = ("weighted", "cost", "rendezvous", "chwbl")
OTHERS = ("gie-lora", "round-robin", "least-loaded", "power-of-two")
COMPARED = (
    *((case, Way(policy)) for policy in KNOWING for case in GRID),
    *((case, Way(policy)) for policy in OTHERS for case in FEW),
    *((case, Way(policy, pins=5)) for policy in ("weighted", "round-robin") for case in FEW[:2]),
    *((FEW[number], Way("cost", eviction)) for eviction in ("lfu", "window", "cost") for number in (0, 2)),
    *((FEW[0], Way("round-robin", eviction)) for eviction in ("lfu", "cost")),
)
QUICK = tuple((Case(30, 4, 4, 0.9, 8.0), Way(policy)) for policy in ("weighted", "cost", "rendezvous", "round-robin"))
Compared = Sequence[tuple[Case, Way]]


class Row(NamedTuple):
    """One run beside its prediction."""

    case: Case
    way: Way
    simulated: float
    predicted: float
    rate: float
    """Loads per second, predicted / simulated - 1."""
    residency: float
    """Likewise."""
    p95: float
    """Predicted / simulated."""
    known: float
    """What the prediction itself says that its hits may be off."""

    @property
    def points(self) -> float:
        """Predicted minus simulated hit ratio."""
        return 100.0 * (self.predicted - self.simulated)


def scenario(case: Case, *, seconds: int, slots: int | None = None) -> Scenario:
    """A fleet that loads from host memory; popularity does not change."""
    slots = slots or case.slots
    return load_scenario(
        "healthy",
        overrides={
            "fleet": f"{{pods: {case.pods}, slots: {slots}, cpu_slots: {case.adapters + slots}, mode: inline, "
            "hardware: h100-llama8b, max_num_seqs: 165, max_queue: 8}",
            "adapters": f"{{count: {case.adapters}, rank: 16, popularity: {{zipf: {case.zipf}}}}}",
            "arrivals.rate": f"{case.rate}/s",
            "run": f"{{for: {seconds}s, warm_up: {seconds // 4}s, window: 30s, seed: 1}}",
            "expect": "[]",
        },
    )


def run_as(played: Scenario, way: Way) -> Scenario:
    """The scenario with pods that evict, and adapters that are pinned, as the way says."""
    if way.eviction != PODS_OWN:
        fleet = msgspec.structs.replace(played.fleet, retention=way.eviction)
        played = msgspec.structs.replace(played, fleet=fleet)
    if not way.pins:
        return played
    pins = {name: PinSpec(replicas=1) for name in played.adapters.names[: way.pins]}
    adapters = tuple(Adapter(name=name, pin=pins.get(name)) for name in played.adapters.names)
    return msgspec.structs.replace(played, settings=msgspec.structs.replace(played.settings, adapters=adapters))


def predicted(played: Scenario, policy: str, *, costs: Costs, rate: float) -> Prediction:
    """The prediction for a scenario."""
    names, pins = played.adapters.names, {each.name: each.pin for each in played.settings.adapters}
    demand = [
        Demand(adapter=name, rate=rate * float(share), pin=pins.get(name))
        for name, share in zip(names, shares(played.adapters.popularity, len(names)), strict=True)
    ]
    return predict(FleetShape(pods=tuple(pods_of(played.fleet)), policy=policy), demand, costs=costs)


def rows(compared: Compared, *, seconds: int, workers: int | None = None) -> list[Row]:
    """Every fleet, run in its way; and once more without any swaps, for what latency is then."""
    fleets = tuple(dict.fromkeys(case for case, _ in compared))
    jobs = [
        Job(scenario=scenario(case, seconds=min(seconds, 120), slots=case.adapters), policy="weighted", seed=1)
        for case in fleets
    ]
    jobs += [
        Job(scenario=run_as(scenario(case, seconds=seconds), way), policy=way.policy, seed=1) for case, way in compared
    ]
    reports = [report.whole for report in play_all(jobs, workers=workers)]
    idle = dict(zip(fleets, reports, strict=False))
    found = []
    for (case, way), job, measured in zip(compared, jobs[len(fleets) :], reports[len(fleets) :], strict=True):
        latency = idle[case].latency
        costs = Costs(swap=SWAP, latency=latency.p50 or 0.1, latency_p95=latency.p95 or 0.2, drains=False)
        told = predicted(job.scenario, job.policy, costs=costs, rate=case.rate)
        found.append(_row(case, way, measured=measured, told=told))
    return found


def _row(case: Case, way: Way, *, measured: Measures, told: Prediction) -> Row:
    return Row(
        case=case,
        way=way,
        simulated=measured.hits / (measured.hits + measured.misses),
        predicted=told.hit_ratio or 0.0,
        rate=_off(told.swap_rate * measured.length * measured.pods, measured.loads),
        residency=_off((told.residency or 0.0) * measured.loads, measured.slot_seconds if measured.loads else 0.0),
        p95=(told.p95 or 0.0) / (measured.latency.p95 or 1.0),
        known=told.error_points,
    )


def _off(predicted: float, simulated: float) -> float:
    """Relative error; none where there is nothing to be off from."""
    return predicted / simulated - 1.0 if simulated else 0.0


def main() -> None:
    """Play all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one fleet, for some minutes")
    parser.add_argument("--fitted", action="store_true", help="the fleets that constants were fitted to")
    parser.add_argument("--fresh", action="store_true", help="fleets that nothing was chosen by")
    parser.add_argument("--workers", type=int, help="processes; default: one for each core")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    fitted = tuple((case, Way(policy)) for policy in ("weighted", "chwbl") for case in FITTED)
    fresh = tuple((case, Way(policy)) for policy in ("cost", "chwbl", "gie-lora") for case in FRESH)
    compared = QUICK if args.quick else fitted if args.fitted else fresh if args.fresh else COMPARED
    found = rows(compared, seconds=240 if args.quick else 600, workers=args.workers)
    if args.json:
        json.dump([{**row._asdict(), "way": str(row.way), "points": row.points} for row in found], sys.stdout, indent=1)
        print()
        return
    _print(found)


def _print(found: Sequence[Row]) -> None:
    print(
        "adapters  pods × slots  zipf  req/s  way                      hits simulated  predicted  points   loads   stay"
        "    P95"
    )
    for row in found:
        case = row.case
        print(
            f"{case.adapters:8}  {case.pods:4} × {case.slots:<5}  {case.zipf:4}  {case.rate:5g}  {row.way!s:23}"
            f"{100 * row.simulated:15.1f} %{100 * row.predicted:9.1f} %{row.points:8.1f}{100 * row.rate:+7.0f}%"
            f"{100 * row.residency:+6.0f}%{row.p95:6.2f}×{'' if abs(row.points) <= row.known else '  beyond its error'}"
        )
    print("\nway                      fleets  points: mean  most  loads: mean  most   stay: mean  most")
    for way in dict.fromkeys(row.way for row in found):
        mine = [row for row in found if row.way == way]
        points = [abs(row.points) for row in mine]
        rate, stay = ([100 * abs(getattr(row, name)) for row in mine] for name in ("rate", "residency"))
        print(
            f"{way!s:23}{len(mine):8}{mean(points):14.1f}{max(points):6.1f}{mean(rate):12.0f}%{max(rate):5.0f}%"
            f"{mean(stay):12.0f}%{max(stay):5.0f}%"
        )
    errors = [abs(row.points) for row in found]
    print(f"mean error {mean(errors):.1f} points, largest {max(errors):.1f}")


if __name__ == "__main__":
    main()
