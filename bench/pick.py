"""What one decision costs: CPU microseconds for fleets of 8 to 4,096 pods and 200 adapters, and memory per pod.

    python -m bench.pick [--rounds 5] [--json]

`pick` chooses among pods that all may serve, every adapter in turn; `request` is all that the core does for one:
RequestArrived, ResponseStarted and RequestEnded through `Fleet.apply`, with four prefix blocks. CPU time, medians of
the rounds, all sizes interleaved in each round, so that ratios hold on a machine with other work. `yardstick_us` is a
loop of plain Python in the same rounds, to compare machines by.
"""

import argparse
import gc
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable

from lorapick.core.fleet import Fleet
from lorapick.core.picking.pick import LOOP_ROWS, pick, pick_by_columns, pick_by_loop
from lorapick.core.picking.query import Query, prepare
from lorapick.model.adapters import Adapter
from lorapick.model.events import Event, PodAppeared, PodReported, RequestArrived, RequestEnded, ResponseStarted
from lorapick.model.pods import Pod, PodReport
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import ScrapeSettings, Settings

SIZES = (8, 64, 512, 4096)
AROUND = (16, 32, 48, 64, 96)
"""Sizes at which the loop is compared with the columns, to find where they cross."""
ADAPTERS = tuple(f"adapter-{number:03d}" for number in range(200))
ADAPTERS_ON_GPU = 4
DECISIONS = 200
"""Per measurement; fewer for the loop over large fleets."""


class Case:
    """A fleet of some size, warm: every pod reported, holds adapters, and may serve."""

    def __init__(self, pods: int) -> None:
        self.pods = pods
        self.fleet = Fleet(
            Settings(
                adapters=tuple(Adapter(name=name, rank=16) for name in ADAPTERS),
                scrape=ScrapeSettings(stale_after=1e9),
            ),
            seed=1,
        )
        self._id = 0
        report = PodReport(waiting=0, running=2, registered=ADAPTERS, gpu_utilization=0.3)
        for number in range(pods):
            name = f"pod-{number:04d}"
            self.apply(PodAppeared, pod=Pod(name=name, address=f"10.1.{number // 256}.{number % 256}:8000"))
            self.apply(PodReported, pod=name, report=report)
        for turn in range(min(ADAPTERS_ON_GPU * pods, 4 * len(ADAPTERS))):
            self.request(turn)
        state = self.fleet.state
        self.queries = [self._query(name) for name in ADAPTERS]
        assert all(len(query.codes or ()) >= pods for query in self.queries)
        self.columns, self.policy = state.columns, state.policy

    def apply(self, kind: Callable[..., Event], **fields: object) -> None:
        self._id += 1
        self.fleet.apply(kind(t=0.0, id=self._id, **fields), 0.0)

    def request(self, turn: int) -> None:
        request_id = f"r{turn}"
        blocks = tuple(range(turn % 50, turn % 50 + 4))
        asked = Request(id=request_id, model=ADAPTERS[turn % len(ADAPTERS)], blocks=blocks)
        self.apply(RequestArrived, request=asked)
        self.apply(ResponseStarted, request_id=request_id, status=200)
        self.apply(RequestEnded, request_id=request_id, outcome=Outcome.SERVED)

    def _query(self, name: str) -> Query:
        state = self.fleet.state
        return prepare(Request(id="bench", model=name), state.adapters[name], columns=state.columns, kv={0: 0.5})

    def time_pick(self, way: Callable[..., object], times: int) -> float:
        """Microseconds of one pick."""
        queries, columns, policy = self.queries, self.columns, self.policy
        began = time.process_time_ns()
        for turn in range(times):
            way(queries[turn % 200], columns, now=0.0, draw=0.4, policy=policy, fallbacks=2)
        return (time.process_time_ns() - began) / times / 1000

    def time_request(self, times: int) -> float:
        """Microseconds of one request, from arrival to end."""
        began = time.process_time_ns()
        for turn in range(times):
            self.request(turn)
        return (time.process_time_ns() - began) / times / 1000


def yardstick() -> float:
    began = time.process_time_ns()
    for _ in range(DECISIONS):
        sum([number * number for number in range(100)])
    return (time.process_time_ns() - began) / DECISIONS / 1000


def one_round(cases: dict[int, Case]) -> dict[str, float]:
    figures = {"yardstick_us": yardstick()}
    for pods, case in cases.items():
        few = max(5, DECISIONS * 64 // max(64, pods))
        figures[f"loop_{pods}"] = case.time_pick(pick_by_loop, few)
        figures[f"columns_{pods}"] = case.time_pick(pick_by_columns, DECISIONS)
        if pods in SIZES:
            figures[f"pick_{pods}"] = case.time_pick(pick, DECISIONS)
            figures[f"request_{pods}"] = case.time_request(DECISIONS)
    return figures


def crossover(medians: dict[str, float]) -> int:
    """Most pods for which the loop was still the faster one."""
    return max((pods for pods in (*SIZES, *AROUND) if medians[f"loop_{pods}"] <= medians[f"columns_{pods}"]), default=0)


def memory_per_pod(pods: int = 512) -> float:
    """Bytes that one more pod costs, Python's objects included (registries alike are shared)."""
    Case(8)  # whatever is made once
    gc.collect()
    tracemalloc.start()
    small = Case(pods // 4)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    large = Case(pods)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    del small, large
    return used / pods


def measure(rounds: int) -> dict[str, float]:
    """Medians in microseconds, what follows from them, and memory."""
    cases = {pods: Case(pods) for pods in sorted((*SIZES, *AROUND))}
    one_round(cases)
    found = [one_round(cases) for _ in range(rounds)]
    medians = {name: statistics.median(each[name] for each in found) for name in found[0]}
    growth = (medians["pick_4096"] - medians["pick_512"]) / (4096 - 512) * 1000
    return {
        **{name: round(value, 2) for name, value in medians.items()},
        "pick_growth_ns_per_pod": round(growth, 1),
        "pick_8_in_yardsticks": round(medians["pick_8"] / medians["yardstick_us"], 2),
        "request_8_in_yardsticks": round(medians["request_8"] / medians["yardstick_us"], 2),
        "request_4096_per_request_8": round(medians["request_4096"] / medians["request_8"], 2),
        "crossover_pods": crossover(medians),
        "loop_rows_configured": LOOP_ROWS,
        "bytes_per_pod_in_columns": cases[8].columns.bytes_per_pod(len(ADAPTERS)),
        "bytes_per_pod_in_all": round(memory_per_pod()),
    }


def command(description: str | None, measure: Callable[[int], dict[str, float]], *, rounds: int) -> None:
    """The command line of a benchmark that measures in rounds."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    figures = measure(arguments.rounds)
    if arguments.json:
        print(json.dumps(figures, indent=2))
    else:
        print("\n".join(f"{name:32} {value:>12}" for name, value in figures.items()))


if __name__ == "__main__":
    command(__doc__, measure, rounds=5)
