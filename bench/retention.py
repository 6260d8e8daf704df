"""Hits of the retention policies on streams that tell them apart, beside Belady's rule, which knows the future.

    python -m bench.retention [--seeds 20] [--json]

Prints the tables of docs/retention.md. Simulated, so machine and load do not matter: the same seeds give the same
figures. `blips`, `ghosts` and the rest are in `lorapick.testing.retention`.
"""

import argparse
import json
import statistics
from typing import NamedTuple

from lorapick.core.retention.policies import RETENTIONS
from lorapick.model.retention import RetentionFacts
from lorapick.testing.retention import PLAIN, STREAMS, fewest_loads, play, zipf

POLICIES = tuple(RETENTIONS)
BEST = "best possible"


class Figure(NamedTuple):
    mean: float
    low: float
    high: float


def figure(values: list[float]) -> Figure:
    return Figure(statistics.fmean(values), min(values), max(values))


def hits_and_loads(name: str, seeds: range) -> dict[str, dict[str, Figure]]:
    """Share of hits, and loads as a multiple of the fewest, by policy."""
    hits: dict[str, list[float]] = {policy: [] for policy in (*POLICIES, BEST)}
    loads: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    for seed in seeds:
        stream = STREAMS[name](seed)
        fewest = fewest_loads(stream)
        hits[BEST].append(1 - fewest / len(stream))
        for policy in POLICIES:
            played = play(policy, stream)
            hits[policy].append(played.hits)
            loads[policy].append(played.loads / fewest)
    return {
        "hits": {policy: figure(values) for policy, values in hits.items()},
        "loads": {policy: figure(values) for policy, values in loads.items()},
    }


def seconds(seeds: range) -> dict[str, Figure]:
    """Seconds of loading where every fourth adapter of `zipf` takes seven times as long, to `lru`."""
    slow = RetentionFacts(from_cpu=7 * PLAIN.from_cpu)
    facts = {f"tenant-{number:02}": slow for number in range(0, 40, 4)}
    found: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    for seed in seeds:
        stream = zipf(seed)
        took = {policy: play(policy, stream, facts=facts).seconds for policy in POLICIES}
        for policy in POLICIES:
            found[policy].append(took[policy] / took["lru"])
    return {policy: figure(values) for policy, values in found.items()}


def row(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def ranged(value: Figure) -> str:
    digits = 1 if value.high >= 10 else 2
    return f"{value.mean:.{digits}f} ({value.low:.{digits}f} to {value.high:.{digits}f})"


def table(head: str, rows: dict[str, list[str]], columns: tuple[str, ...]) -> str:
    lines = [row(head, list(columns)), row("---", ["---"] * len(columns)).replace(" ", "")]
    return "\n".join([*lines, *(row(f"`{name}`", cells) for name, cells in rows.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seeds = range(1, options.seeds + 1)
    found = {name: hits_and_loads(name, seeds) for name in STREAMS}
    took = seconds(seeds)
    if options.json:
        print(json.dumps({"streams": found, "seconds": took}, indent=2))
        return
    shares = {name: [f"{each.mean:.1%}" for each in by["hits"].values()] for name, by in found.items()}
    print(table("hits", shares, (*POLICIES, BEST)))
    print()
    multiples = {name: [ranged(each) for each in by["loads"].values()] for name, by in found.items()}
    print(table("loads / fewest", multiples, POLICIES))
    print()
    print(table("seconds of loading / `lru`", {"zipf": [ranged(each) for each in took.values()]}, POLICIES))


if __name__ == "__main__":
    main()
