"""What prefill on one pod and decode on another gives, with adapters and without, and when it gives nothing.

    python -m bench.disagg [--until 60] [--seeds 1] [--workers 2] [--no-capacity] [--json]

Plays the scenario `disagg` in four corners: pods that do both, or half of them either; round-robin, or the policy
`cost`. Beside them: pairs chosen independently, and one adapter only, which every pod holds. `capacity` is the highest
rate that keeps the P95 of latency within the scenario's limit (`lorapick simulate --capacity`), `gain` what it has over
the first column's. Then other assumptions, each with `cost`: how much more a fleet of which half prefills bears than
one whose pods do both. Latencies there are those of a rate at which the fleet has little to do. Takes some
twenty CPU minutes.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from lorapick.model.pods import Role
from lorapick.plan.capacity import capacity
from lorapick.plan.scenario_files import load_scenario
from lorapick.plan.spreading import Progress, spread
from lorapick.sim.metrics import METRICS, shown
from lorapick.sim.report import RunReport
from lorapick.sim.run import Options, run
from lorapick.sim.scenario import Scenario, shortened

BOTH, HALF = "{}", "{prefill: 6, decode: 6}"
BLIND, AWARE = "round-robin", "cost"
LOW_RATE = "3/s"


class Row(NamedTuple):
    """One line of a table: keys of the scenario, each with another value."""

    name: str
    overrides: dict[str, str]


CORNERS = (
    Row("plain", {"fleet.roles": BOTH, "policy": BLIND}),
    Row("disaggregation only", {"fleet.roles": HALF, "policy": BLIND}),
    Row("adapter-aware only", {"fleet.roles": BOTH, "policy": AWARE}),
    Row("both", {"fleet.roles": HALF, "policy": AWARE}),
    Row("both, chosen independently", {
        "fleet.roles": HALF, "policy": AWARE, "settings.disaggregation.choice": "independent",
    }),
    Row("one adapter, pods that do both", {"fleet.roles": BOTH, "policy": AWARE, "adapters.count": "1"}),
    Row("one adapter, disaggregation", {"fleet.roles": HALF, "policy": AWARE, "adapters.count": "1"}),
)  # fmt: skip
ASSUMPTIONS = (
    Row("as above", {}),
    Row("short prompts: 100 to 400 tokens, all sent", {
        "arrivals.tokens": "{prompt: [100, 400], output: [100, 200]}", "settings.disaggregation.decide": "always",
    }),
    Row("long answers: 400 to 800 tokens", {
        "arrivals.tokens": "{prompt: [2000, 4000], output: [400, 800]}", "latency_limit": "20s",
    }),
    Row("tight limit: P95 of 3.5 s", {"latency_limit": "3500ms"}),
    Row("links: 25 Gbit/s TCP, 2.5 GB/s of them", {"settings.disaggregation.links.same_zone": "2500MB"}),
    Row("links: 2 Gbit/s, 0.2 GB/s of them", {"settings.disaggregation.links.same_zone": "200MB"}),
    Row("4 slots on every pod", {"fleet.slots": "4"}),
    Row("2 slots on pods that prefill", {"fleet.roles": "{prefill: {pods: 6, slots: 2}, decode: 6}"}),
    Row("2 slots, loads of 1 s", {
        "fleet.roles": "{prefill: {pods: 6, slots: 2}, decode: 6}", "fleet.cpu_slots": "8", "fleet.storage": "15MB/s",
    }),
    Row("9 prefill, 3 decode", {"fleet.roles": "{prefill: 9, decode: 3}"}),
    Row("3 prefill, 9 decode", {"fleet.roles": "{prefill: 3, decode: 9}"}),
)  # fmt: skip
SHOWN = ("p50_ms", "p95_ms", "ttft_p50_ms", "ttft_p95_ms", "tpot_p50_ms", "tpot_p95_ms", "goodput", "swap_share")


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One run, or one search for a capacity."""

    overrides: dict[str, str]
    seed: int
    until: float
    searches: bool


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    report: RunReport | None = None
    rate: float | None = None
    """Highest that is borne."""


def scenario_of(task: Task) -> Scenario:
    return shortened(load_scenario("disagg", overrides=task.overrides), task.until)


def work(task: Task, progress: Progress) -> Found:
    scenario = scenario_of(task)
    policy = scenario.settings.picking.policy
    if not task.searches:
        return Found(report=run(scenario, policy=policy, seed=task.seed, options=Options(progress=progress)))
    limit = scenario.latency_limit
    assert limit is not None
    return Found(rate=capacity(scenario, policy=policy, seed=task.seed, limit=limit, progress=progress).rate)


class Plan(NamedTuple):
    """How much is played."""

    until: float
    seeds: int
    workers: int | None
    capacity: bool

    def tasks(self, rows: Sequence[Row], *, searches: bool) -> list[Task]:
        return [
            Task(overrides=row.overrides, seed=seed, until=self.until, searches=searches)
            for row in rows
            for seed in range(1, 1 + self.seeds)
        ]

    def play(self, rows: Sequence[Row]) -> list[list[RunReport]]:
        """Reports of each row, a seed after the other."""
        found = spread(work, self.tasks(rows, searches=False), workers=self.workers)
        reports = [each.report for each in found if each.report is not None]
        return [reports[number : number + self.seeds] for number in range(0, len(reports), self.seeds)]

    def search(self, rows: Sequence[Row]) -> list[float | None]:
        """Capacity of each row, the mean over seeds; None: some seed has none."""
        if not self.capacity:
            return [None] * len(rows)
        found = [each.rate for each in spread(work, self.tasks(rows, searches=True), workers=self.workers)]
        parts = [found[number : number + self.seeds] for number in range(0, len(found), self.seeds)]
        return [None if None in part else fmean(rate for rate in part if rate is not None) for part in parts]


