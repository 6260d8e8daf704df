"""What admission and the policy `cost` do against thrash, beside its targets: the table of docs/benchmarks.md.

    python -m bench.thrash [--seeds 3] [--only after,stampede] [--workers 2] [--json]

Arms with the same pods and the same arrivals, for pods that drain and for pods that swap inline:

- `plain`: the article's weights, with followers of loads and nothing else; what no pod takes waits at the picker;
- `weighted`: the same behind admission; `cost`: the policy of that name, behind admission;
- `window`, `kept`: `cost`, on pods that evict by the article's window, or by our own retention, instead of LRU;
- `no swaps`: the article's weights with a slot for every adapter, for comparison.

Bounds are those of `sim.bounds`: loads that an owner of all slots who knows the future needs for the order of arrival.
A run in which some arrival was not served does not count, and is marked. Figures are means over seeds, 1 to `--seeds`.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import mean, median
from typing import Any, NamedTuple

from lorapick.model.units import AdapterName, Seconds
from lorapick.plan.capacity import UNROUTED, Capacity
from lorapick.plan.scenario_files import load_scenario
from lorapick.plan.simulations import capacities, jobs_for, play_all
from lorapick.pod.values import FirstToken, RequestFinished, SwapStarted
from lorapick.sim.build import arrivals_of, world_of
from lorapick.sim.report import RunReport
from lorapick.sim.scenario import Scenario, shortened
from lorapick.sim.tally import Tally

MODES = ("drain", "inline")
PLAIN = (
    "{admission: {max_wait: 10m, max_queued: 100000, slot_budget: false, probation: {slots_share: 1.0}},"
    " budgets: {loads_at_once: 64, pods_loading_share: 1.0}}"
)


class Arm(NamedTuple):
    """A policy, and what else is different."""

    policy: str
    overrides: dict[str, str]


PLAIN_ARM, WEIGHTED, COST = Arm("weighted", {"settings": PLAIN}), Arm("weighted", {}), Arm("cost", {})
ARMS = {"plain": PLAIN_ARM, "weighted": WEIGHTED, "cost": COST}
AFTER = {
    "run": "{for: 5m, warm_up: 2m, window: 5s}",
    "periods": "[]",
    "expect": "[]",
    "phases": '[{at: 0s, change: {split: {top: 20, into: "{name}-experiment", share: 0.5}}}]',
}
RATES = ("36/s", "44/s", "52/s")
WARMED = (
    "[{name: ordinary, adapters: {top: 16}, rate: 8/s, tokens: {prompt: 32, output: [4, 12]}},"
    " {name: before, adapters: {last: 1}, process: {burst: {count: 1, at: 2m58s, over: 1s}},"
    "  tokens: {prompt: 32, output: [4, 12]}},"
    " {name: stampede, adapters: {last: 1}, process: {burst: {count: 100, at: 3m, over: 2s}},"
    "  tokens: {prompt: 32, output: [4, 12]}}]"
)
"""The stampede's arrivals, and one request for its adapter shortly before: so it is there already."""


class Plan(NamedTuple):
    """How often, and on how many cores."""

    seeds: int
    workers: int | None


def played(scenario: str, arm: Arm, *, mode: str, plan: Plan) -> list[RunReport]:
    """All seeds of one arm."""
    loaded = load_scenario(scenario, overrides={"fleet.mode": mode, **arm.overrides})
    return [*play_all(jobs_for(loaded, policies=(arm.policy,), seeds=seeds(plan)), workers=plan.workers)]


def seeds(plan: Plan) -> range:
    return range(1, plan.seeds + 1)


