"""Plays the tournament and writes docs/tournament.md.

    python -m bench.tournament [--only zipf,hot] [--policies cost,weighted] [--seeds 5] [--workers 2] [--tune]

`--tune` plays with seeds that are for tuning, and writes no page. `--store FILE` keeps what was played, and goes on.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.tournament.cells import LOADS, Cell, cells
from bench.tournament.judge import Verdict, verdict
from bench.tournament.page import write
from bench.tournament.play import Figures, Task, play
from bench.tournament.rates import Borne, known
from bench.tournament.seeds import seeds
from bench.tournament.store import Store
from lorapick.core.picking.policies import POLICIES

Played = dict[Cell, dict[str, tuple[Figures, ...]]]


def tasks(cell: Cell, borne: Borne | None, *, policies: Sequence[str], of: Sequence[int]) -> list[Task]:
    """All runs of one cell."""
    rate = None if cell.load is None or borne is None else cell.load * borne.rate
    limit = None if borne is None else borne.limit
    return [Task(cell=cell, rate=rate, limit=limit, policy=policy, seed=seed) for policy in policies for seed in of]


def tournament(
    wanted: Sequence[Cell], *, policies: Sequence[str], of: Sequence[int], workers: int | None, store: Store
) -> Played:
    """Play, and say each cell as it ends."""
    rates = known()
    played: Played = {}
    for cell in wanted:
        borne = None if cell.load is None else rates[cell.traffic.name][cell.mode]
        all_tasks = tasks(cell, borne, policies=policies, of=of)
        fresh = [task for task in all_tasks if store.get(task) is None]
        store.add(fresh, play(fresh, workers=workers))
        figures = [found for task in all_tasks if (found := store.get(task)) is not None]
        by_policy = {policy: tuple(figures[n * len(of) : (n + 1) * len(of)]) for n, policy in enumerate(policies)}
        played[cell] = by_policy
        print(f"{cell.name:<28} {_said(verdict(by_policy, policy='cost', name='p95_ms'))}", flush=True)
    return played


def _said(found: Verdict | None) -> str:
    if found is None:
        return "no verdict"
    return f"{found.place:<6} {found.mean:8.0f} ms  {found.ratio:.3f} of {found.peer}"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="play every policy over every cell")
    parser.add_argument("--only", help="names of traffic, with commas between them")
    parser.add_argument("--policies", help="default: all")
    parser.add_argument("--loads", help=f"shares of what fleets bear; default: {LOADS}")
    parser.add_argument("--modes", default="inline,drain")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--store", type=Path, help="file of runs that were played, to go on with")
    parser.add_argument("--keep", default="", help="policies whose stored runs count though the code has changed since")
    parser.add_argument("--tune", action="store_true", help="seeds for tuning; no page is written")
    asked = parser.parse_args()
    loads = tuple(float(each) for each in asked.loads.split(",")) if asked.loads else LOADS
    names = set(asked.only.split(",")) if asked.only else None
    wanted = [
        cell
        for cell in cells(loads=loads)
        if (names is None or cell.traffic.name in names) and cell.mode in asked.modes.split(",")
    ]
    policies = asked.policies.split(",") if asked.policies else list(POLICIES)
    played = tournament(
        wanted,
        policies=policies,
        of=seeds(asked.seeds, tuning=asked.tune),
        workers=asked.workers,
        store=Store(asked.store, keeps=asked.keep.split(",")),
    )
    if not asked.tune:
        write(played, command=" ".join(sys.argv[1:]))


if __name__ == "__main__":
    main()
