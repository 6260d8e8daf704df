"""Moves between pods when some are busy and others are not, as far as they pay.

In: pods with their load, adapters with their holders, rates by adapter and pod. Out: loads to make, some of which
replace a copy on a busier pod. Not here: who carries them out, in-flight requests (they end where they are).

dLoRA moves requests and adapters between replicas of a model when their loads part; here only adapters move, and new
requests follow them. What is compared, in request-seconds:

- saved over `horizon`: requests on a pod slow each other down. With n there, each step takes 1 + n / `doubles` times
  what it takes alone, so of n requests n² / (n + `doubles`) do nothing but wait for the others. Taking some from a busy
  pod to an idle one lowers the sum over both, since this grows faster than n;
- spent: the load, for the request that waits and for all on the target (a load stops them), and `harm`: KV blocks that
  are lost, the chance of being wrong.

A proposal is made only if the first is `worth` times the second, the pods differ by more than chance, the target has a
free slot, and afterwards it has fewer requests than the source had before: so the busiest pod's wait never rises.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from lorapick.core.placement.plans import Action, Move, fits
from lorapick.model.placement import PlacedAdapter, PlacementProblem, PodRoom
from lorapick.model.units import AdapterName, PodName, Seconds

Pair = tuple[AdapterName, PodName]


class RebalanceRules(msgspec.Struct, frozen=True, kw_only=True):
    """When a move pays."""

    horizon: Seconds = 60.0
    """For how long the difference is thought to last."""
    doubles: float = 100.0
    """Requests in a batch that double the time of a step: 104 in published runs of Llama-3.1-8B on one GPU."""
    harm: float = 2.0
    """Request-seconds that a copy which leaves costs besides the load."""
    worth: float = 2.0
    """How many times its cost a move must save."""
    least_gap: float = 4.0
    """Requests by which two pods must differ,"""
    noise: float = 2.0
    """and so many standard deviations of the difference, were both counts Poisson's."""
    sources: int = 8
    """Pods that something may leave: the busiest, above the mean."""
    targets: int = 8
    """Pods looked at for each adapter, the least busy."""


DEFAULT_RULES = RebalanceRules()


class _Option(NamedTuple):
    """One move or extra copy, and what it changes. Larger is better."""

    gain: float
    """Request-seconds, costs taken off."""
    adapter: str
    source: int
    target: int
    requests: float
    """That go from source to target."""
    moves: bool
    """Whether the copy on the source goes too."""
    spent: float


class _Fleet:
    """Pods in order of their names, and how the moves so far would leave them."""

    def __init__(self, problem: PlacementProblem, rates: Mapping[Pair, float], *, rules: RebalanceRules) -> None:
        self.rules = rules
        self.pods = sorted(problem.pods, key=lambda pod: pod.pod)
        self.row = {pod.pod: row for row, pod in enumerate(self.pods)}
        self.adapters = {each.adapter: each for each in problem.adapters}
        self.holders = {
            each.adapter: [self.row[pod] for pod in sorted(each.now_on) if pod in self.row] for each in problem.adapters
        }
        self.load = [max(0.0, pod.load) for pod in self.pods]
        held = Counter(row for rows in self.holders.values() for row in rows)
        self.free = [pod.slots - held[row] for row, pod in enumerate(self.pods)]
        self.requests = self._requests(rates)

    def _requests(self, rates: Mapping[Pair, float]) -> dict[tuple[AdapterName, int], float]:
        """Requests of each adapter on each pod: its share of the pod's rate, of the pod's load."""
        flows: dict[tuple[AdapterName, int], float] = {}
        for name, rows in self.holders.items():
            for row in rows:
                even = self.adapters[name].rate / len(rows)
                flows[name, row] = max(0.0, rates.get((name, self.pods[row].pod), even))
        totals = [0.0] * len(self.pods)
        for (_, row), rate in flows.items():
            totals[row] += rate
        return {pair: self.load[pair[1]] * rate / totals[pair[1]] for pair, rate in flows.items() if rate > 0.0}

    def waits(self, requests: float) -> float:
        """Of so many requests on one pod, how many do nothing but wait for the others."""
        return requests * requests / (requests + self.rules.doubles)

    def apply(self, option: _Option) -> None:
        """Reckon with it from now on."""
        self.load[option.source] -= option.requests
        self.load[option.target] += option.requests
        self.free[option.target] -= 1
        rows = self.holders[option.adapter]
        rows.append(option.target)
        self.requests[option.adapter, option.target] = option.requests
        self.requests[option.adapter, option.source] -= option.requests
        if option.moves:
            self.free[option.source] += 1
            rows.remove(option.source)


