"""How near the picker's estimate of useful GPU time comes to the pods' own account, which it does not see.

    python -m bench.useful [--only war-story,saas-50] [--modes drain,inline] [--json]

Scenarios play with the article's weights, on pods that drain and on pods that load inline. At the end of each minute
the estimate of that minute (`core.signals.useful`) is held against the pod model's own seconds: (prefill + decode) /
(prefill + decode + drain + deallocation + transfer + initialisation + warm-up). Errors are in percentage points, of
single pods and of the whole fleet; `bias` is the mean of estimate minus account.
"""

import argparse
import json
import sys
from statistics import mean
from typing import Any, NamedTuple

from lorapick.core.signals.useful import UsefulTime
from lorapick.model.signals import RATE_WINDOW
from lorapick.model.units import PodName, Ratio, Seconds
from lorapick.plan.scenario_files import load_scenario
from lorapick.sim.build import arrivals_of, world_of
from lorapick.sim.kernel import Priority
from lorapick.sim.measures import GpuTime
from lorapick.sim.scenario import Scenario
from lorapick.sim.tally import Tally
from lorapick.sim.world import World

POLICY = "weighted"
MODES = ("drain", "inline")
LEAST_BUSY: Seconds = 3.0
"""Of a minute, below which a pod's shares are left out."""
PLANS = {
    "healthy": {"run": "{for: 30m, warm_up: 5m, window: 1m, seed: 1}"},
    "war-story": {
        "run": '{from: "09:00", to: "10:30", warm_up: 15m, window: 1m, seed: 1}',
        "periods": "[]",
        "expect": "[]",
        "phases": '[{at: "09:20", over: 1h, change: {split: {top: 20, into: "{name}-experiment", share: 0.5}}}]',
    },
    "saas-50": {"run": "{for: 20m, warm_up: 2m, window: 1m, seed: 1}"},
    "hotspot": {},
    "from-disk": {
        "run": '{from: "09:00", to: "09:45", warm_up: 5m, window: 1m, seed: 1}',
        "periods": "[]",
        "expect": "[]",
        "phases": '[{at: "09:10", change: {split: {top: 5, into: "{name}-experiment", share: 0.5}}}]',
        "fleet.cpu_slots": "5",
    },
}
"""The war story burns for one hour here and not five; `from-disk` has hardly more room in host memory than slots."""
FILES = {"from-disk": "war-story-small"}
"""Of plans that are called otherwise than their scenario."""


class Pair(NamedTuple):
    """One pod's minute, or the fleet's."""

    told: Ratio
    true: Ratio


class Result(NamedTuple):
    """Of one run, in percentage points."""

    scenario: str
    mode: str
    minutes: int
    lowest: float
    """Of the pods' own shares."""
    mean_error: float
    worst_error: float
    bias: float
    fleet_mean_error: float
    fleet_worst_error: float


class Watch:
    """Feeds an estimate from a world's events, and compares at the end of every minute."""

    def __init__(self, world: World, *, start: Seconds, end: Seconds) -> None:
        self.pods: list[Pair] = []
        self.fleet: list[Pair] = []
        self._world = world
        self._before: dict[PodName, GpuTime] = {}
        self._times = int((end - start) // RATE_WINDOW)
        for number in range(self._times + 1):
            world.kernel.at(start + number * RATE_WINDOW, self._look, argument=number, priority=Priority.CHANGE)

    @property
    def useful(self) -> UsefulTime:
        """The estimate."""
        return self._world.fleet.state.signals.useful

    def _look(self, number: int) -> None:
        world, now = self._world, self._world.kernel.now
        world.settle()
        total = GpuTime()
        for name, sim in world.pods.items():
            time = sim.time(now)
            spent = time.less(self._before.get(name, time))
            self._before[name] = time
            total = total.plus(spent)
            told = self.useful.share(name, now)
            if number and told is not None and busy(spent) >= LEAST_BUSY:
                self.pods.append(Pair(told, useful(spent) / busy(spent)))
        told = self.useful.fleet(now)
        if number and told is not None and busy(total):
            self.fleet.append(Pair(told, useful(total) / busy(total)))


def useful(time: GpuTime) -> Seconds:
    """Inference."""
    return time.prefill + time.decode


def busy(time: GpuTime) -> Seconds:
    """Inference, and what swaps take."""
    return useful(time) + time.drain + time.deallocation + time.transfer + time.initialisation + time.warm_up


def played(name: str, mode: str) -> Result:
    """One scenario, once."""
    scenario: Scenario = load_scenario(FILES.get(name, name), overrides={**PLANS[name], "fleet.mode": mode})
    plan = scenario.run
    tally = Tally(start=plan.warm_up, window=plan.window, parts=scenario.parts)
    world = world_of(scenario, policy=POLICY, seed=plan.seed, observer=tally)
    watch = Watch(world, start=plan.warm_up, end=plan.length)
    world.run(arrivals_of(scenario, plan.seed), until=plan.length)
    errors = [100 * (pair.told - pair.true) for pair in watch.pods]
    whole = [100 * abs(pair.told - pair.true) for pair in watch.fleet]
    return Result(
        scenario=name,
        mode=mode,
        minutes=len(errors),
        lowest=100 * min(pair.true for pair in watch.pods),
        mean_error=mean(map(abs, errors)),
        worst_error=max(map(abs, errors)),
        bias=mean(errors),
        fleet_mean_error=mean(whole),
        fleet_worst_error=max(whole),
    )


def main() -> None:
    """Play all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PLANS))
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    results = [played(name, mode) for name in args.only.split(",") for mode in args.modes.split(",")]
    if args.json:
        json.dump([result._asdict() for result in results], sys.stdout, indent=1)
        print()
        return
    print(
        f"{'scenario':12}{'mode':8}{'minutes':>8}{'lowest':>8}{'mean':>7}{'worst':>7}{'bias':>7}{'fleet':>7}{'worst':>7}"
    )
    for each in results:
        figures: tuple[Any, ...] = each[3:]
        widths = (8, 7, 7, 7, 7, 7)
        cells = "".join(f"{value:{width}.1f}" for value, width in zip(figures, widths, strict=True))
        print(f"{each.scenario:12}{each.mode:8}{each.minutes:8}{cells}")


if __name__ == "__main__":
    main()
