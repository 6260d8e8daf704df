"""How long placements take to solve, and how much they move: flow, rendezvous hashing, random.

    python -m bench.placement [--rounds 5] [--ticks 200] [--seeds 5] [--json]

Time: CPU of `solve`, from problem to plan, on one thread, medians; what else the machine does counts little. `empty` is
a fleet that holds nothing, `settled` one that holds the plan of a moment ago, with 2 % of the adapters new and rates
that have changed since.

Moves: a fleet of 8 pods x 4 slots, 100 adapters with Zipf's popularity, a look every 3 s, 200 looks: the setting of the
simulation that NVIDIA published for Dynamo's placement. Rates are averages as there (alpha 0.3), and each adapter wants
its share of the slots, one at least, so two thirds find none. All ways get the same wants and the same bounded slots,
and give them to the same replicas, but for what is held. What differs from Dynamo's: theirs has no bound (whoever finds
no slot is placed all the same), so its counts of changes are larger; compare the ratios. `hash` is what its `hrw` does;
`hash, kept` and `flow` are lorapick's. `changes` are loads and drops; `calm` the share of looks without any; `home` the
share of requests whose adapter has a place; `busiest` the rate of the busiest pod over the mean. With `replicas` the
wants have lorapick's hysteresis; in `moving`, two adapters exchange their popularity at every look.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from lorapick.core.placement.plans import Placed
from lorapick.core.placement.rendezvous_plan import by_rendezvous
from lorapick.core.placement.replicas import ReplicaRules, Replicas
from lorapick.core.placement.solving import solve
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom

SIZES = ((100, 32, 8), (1000, 200, 8))
FILLED = (0.6, 0.95, 1.1)
"""Replicas wanted over slots."""
LOOK = 3.0
PER_LOOK = 400
ALPHA = 0.3

# -- time


def changed(each: PlacedAdapter, **changes: Any) -> PlacedAdapter:
    return PlacedAdapter(**{name: getattr(each, name) for name in each.__struct_fields__} | changes)


def fleet(adapters: int, pods: int, slots: int, *, filled: float, chance: Random) -> PlacementProblem:
    """Zipf's rates, replicas by rate until the slots are filled, three zones, ranks 8 to 64, loads 0.3 to 2 s."""
    rates = [200.0 / (place + 1) for place in range(adapters)]
    wants = [1] * adapters
    while sum(wants) < filled * pods * slots:
        place = chance.choices(range(adapters), rates)[0]
        wants[place] = min(wants[place] + 1, pods // 2)
    return PlacementProblem(
        version=1,
        pods=tuple(
            PodRoom(pod=f"pod-{number:03}", slots=slots, zone=f"zone-{number % 3}", load=chance.uniform(0, 12))
            for number in range(pods)
        ),
        adapters=tuple(
            PlacedAdapter(
                adapter=f"adapter-{number:04}",
                replicas=wants[number],
                rate=rates[number],
                rank=chance.choice((8, 8, 8, 16, 64)),
                load_seconds=chance.choice((0.3, 0.7, 2.0)),
            )
            for number in range(adapters)
        ),
    )


def settled(problem: PlacementProblem, *, chance: Random) -> PlacementProblem:
    """The fleet afterwards: of fifty adapters one is new, and rates have changed by up to a fifth."""
    placed = solve(problem).placed
    there = [
        changed(
            each, now_on=() if number % 50 == 7 else placed[each.adapter], rate=each.rate * chance.uniform(0.8, 1.2)
        )
        for number, each in enumerate(problem.adapters)
    ]
    return PlacementProblem(version=2, pods=problem.pods, adapters=tuple(there))


def milliseconds(problem: PlacementProblem, rounds: int) -> float:
    took = []
    for _ in range(rounds):
        began = time.process_time()
        solve(problem)
        took.append(time.process_time() - began)
    return statistics.median(took) * 1e3


def times(rounds: int) -> dict[str, float]:
    """CPU milliseconds by size, filling and state."""
    found = {}
    for adapters, pods, slots in SIZES:
        for filled in FILLED:
            chance = Random(1)
            empty = fleet(adapters, pods, slots, filled=filled, chance=chance)
            there = settled(empty, chance=chance)
            name = f"{adapters} x {pods}, {filled:.0%} wanted"
            found[f"{name}, empty"] = milliseconds(empty, rounds)
            found[f"{name}, settled"] = milliseconds(there, rounds)
    return found


# -- moves


def at_random(problem: PlacementProblem, *, chance: Random) -> Placed:
    """Pods by chance, while there are slots."""
    free = {pod.pod: pod.slots for pod in problem.pods}
    placed: Placed = {}
    for each in problem.adapters:
        may = [pod for pod, slots in free.items() if slots > 0]
        placed[each.adapter] = tuple(sorted(chance.sample(may, min(each.replicas, len(may)))))
        for pod in placed[each.adapter]:
            free[pod] -= 1
    return placed


Way = Callable[[PlacementProblem], Placed]


def ways(seed: int) -> dict[str, Way]:
    chance = Random(seed)
    return {
        "random": lambda problem: at_random(problem, chance=chance),
        "hash": lambda problem: by_rendezvous(problem, keep=False),
        "hash, kept": by_rendezvous,
        "flow": lambda problem: solve(problem).placed,
    }


class Look(NamedTuple):
    """What is asked for between two looks, and what is wanted then."""

    counts: dict[str, int]
    wants: dict[str, tuple[float, int]]
    """Rate and replicas."""


def looks(ticks: int, *, seed: int, moving: bool, hysteresis: bool, slots: int = 32) -> list[Look]:
    chance = Random(seed)
    names = [f"adapter-{number:03}" for number in range(100)]
    weights = [1.0 / (place + 1) for place in range(100)]
    rates = dict.fromkeys(names, 0.0)
    replicas = Replicas(ReplicaRules(target=8.0))
    found = []
    for tick in range(ticks):
        if moving:
            one, other = chance.sample(range(100), 2)
            names[one], names[other] = names[other], names[one]
        counts = dict.fromkeys(sorted(names), 0)
        for name in chance.choices(names, weights, k=PER_LOOK):
            counts[name] += 1
        for name in rates:
            rates[name] += (ALPHA if tick else 1.0) * (counts[name] / LOOK - rates[name])
        total = sum(rates.values())
        shares = {name: max(1, round(slots * rate / total)) if rate else 0 for name, rate in rates.items()}
        if hysteresis:
            shares = {
                name: replicas.want(name, rate=rate, service=1.0, pods=8, now=tick * LOOK)
                for name, rate in rates.items()
            }
        found.append(Look(counts, {name: (rates[name], min(8, shares[name])) for name in rates}))
    return found


def problem_of(look: Look, placed: Placed, number: int) -> PlacementProblem:
    by_rate = sorted(look.wants, key=lambda name: (-look.wants[name][0], name))
    return PlacementProblem(
        version=number,
        pods=tuple(PodRoom(pod=f"pod-{row}", slots=4) for row in range(8)),
        adapters=tuple(
            PlacedAdapter(
                adapter=name, replicas=look.wants[name][1], rate=look.wants[name][0], now_on=placed.get(name, ())
            )
            for name in by_rate
        ),
    )


class Played(NamedTuple):
    changes: float
    loads: float
    calm: float
    home: float
    busiest: float


def play(way: Way, course: list[Look]) -> Played:
    """Carry out every plan at once. The first look fills the fleet and does not count."""
    placed: Placed = {}
    loads, drops, home, busiest = [], [], [], []
    for number, look in enumerate(course):
        plan = way(problem_of(look, placed, number))
        home.append(sum(count for name, count in look.counts.items() if placed.get(name)) / PER_LOOK)
        loads.append(sum(len(set(pods) - set(placed.get(name, ()))) for name, pods in plan.items()))
        drops.append(sum(len(set(placed.get(name, ())) - set(pods)) for name, pods in plan.items()))
        rates = dict.fromkeys((f"pod-{row}" for row in range(8)), 0.0)
        for name, pods in plan.items():
            for pod in pods:
                rates[pod] += look.wants[name][0] / len(pods)
        busiest.append(max(rates.values()) / statistics.fmean(rates.values()))
        placed = plan
    moved = [load + drop for load, drop in zip(loads[1:], drops[1:], strict=True)]
    return Played(
        changes=sum(moved),
        loads=sum(loads[1:]),
        calm=sum(not count for count in moved) / max(1, len(moved)),
        home=statistics.fmean(home[1:]),
        busiest=statistics.fmean(busiest),
    )


def courses(ticks: int, seeds: int) -> dict[str, dict[str, Played]]:
    """Means over seeds, by course and way."""
    found: dict[str, dict[str, Played]] = {}
    for moving in (False, True):
        for hysteresis in (False, True):
            name = ("moving" if moving else "steady") + (", replicas" if hysteresis else ", shares")
            rows: dict[str, list[Played]] = {}
            for seed in range(1, seeds + 1):
                course = looks(ticks, seed=seed, moving=moving, hysteresis=hysteresis)
                for way, plan in ways(seed).items():
                    rows.setdefault(way, []).append(play(plan, course))
            found[name] = {
                way: Played(*(statistics.fmean(column) for column in zip(*played, strict=True)))
                for way, played in rows.items()
            }
    return found


# -- what is shown


def shown(took: dict[str, float], played: dict[str, dict[str, Played]]) -> None:
    print("| problem | CPU ms |\n|---|---|")
    for name, value in took.items():
        print(f"| {name} | {value:.0f} |")
    print("\n| wants | way | changes | of `hash` | loads | calm | home | busiest |\n|---|---|---|---|---|---|---|---|")
    for course, rows in played.items():
        for way, each in rows.items():
            share = each.changes / max(1e-9, rows["hash"].changes)
            print(
                f"| {course} | {way} | {each.changes:.0f} | {share:.2f} | {each.loads:.0f} | {each.calm:.0%}"
                f" | {each.home:.1%} | {each.busiest:.2f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ticks", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    took, played = times(options.rounds), courses(options.ticks, options.seeds)
    if options.json:
        print(json.dumps({"milliseconds": took, "moves": played}, indent=2))
        return
    shown(took, played)


if __name__ == "__main__":
    main()