def spread(values: Sequence[float], digits: int) -> str:
    """The lowest and the highest."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}" if values else ""


def figures_of(reports: Sequence[RunReport]) -> dict[str, Any]:
    """Means over seeds; of the period that a scenario is about, where it has one."""
    stretches = [report.periods.get(report.scenario, report.whole) for report in reports]
    bounds = [report.bounds.arrival_order for report in reports if report.bounds is not None]
    loads, bound = mean(each.loads for each in stretches), mean(bounds) if bounds else 0.0
    return {
        "loads": loads,
        "bound": bound,
        "loads_per_bound": loads / bound if bound else None,
        "ratios": spread([each.loads / most for each, most in zip(stretches, bounds, strict=True) if most], 2),
        "p95s": spread([1e3 * (each.latency.p95 or 0.0) for each in stretches], 0),
        "p50_ms": 1e3 * mean(each.latency.p50 or 0.0 for each in stretches),
        "p95_ms": 1e3 * mean(each.latency.p95 or 0.0 for each in stretches),
        "p99_ms": 1e3 * mean(each.latency.p99 or 0.0 for each in stretches),
        "unserved": sum(each.failed + each.rejected + each.abandoned for each in stretches),
        "load_ms": 1e3 * sum(sum(each.load_seconds.values()) for each in reports)
        / max(1, sum(sum(each.swaps_from.values()) for each in reports)),
    }  # fmt: skip


# -- war-story after the A/B test


def after(plan: Plan) -> dict[str, Any]:
    """60 adapters, 32 slots."""
    found: dict[str, Any] = {}
    arms = {
        **ARMS,
        "window": Arm("cost", {"fleet.retention": "window"}),
        "kept": Arm("cost", {"fleet.retention": "cost"}),
        "no swaps": Arm("weighted", {"settings": PLAIN, "fleet.slots": "60"}),
    }
    for rate in RATES:
        for mode in MODES:
            for name, arm in arms.items():
                own = Arm(arm.policy, {**AFTER, "arrivals.rate": rate, **arm.overrides})
                found[f"{rate}, {mode}, {name}"] = said(
                    name, figures_of(played("war-story", own, mode=mode, plan=plan))
                )
    return found


def after_table(found: dict[str, Any]) -> Iterator[str]:
    """Loads beside the bound, P95 beside the article's weights."""
    yield "War story after the A/B test: 60 adapters, 32 slots."
    yield "Aims: loads ≤ 2.0 × bound; P95 ≤ 0.93 × `plain` for `cost`, ≤ 0.85 × for `window`, `kept`."
    yield ""
    yield from head(
        "rate, pods, arm", "loads / bound (seeds)", "P50 ms", "P95 ms (seeds)", "P95 / `plain`", "not served"
    )
    for key, row in found.items():
        plain = found[f"{key.rpartition(', ')[0]}, plain"]
        ratio = row["p95_ms"] / plain["p95_ms"]
        beside = f"{ratio:.2f}" if not plain["unserved"] else f"{ratio:.2f} (`plain` does not count)"
        loads = (
            f"{row['loads_per_bound']:.2f} ({row['ratios']})" if row["loads_per_bound"] else f"{row['loads']:.0f} loads"
        )
        p95 = f"{row['p95_ms']:.0f} ({row['p95s']})"
        yield line(key, loads, f"{row['p50_ms']:.0f}", p95, beside, f"{row['unserved']}")
    yield ""


# -- one adapter among others


class Watched(Tally):
    """A tally that also knows each request's adapter, first token and end, and who was loaded when."""

    def __init__(self, *, start: Seconds, window: Seconds) -> None:
        super().__init__(start=start, window=window)
        self.came: dict[str, tuple[AdapterName, Seconds]] = {}
        self.first: dict[str, Seconds] = {}
        self.done: dict[str, Seconds] = {}
        self.loads_of: dict[AdapterName, list[Seconds]] = defaultdict(list)

    def arrived(self, arrival: Any) -> None:
        self.came[arrival.id] = arrival.adapter, arrival.t
        super().arrived(arrival)

    def happened(self, pod: Any, event: Any) -> None:
        match event:
            case FirstToken():
                self.first[event.request_id] = event.t
            case RequestFinished():
                self.done[event.request_id] = event.t
            case SwapStarted():
                self.loads_of[event.adapter].append(event.t)
        super().happened(pod, event)


