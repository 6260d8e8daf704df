"""What admission and the policy `cost` do against thrash: loads, latency and what was served, beside the bound.

    python -m bench.thrash [--seeds 3] [--only after,stampede] [--workers 2]

Three arms with the same pods (the engine's own LRU) and the same arrivals: `plain`, the article's weights, with
followers of loads and nothing else, refusing what no pod takes; `weights`, the same behind admission; `cost`, the
policy, behind admission. Each for pods that drain and for pods that swap inline. `after` is the war story after the
A/B test (60 adapters, 32 slots) at several rates. A run that did not serve every arrival does not count, and is marked.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from statistics import mean
from typing import Any

from lorapick.plan.scenario_files import load_scenario
from lorapick.plan.simulations import jobs_for, play_all
from lorapick.sim.report import RunReport

PLAIN = (
    "{admission: {max_wait: 0s, slot_budget: false, probation: {slots_share: 1.0}},"
    " budgets: {loads_at_once: 64, pods_loading_share: 1.0}}"
)
ARMS = {"plain": ("weighted", PLAIN), "weights": ("weighted", None), "cost": ("cost", None)}
AFTER = {
    "run": "{for: 5m, warm_up: 2m, window: 5s}",
    "periods": "[]",
    "expect": "[]",
    "phases": '[{at: 0s, change: {split: {top: 20, into: "{name}-experiment", share: 0.5}}}]',
}
CASES: dict[str, tuple[str, dict[str, str]]] = {
    "after at 36/s": ("war-story", {**AFTER, "arrivals.rate": "36/s"}),
    "after at 44/s": ("war-story", {**AFTER, "arrivals.rate": "44/s"}),
    "after at 52/s": ("war-story", {**AFTER, "arrivals.rate": "52/s"}),
    "stampede": ("stampede", {}),
    "convoy": ("convoy", {}),
    "hotspot": ("hotspot", {}),
    "starvation": ("starvation", {}),
    "restart": ("restart", {}),
}
MODES = ("drain", "inline")


def row(reports: Sequence[RunReport]) -> dict[str, Any]:
    """Means over seeds; the period that a scenario is about, where it has one."""
    stretches = [report.periods.get(report.scenario, report.whole) for report in reports]
    bounds = [report.bounds for report in reports if report.bounds is not None]
    unserved = sum(each.failed + each.rejected + each.abandoned for each in stretches)
    loads = mean(each.loads for each in stretches)
    arrival_bound = mean(bound.arrival_order for bound in bounds) if bounds else None
    return {
        "loads": loads,
        "arrival_bound": arrival_bound,
        "loads_per_bound": loads / arrival_bound if arrival_bound else None,
        "p50_ms": 1e3 * mean(each.latency.p50 or 0.0 for each in stretches),
        "p95_ms": 1e3 * mean(each.latency.p95 or 0.0 for each in stretches),
        "p99_ms": 1e3 * mean(each.latency.p99 or 0.0 for each in stretches),
        "served_rate": mean(each.served / each.length for each in stretches),
        "unserved": unserved,
    }


def figures(names: Sequence[str], *, seeds: int, workers: int | None) -> dict[str, Any]:
    """All cases."""
    found: dict[str, Any] = {}
    for name in names:
        scenario, overrides = CASES[name]
        for mode in MODES:
            for arm, (policy, settings) in ARMS.items():
                own = overrides | {"fleet.mode": mode} | ({"settings": settings} if settings else {})
                loaded = load_scenario(scenario, overrides=own)
                jobs = jobs_for(loaded, policies=(policy,), seeds=range(1, seeds + 1))
                found[f"{name}, {mode}, {arm}"] = row(play_all(jobs, workers=workers))
                print(f"{name}, {mode}, {arm}: {found[f'{name}, {mode}, {arm}']}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--only", default="", help="cases that begin with one of these, separated by commas")
    options = parser.parse_args()
    wanted = [name for name in CASES if name.startswith(tuple(options.only.split(",")))]
    print(json.dumps(figures(wanted, seeds=options.seeds, workers=options.workers), indent=1))


if __name__ == "__main__":
    main()