def rebalance(
    problem: PlacementProblem,
    *,
    rates: Mapping[Pair, float] = {},
    budget: int,
    fixed: Collection[Pair] = (),
    rules: RebalanceRules = DEFAULT_RULES,
) -> list[Move]:
    """Loads that pay, the best first, `budget` at most; a load with a `source` replaces the copy there.

    `rates` (requests per second by adapter and pod) say whose the load of a pod is; where they are not known, an
    adapter's rate is spread evenly over its holders. Copies in `fixed` stay where they are. An adapter moves once.
    """
    fleet = _Fleet(problem, rates, rules=rules)
    found: list[Move] = []
    moved: set[AdapterName] = set()
    while len(found) < budget:
        options = (option for option in _options(fleet, fixed=fixed) if option.adapter not in moved)
        best = max(options, default=None)
        if best is None:
            break
        found.append(_told(fleet, best))
        moved.add(best.adapter)
        fleet.apply(best)
    return found


def _options(fleet: _Fleet, *, fixed: Collection[Pair]) -> Iterator[_Option]:
    """All that pay."""
    idle = sorted(
        (row for row in range(len(fleet.pods)) if fleet.free[row] > 0), key=lambda row: (fleet.load[row], row)
    )
    busy = _busiest(fleet)
    for (name, source), requests in fleet.requests.items():
        if requests <= 0.0 or source not in busy:
            continue
        stays = (name, fleet.pods[source].pod) in fixed
        for target in _targets(fleet, fleet.adapters[name], idle=idle):
            options = [_option(fleet, name, ways=(source, target), moves=False)]
            if not stays:
                options.append(_option(fleet, name, ways=(source, target), moves=True))
            yield from (option for option in options if _pays(fleet, option))


def _busiest(fleet: _Fleet) -> set[int]:
    mean = sum(fleet.load) / max(1, len(fleet.load))
    above = {row for (_, row), requests in fleet.requests.items() if requests > 0.0 and fleet.load[row] > mean}
    return set(sorted(above, key=lambda row: (-fleet.load[row], row))[: fleet.rules.sources])


def _targets(fleet: _Fleet, adapter: PlacedAdapter, *, idle: Sequence[int]) -> Iterator[int]:
    left = fleet.rules.targets
    for row in idle:
        if left == 0:
            return
        if row not in fleet.holders[adapter.adapter] and fits(adapter, fleet.pods[row]):
            left -= 1
            yield row


def _option(fleet: _Fleet, name: AdapterName, *, ways: tuple[int, int], moves: bool) -> _Option:
    """Move all that a pod has of an adapter, or let another pod have half of it."""
    source, target = ways
    requests = fleet.requests[name, source] * (1.0 if moves else 0.5)
    here, there = fleet.load[source], fleet.load[target]
    saved = fleet.waits(here) + fleet.waits(there) - fleet.waits(here - requests) - fleet.waits(there + requests)
    spent = _load_seconds(fleet.adapters[name], fleet.pods[target]) * (1.0 + there) + fleet.rules.harm * moves
    return _Option(
        gain=saved * fleet.rules.horizon - spent,
        adapter=name,
        source=source,
        target=target,
        requests=requests,
        moves=moves,
        spent=spent,
    )


def _load_seconds(adapter: PlacedAdapter, pod: PodRoom) -> Seconds:
    warm = pod.pod in adapter.warm_on
    return min(adapter.warm_seconds, adapter.load_seconds) if warm else adapter.load_seconds


def _pays(fleet: _Fleet, option: _Option) -> bool:
    here, there = fleet.load[option.source], fleet.load[option.target]
    return (
        option.gain + option.spent >= fleet.rules.worth * option.spent
        and option.gain > 0.0
        and here - there >= max(fleet.rules.least_gap, fleet.rules.noise * math.sqrt(here + there))
        and there + option.requests < here
    )


def _told(fleet: _Fleet, option: _Option) -> Move:
    here, there = fleet.load[option.source], fleet.load[option.target]
    source, target = fleet.pods[option.source].pod, fleet.pods[option.target].pod
    why = (
        f"{source} has {here:.0f} requests and {target} {there:.0f}: {option.requests:.0f} of them there save"
        f" {option.gain + option.spent:.0f} s of waiting in {fleet.rules.horizon:.0f} s, for {option.spent:.1f} s"
    )
    return Move(
        adapter=option.adapter, pod=target, action=Action.LOAD, why=why, source=source if option.moves else None
    )