# -- figures


def mean(reports: Sequence[RunReport], name: str) -> float | None:
    values = [METRICS[name].of(each.whole) for each in reports]
    return None if None in values else fmean(value for value in values if value is not None)


def side(reports: Sequence[RunReport], role: Role, what: str) -> float | None:
    """A figure of the pods of one role; of those that do both where there are no roles."""
    found = [getattr(each, what) for report in reports for each in report.sides if each.role is role]
    return None if not found or None in found else fmean(found)


def figures(reports: Sequence[RunReport]) -> dict[str, float | None]:
    first = {name: mean(reports, name) for name in SHOWN}
    arrivals = sum(each.whole.arrivals for each in reports)
    loads = sum(each.whole.loads for each in reports)
    hits, prefill_hits = mean(reports, "hit_ratio"), mean(reports, "prefill_hit_ratio")
    busy = mean(reports, "busy_share")
    return first | {
        "loads_per_1000": 1000 * loads / arrivals if arrivals else None,
        "split_share": mean(reports, "split_share"),
        "prefill_hits": prefill_hits,
        "hits": hits,
        "prefill_busy": side(reports, Role.PREFILL, "busy"),
        "decode_busy": side(reports, Role.DECODE, "busy") or busy,
        "lost_share": mean(reports, "lost_share"),
    }


HEADS = {
    "loads_per_1000": ("loads/1,000 requests", ""),
    "split_share": ("disaggregated", "%"),
    "prefill_hits": ("hits, prefill side", "%"),
    "hits": ("hits", "%"),
    "prefill_busy": ("busy, prefill side", "%"),
    "decode_busy": ("busy", "%"),
    "lost_share": ("not served", "%"),
}


def cell(name: str, value: float | None) -> str:
    unit = HEADS[name][1] if name in HEADS else METRICS[name].unit
    return shown(value, unit)


def label(name: str) -> str:
    return HEADS[name][0] if name in HEADS else METRICS[name].label


def rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} /s"


def ratio(one: float | None, other: float | None) -> str:
    return f"{one / other - 1:+.0%}" if one and other else "–"


# -- tables


def corners(plan: Plan) -> list[dict[str, Any]]:
    reports, rates = plan.play(CORNERS), plan.search(CORNERS)
    return [
        {"row": row.name, "capacity": borne, "gain": ratio(borne, rates[0])} | figures(found)
        for row, found, borne in zip(CORNERS, reports, rates, strict=True)
    ]


def assumptions(plan: Plan) -> list[dict[str, Any]]:
    alone = [Row(each.name, each.overrides | {"fleet.roles": BOTH, "policy": AWARE}) for each in ASSUMPTIONS]
    halves = [Row(each.name, {"fleet.roles": HALF, "policy": AWARE} | each.overrides) for each in ASSUMPTIONS]
    borne = plan.search([*alone, *halves])
    calm = plan.play([Row(each.name, each.overrides | {"arrivals.rate": LOW_RATE}) for each in [*alone, *halves]])
    count = len(ASSUMPTIONS)
    return [
        {
            "row": row.name,
            "adapter-aware only": borne[number],
            "both": borne[count + number],
            "gain": ratio(borne[count + number], borne[number]),
            "calm": [mean(calm[number], "p50_ms"), mean(calm[count + number], "p50_ms")],
            "calm_ttft": [mean(calm[number], "ttft_p50_ms"), mean(calm[count + number], "ttft_p50_ms")],
        }
        for number, row in enumerate(ASSUMPTIONS)
    ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def told_corners(first: Sequence[dict[str, Any]]) -> Iterator[str]:
    names = [name for name in first[0] if name not in ("row", "capacity", "gain")]
    columns = [each["row"] for each in first]
    lines = [[label(name), *(cell(name, each[name]) for each in first)] for name in names]
    lines.append(["capacity", *(rate(each["capacity"]) for each in first)])
    lines.append(["gain", *(each["gain"] for each in first)])
    yield from table(["", *columns], lines)


def told_assumptions(second: Sequence[dict[str, Any]]) -> Iterator[str]:
    heads = [
        "assumption",
        "adapter-aware only",
        "both",
        "gain",
        f"TTFT p50 at {LOW_RATE}",
        f"latency p50 at {LOW_RATE}",
    ]
    yield from table(
        heads,
        [
            [
                each["row"],
                rate(each["adapter-aware only"]),
                rate(each["both"]),
                each["gain"],
                " → ".join(shown(value, "ms") for value in each["calm_ttft"]),
                " → ".join(shown(value, "ms") for value in each["calm"]),
            ]
            for each in second
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--until", type=float, default=60.0, help="simulated seconds, the warm-up of 30 included")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--no-capacity", action="store_true", help="search for no capacities")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    plan = Plan(arguments.until, arguments.seeds, arguments.workers, not arguments.no_capacity)
    first = corners(plan)
    if not arguments.json:
        print("\n".join(told_corners(first)), flush=True)
    second = assumptions(plan)
    if arguments.json:
        tables = "\n".join([*told_corners(first), *told_assumptions(second)])
        json.dump({"corners": first, "assumptions": second, "tables": tables}, sys.stdout, indent=1)
    else:
        print("\n".join(told_assumptions(second)))


if __name__ == "__main__":
    main()
