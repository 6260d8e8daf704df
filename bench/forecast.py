"""Cold starts of a simulated week with each forecast: ServeGen's m-small clients as adapters, real pods' model.

    python -m bench.forecast [--days 7] [--seeds 3] [--set KEY=VALUE] [--workers 2] [--json]

Prints the table of docs/forecast.md. Plays the scenario `servegen-week` (days 8 to 14 of the trace) with the picker's
own controller: no preload, last hour, seasonal, blend, and a perfect forecast, which is told the counts of the week
that it is in. Each forecast but the first knows what was asked for in days 1 to 7, drawn from the trace with the same
seed. A cold start is a request that waited for a load. Simulated: the same seeds give the same figures on any machine.
"""

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

import msgspec
import numpy as np

from lorapick.core.forecast.history import BIN, History, bin_of
from lorapick.core.forecast.models import Perfect
from lorapick.model import events
from lorapick.model.placement import DemandBin
from lorapick.plan.datafiles import data_path, open_lines
from lorapick.plan.scenario_files import load_scenario
from lorapick.sim.arrivals import Arrival
from lorapick.sim.build import arrivals_of
from lorapick.sim.run import Options, run
from lorapick.sim.scenario import Scenario, shortened
from lorapick.sim.workload.clients import client_flows
from lorapick.sim.workload.spec import Flow
from lorapick.sim.world import World
from lorapick.wire.traces.servegen import all_windows

DAY = 86_400.0
MODELS = ("none", "last_hour", "seasonal", "blend", "perfect")
RESAMPLES = 4_000


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One week."""

    model: str
    seed: int
    arrivals: int
    cold_per_1000: float
    ttft_p99_ms: float
    loads: int


def counted(arrivals: Iterable[Arrival], *, begin: float) -> tuple[DemandBin, ...]:
    """Requests per adapter and bin, `begin` being the Unix time of t = 0."""
    counts = Counter((bin_of(begin + each.t), each.adapter) for each in arrivals if each.adapter is not None)
    return tuple(DemandBin(start=number * BIN, adapter=name, count=count) for (number, name), count in counts.items())


def week_before(scenario: Scenario) -> Scenario:
    """The scenario with the first week's demand, each client under the adapter that it has in the second, to scale."""
    windows = [*all_windows(open_lines(data_path("traces/servegen_m_small.csv.zst")))]
    flows = scenario.workload.flows
    after = client_flows(windows, sizes=flows[0].sizes, span=(7 * DAY, 14 * DAY), adapter="{client}")
    before = client_flows(windows, sizes=flows[0].sizes, span=(0.0, 7 * DAY), adapter="{client}")
    adapters = {mine.name: theirs.adapters for mine, theirs in zip(after, flows, strict=False)}
    rate = volume(before) * volume(flows) / volume(after) / (7 * DAY)
    scaled = client_flows(windows, sizes=flows[0].sizes, span=(0.0, 7 * DAY), rate=rate, adapter="{client}")
    named = [msgspec.structs.replace(flow, adapters=adapters[flow.name]) for flow in scaled if flow.name in adapters]
    workload = msgspec.structs.replace(scenario.workload, flows=tuple(named), until=7 * DAY)
    return msgspec.structs.replace(scenario, workload=workload)


def volume(flows: Iterable[Flow]) -> float:
    """Requests of flows in all."""
    return sum(window.rate * (window.end - window.start) for flow in flows for window in flow.process.windows)


def play(model: str, seed: int, *, days: float, sets: Sequence[str]) -> Result:
    overrides = dict(each.split("=", 1) for each in sets)
    scenario = load_scenario("servegen-week", overrides=overrides)
    forecast = "off" if model == "none" else "blend" if model == "perfect" else model
    settings = msgspec.structs.replace(
        scenario.settings, placement=msgspec.structs.replace(scenario.settings.placement, forecast=forecast)
    )
    scenario = msgspec.structs.replace(scenario, settings=settings)
    begin = scenario.run.unix
    assert begin is not None
    past = counted(arrivals_of(week_before(scenario), seed), begin=begin - 7 * DAY)
    if days < 7:
        scenario = shortened(scenario, days * DAY)

    def prepare(world: World) -> None:
        if model != "none":
            world.apply(events.DemandRecalled, bins=past)
        if model == "perfect":
            future = History()
            future.recall(counted(arrivals_of(scenario, seed), begin=begin))
            world.fleet.state.placement.forecast = Perfect(future)

    report = run(scenario, seed=seed, options=Options(prepare=prepare, bounds=False))
    whole = report.whole
    return Result(
        model=model,
        seed=seed,
        arrivals=whole.arrivals,
        cold_per_1000=1000.0 * whole.waited / whole.arrivals,
        ttft_p99_ms=1000.0 * (whole.ttft.p99 or 0.0),
        loads=whole.loads,
    )


def ratio(results: list[Result], model: str, other: str) -> tuple[float, float, float]:
    """Cold starts of one model over another's, paired by seed: mean, and a 95 % bootstrap interval."""
    by = {(each.model, each.seed): each.cold_per_1000 for each in results}
    seeds = sorted({each.seed for each in results})
    pairs = np.array([(by[model, seed], by[other, seed]) for seed in seeds])
    rng = np.random.default_rng(1)
    picks = rng.integers(0, len(seeds), size=(RESAMPLES, len(seeds)))
    sums = pairs[picks].sum(axis=1)
    drawn = sums[:, 0] / sums[:, 1]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(pairs[:, 0].sum() / pairs[:, 1].sum()), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of the scenario, such as fleet.pods=5")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    jobs = [*product(args.models, range(1, args.seeds + 1))]
    with ProcessPoolExecutor(args.workers) as pool:
        results = [*pool.map(partial(_job, days=args.days, sets=args.set), jobs)]
    if args.json:
        print(json.dumps([msgspec.to_builtins(each) for each in results], indent=2))
        return
    print(
        "| forecast | cold starts per 1,000 | against last hour | TTFT P99 | loads per 1,000 |\n|---|---|---|---|---|"
    )
    for model in args.models:
        mine = [each for each in results if each.model == model]
        against = ""
        if "last_hour" in args.models:
            mean, low, high = ratio(results, model, "last_hour")
            against = f"{mean:.3f} ({low:.3f}-{high:.3f})"
        cold = statistics.mean(each.cold_per_1000 for each in mine)
        ttft = statistics.mean(each.ttft_p99_ms for each in mine)
        loads = statistics.mean(1000.0 * each.loads / each.arrivals for each in mine)
        print(f"| {model} | {cold:.2f} | {against} | {ttft:.0f} ms | {loads:.1f} |")


def _job(job: tuple[str, int], *, days: float, sets: Sequence[str]) -> Result:
    return play(*job, days=days, sets=sets)


if __name__ == "__main__":
    main()