def watched(scenario: Scenario, policy: str, *, seed: int) -> Watched:
    """Play a scenario once."""
    plan = scenario.run
    tally = Watched(start=plan.warm_up, window=plan.window)
    world = world_of(scenario, policy=policy, seed=seed, observer=tally)
    world.run(arrivals_of(scenario, seed), until=plan.length)
    return tally


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def stampede(plan: Plan) -> dict[str, Any]:
    """100 requests for a cold adapter in 2 s; `there`: the same when it is on one pod already."""
    arms = {**ARMS, "there": Arm("weighted", {"arrivals": WARMED})}
    found = {}
    for mode in MODES:
        for name, arm in arms.items():
            scenario = load_scenario("stampede", overrides={"fleet.mode": mode, **arm.overrides})
            plays = [burst(watched(scenario, arm.policy, seed=seed)) for seed in seeds(plan)]
            load_ms = figures_of(played("stampede", arm, mode=mode, plan=plan))["load_ms"]
            found[f"{mode}, {name}"] = said(
                name,
                {
                    "loads": ", ".join(str(loads) for _, loads in plays),
                    "p50_ms": 1e3 * mean(quantile(times, 0.5) for times, _ in plays),
                    "p99_ms": 1e3 * mean(quantile(times, 0.99) for times, _ in plays),
                    "served": ", ".join(str(len(times)) for times, _ in plays),
                    "load_ms": load_ms,
                },
            )
    return found


def burst(tally: Watched) -> tuple[list[Seconds], int]:
    """Of the cold adapter alone, from the third minute on: times of its answers, loads."""
    cold, begin = "adapter-17", 180.0
    times = [
        tally.done[request_id] - came
        for request_id, (adapter, came) in tally.came.items()
        if adapter == cold and came >= begin and request_id in tally.done
    ]
    return times, sum(t >= begin for t in tally.loads_of[cold])


def stampede_table(found: dict[str, Any]) -> Iterator[str]:
    """Loads, and P99 beside load time + 1.2 × service time."""
    yield "Stampede: 100 requests for a cold adapter in 2 s; figures of that adapter alone. Aims: one load; P99 ≤ load"
    yield "time + 1.2 × service time, which is the P99 of the same burst when the adapter is there (`there`)."
    yield ""
    yield from head("pods, arm", "its loads, by seed", "P50 ms", "P99 ms", "P99 may be", "served of 100, by seed")
    for key, row in found.items():
        most = row["load_ms"] + 1.2 * found[f"{key.split(', ')[0]}, there"]["p99_ms"]
        yield line(key, row["loads"], f"{row['p50_ms']:.0f}", f"{row['p99_ms']:.0f}", f"{most:.0f}", row["served"])
    yield ""


def starvation(plan: Plan) -> dict[str, Any]:
    """16 hot adapters hold all 16 slots, 8 cold ones come."""
    found = {}
    for mode in MODES:
        for name, arm in ARMS.items():
            scenario = load_scenario("starvation", overrides={"fleet.mode": mode, **arm.overrides})
            waits = [p99_by_adapter(watched(scenario, arm.policy, seed=seed), scenario) for seed in seeds(plan)]
            row = figures_of(played("starvation", arm, mode=mode, plan=plan))
            worst, middle = mean(max(each) for each in waits), mean(median(each) for each in waits)
            kept = sum(max(each) <= max(5 * median(each), 2e-3 * row["load_ms"]) for each in waits)
            found[f"{mode}, {name}"] = said(name, {"worst_s": worst, "median_s": middle, "kept": kept, **row})
    return found


def p99_by_adapter(tally: Watched, scenario: Scenario) -> list[Seconds]:
    """P99 of the time to the first token, for each adapter; who has none by the end has waited until then."""
    plan, by_adapter = scenario.run, defaultdict(list)
    for request_id, (adapter, came) in tally.came.items():
        if plan.warm_up <= came < plan.length - 15.0:
            by_adapter[adapter].append(tally.first.get(request_id, plan.length) - came)
    return [quantile(times, 0.99) for times in by_adapter.values()]


def starvation_table(found: dict[str, Any]) -> Iterator[str]:
    """Worst adapter beside the median one."""
    yield "Starvation: 16 hot adapters use all 16 slots all the time, 8 cold ones come. P99 of the time to the first"
    yield "token, by adapter. Aim: worst ≤ max(5 × median, two load times)."
    yield ""
    yield from head(
        "pods, arm", "worst s", "median s", "worst / median", "seeds that kept it", "P95 of answers s", "not served"
    )
    for key, row in found.items():
        worst, middle = row["worst_s"], row["median_s"]
        ratio, p95 = worst / middle, 1e-3 * row["p95_ms"]
        cells = f"{worst:.2f}", f"{middle:.2f}", f"{ratio:.2f}", f"{row['kept']}", f"{p95:.1f}", f"{row['unserved']}"
        yield line(key, *cells)
    yield ""


