"""How near the prediction comes to the simulator.

    python -m bench.prediction [--quick] [--json]

Fleets play for some minutes with a policy of each kind; hit ratio and swap rate are held against `plan.prediction`,
which is told rates, slots, policy, what a swap takes, and how long requests take where nothing is swapped (a run of the
same fleet with a slot for every adapter). Errors of hit ratios are in percentage points.
"""

import argparse
import json
import sys
from statistics import mean
from typing import NamedTuple

from lorapick.model.pods import Pod
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Costs, Demand, FleetShape, Prediction
from lorapick.plan.scenario_files import load_scenario
from lorapick.plan.simulations import Job, play_all
from lorapick.sim.measures import Measures
from lorapick.sim.scenario import Scenario
from lorapick.sim.workload.popularity import shares

POLICIES = ("weighted", "rendezvous", "round-robin")
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


GRID = (
    Case(40, 8, 4, 1.0, 20.0),
    Case(60, 8, 4, 1.0, 20.0),
    Case(30, 6, 4, 0.6, 12.0),
    Case(24, 4, 2, 1.2, 8.0),
    Case(80, 8, 8, 0.9, 20.0),
    Case(16, 2, 6, 0.0, 6.0),
    Case(200, 4, 16, 1.0, 16.0),
    Case(120, 12, 6, 0.8, 24.0),
)
QUICK = (Case(30, 4, 4, 0.9, 8.0),)


class Row(NamedTuple):
    """One run beside its prediction."""

    case: Case
    policy: str
    simulated: float
    predicted: float
    simulated_rate: float
    """Swaps per second and pod."""
    predicted_rate: float

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


def predicted(played: Scenario, policy: str, *, costs: Costs, rate: float) -> Prediction:
    """The prediction for a scenario."""
    fleet = played.fleet
    pods = tuple(Pod(name=name, address="127.0.0.1:1", limits=fleet.limits) for name in fleet.names())
    names = played.adapters.names
    demand = [
        Demand(adapter=name, rate=rate * float(share))
        for name, share in zip(names, shares(played.adapters.popularity, len(names)), strict=True)
    ]
    return predict(FleetShape(pods=pods, policy=policy), demand, costs=costs)


def rows(cases: tuple[Case, ...], *, seconds: int, workers: int | None = None) -> list[Row]:
    """Every case with every policy."""
    jobs = []
    for case in cases:
        idle = scenario(case, seconds=min(seconds, 120), slots=case.adapters)
        jobs.append(Job(scenario=idle, policy="weighted", seed=1))
        jobs += [Job(scenario=scenario(case, seconds=seconds), policy=policy, seed=1) for policy in POLICIES]
    reports = iter(zip(jobs, play_all(jobs, workers=workers), strict=True))
    found = []
    for case in cases:
        latency = next(reports)[1].whole.latency
        costs = Costs(swap=SWAP, latency=latency.p50 or 0.1, latency_p95=latency.p95 or 0.2, drains=False)
        for job, report in (next(reports) for _ in POLICIES):
            told = predicted(job.scenario, job.policy, costs=costs, rate=case.rate)
            found.append(_row(case, job.policy, measured=report.whole, told=told))
    return found


def _row(case: Case, policy: str, *, measured: Measures, told: Prediction) -> Row:
    return Row(
        case=case,
        policy=policy,
        simulated=measured.hits / (measured.hits + measured.misses),
        predicted=told.hit_ratio or 0.0,
        simulated_rate=measured.swaps / measured.length / measured.pods,
        predicted_rate=told.swap_rate,
    )


def main() -> None:
    """Play all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one fleet, for a minute")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = rows(QUICK, seconds=240) if args.quick else rows(GRID, seconds=900)
    if args.json:
        json.dump([{**row._asdict(), "points": row.points} for row in found], sys.stdout, indent=1)
        print()
        return
    print("adapters  pods × slots  zipf  req/s  policy       hits simulated  predicted  points  swaps/s/pod  predicted")
    for row in found:
        case = row.case
        print(
            f"{case.adapters:8}  {case.pods:4} × {case.slots:<5}  {case.zipf:4}  {case.rate:5g}  {row.policy:11}"
            f"{100 * row.simulated:15.1f} %{100 * row.predicted:9.1f} %{row.points:8.1f}{row.simulated_rate:13.3f}"
            f"{row.predicted_rate:11.3f}"
        )
    errors = [abs(row.points) for row in found]
    print(f"mean error {mean(errors):.1f} points, largest {max(errors):.1f}")


if __name__ == "__main__":
    main()
