"""Which alert comes when: the series of simulated runs through the shipped rules, and the picker's own alerts beside.

    python -m bench.observability [--only war-story,healthy-week] [--json]

Runs are looked at as a Prometheus would, each 15 s (`healthy-week`: each minute), and the real promtool (Debian package
prometheus) evaluates the rules over what was seen. Times are of day, to the minute. `war-story` is played with a
promise of 2 s for P95, since the article names none; it takes ten minutes, `healthy-week` five, `war-story-small` one.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from lorapick.model.units import Seconds
from lorapick.plan.scenario_files import load_scenario
from lorapick.sim.report import RunReport
from lorapick.sim.scenario import Scenario
from lorapick.testing.rules_replay import Replayed, replay

STEP: Seconds = 60.0
"""To which times are told."""


class Plan(NamedTuple):
    """How a scenario is played here."""

    every: Seconds = 15.0
    overrides: Mapping[str, str] = MappingProxyType({})


PLANS = {
    "war-story": Plan(overrides={"settings": "{slo: {latency_p95: 2s}}"}),
    "war-story-small": Plan(),
    "healthy-week": Plan(every=60.0),
}


def periods(report: RunReport) -> dict[str, dict[str, float]]:
    """What happened, by period."""
    return {
        name: {
            "p95_ms": 1e3 * (each.latency.p95 or 0.0),
            "hits": each.hits / max(1, each.hits + each.misses),
            "swaps_per_second_and_pod": each.swaps / each.pods / each.length,
            "residency_s": each.slot_seconds / max(1, each.loads),
            "useful_share": (each.gpu.prefill + each.gpu.decode) / (each.gpu.total - each.gpu.idle - each.gpu.down),
        }
        for name, each in {**report.periods, "whole": report.whole}.items()
    }


def clock(scenario: Scenario, t: Seconds) -> str:
    """Time of day, with the day where there are several."""
    day, rest = divmod(int(scenario.run.begin + t), 86_400)
    return (f"day {day + 1} " if scenario.run.length > 86_400 else "") + f"{rest // 3600:02}:{rest % 3600 // 60:02}"


def _print(scenario: Scenario, result: Replayed) -> None:
    print(f"{scenario.name}: {result.report.whole.arrivals} requests after the warm-up")
    for name, figures in periods(result.report).items():
        print(f"  {name:8}", "  ".join(f"{key} {value:.3g}" for key, value in figures.items()))
    for who, fired in (("rules", result.fired), ("picker", result.own)):
        print(f"  {who}:" if fired else f"  {who}: none")
        for each in fired:
            of = f" ({each.of})" if each.of else ""
            print(f"    {clock(scenario, each.first)}  {each.alert}{of}, {each.seconds / 60:.0f} min")


def _document(scenario: Scenario, result: Replayed) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "arrivals": result.report.whole.arrivals,
        "periods": periods(result.report),
        "rules": [each._asdict() for each in result.fired],
        "picker": [each._asdict() for each in result.own],
    }


def main() -> None:
    """Play all and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PLANS))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if shutil.which("promtool") is None:
        parser.error("promtool is missing; install the package prometheus")
    documents = []
    with tempfile.TemporaryDirectory() as directory:
        for name in args.only.split(","):
            plan = PLANS[name]
            scenario = load_scenario(name, overrides=plan.overrides)
            result = replay(scenario, every=plan.every, step=STEP, directory=Path(directory))
            documents.append(_document(scenario, result))
            if not args.json:
                _print(scenario, result)
    if args.json:
        json.dump(documents, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