# -- throughput

MEASURED: Seconds = 60.0
"""After the warm-up, for each rate that a search tries; a search has some ten of them, so it has one seed."""


def throughput(scenario: str, slots: str) -> Callable[[Plan], dict[str, Any]]:
    """The highest rate at P95 ≤ 1 s, beside that of the same fleet with a slot for every adapter."""

    def search(plan: Plan) -> dict[str, Any]:
        found = {}
        for mode in MODES:
            for name, arm in {**ARMS, "no swaps": Arm(UNROUTED, {"fleet.slots": slots})}.items():
                whole = load_scenario(scenario, overrides={"fleet.mode": mode, **arm.overrides})
                loaded = shortened(whole, whole.run.warm_up + MEASURED)
                jobs = jobs_for(loaded, policies=(arm.policy,), seeds=(1,))
                found[f"{mode}, {name}"] = said(name, rates(capacities(jobs, 1.0, workers=plan.workers)))
        return found

    return search


def rates(found: Sequence[Capacity]) -> dict[str, Any]:
    """What was found; and the largest share that was not served at such a rate."""
    kept = [each.rate for each in found if each.rate is not None]
    lost = [tried.lost for each in found for tried in each.tried if tried.rate == each.rate]
    return {"rate": mean(kept) if len(kept) == len(found) else None, "lost": max(lost, default=0.0)}


def throughput_table(words: str) -> Callable[[dict[str, Any]], Iterator[str]]:
    """Rates, and shares of what there would be without swaps."""

    def table(found: dict[str, Any]) -> Iterator[str]:
        yield words
        yield ""
        yield from head("pods, arm", "requests/s", "share", "not served, at most")
        for key, row in found.items():
            rate, best = row["rate"], found[f"{key.split(', ')[0]}, no swaps"]["rate"]
            share = f"{rate / best:.0%}" if rate and best else "-"
            yield line(key, f"{rate:.1f}" if rate else "none kept the limit", share, f"{row['lost']:.2%}")
        yield ""

    return table


CONVOY = (
    "Convoy: 24 adapters on 6 pods with 4 slots. Highest rate at P95 ≤ 1 s (seed 1). Aim: ≥ 80 % of least-loaded"
    "\non the same fleet with a slot for every adapter."
)
HOTSPOT = "Hotspot: one of 16 adapters has 60 % of the traffic. The same figures. Aim: ≥ 90 %."
CASES: dict[str, tuple[Callable[[Plan], dict[str, Any]], Callable[[dict[str, Any]], Iterator[str]]]] = {
    "after": (after, after_table),
    "stampede": (stampede, stampede_table),
    "starvation": (starvation, starvation_table),
    "convoy": (throughput("convoy", "24"), throughput_table(CONVOY)),
    "hotspot": (throughput("hotspot", "16"), throughput_table(HOTSPOT)),
}


# -- output


def said(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row; and a sign of life."""
    print(name, row, file=sys.stderr, flush=True)
    return row


def head(*names: str) -> Iterator[str]:
    yield line(*names)
    yield "|" + "---|" * len(names)


def line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--only", default=",".join(CASES), help=f"some of {', '.join(CASES)}")
    parser.add_argument("--json", action="store_true", help="figures and tables as one JSON document")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := [name for name in wanted if name not in CASES]:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    plan = Plan(seeds=options.seeds, workers=options.workers)
    found = {name: CASES[name][0](plan) for name in wanted}
    lines = [f"`python -m bench.thrash --seeds {options.seeds}`: means over seeds 1 to {options.seeds}.", ""]
    tables = "\n".join([*lines, *(text for name in wanted for text in CASES[name][1](found[name]))])
    print(json.dumps({"tables": tables, **found}) if options.json else tables)


if __name__ == "__main__":
    main()
