"""Placement as a minimum-cost flow: who should be where, with the fewest seconds lost.

In: adapters, pods, candidate pairs and their costs. Out: which pairs are chosen. Not here: candidates, costs of pairs,
prices of going without (modules of these names), passes (`solving`).

    adapter ──(adapter, zone)── (pod, very busy) ── (pod, busy) ── pod ── sink
       └──────────────────── goes without ────────────────────────────────┘

Each adapter sends as many units as it wants replicas; a pair carries one at most, a pod as many as it has slots. Costs
that grow with each further unit are parallel arcs, the cheapest first, and so exact:

- `zone`: of r copies in z zones, those beyond r/z (rounded up) in one zone cost `ZONE`, twice that, and so on, so that
  no zone takes more with it than it must;
- `spread`: adapters with twice and with six times the usual rate per copy pass further nodes of the pod, and each
  further one on the same pod costs more than the last. What is wanted is pods with equal rates, which is no flow (rates
  are not units); this keeps counts even at each of three levels of rate. It settles where copies come, and is too small
  to move one that is there.

With these the flow is exact over its candidates.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.placement.candidates import Pairs
from lorapick.core.placement.importance import missing_prices
from lorapick.core.placement.network import Network, Whole
from lorapick.model.placement import PlacedAdapter, PodRoom

ZONE = 2_000
LEVELS = ((0.0, 80), (2.0, 60), (6.0, 150))
"""From which multiple of the mean rate per copy on, and what one more on a pod costs: on the lowest level for a pod
filled from none to all, above it for each."""
SPREAD_AT_MOST = 250
"""On each level: all three together cost less than one copy that moves."""
_STEPS = 8
"""Parallel arcs of a pod and level at most; pods with more slots have wider ones."""


class Chosen(NamedTuple):
    """A flow, read."""

    pairs: NDArray[np.bool_]
    """Beside the candidates."""
    zone: int
    """What too many copies in one zone cost, milliseconds."""
    spread: int


def choose(adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom], *, pairs: Pairs, costs: Whole) -> Chosen:
    """The cheapest choice.

    Raises:
        NotSolved: the solver failed.
    """
    network = Network()
    plan = _Nodes(adapters, pods, pairs=pairs)
    zones = _zone_arcs(network, plan)
    chosen = network.add(plan.tails, plan.entries, costs=costs, capacities=np.ones(len(costs), dtype=np.int64))
    spread = _pod_arcs(network, plan, pods=pods)
    _missing_arcs(network, plan, adapters=adapters, dearest=int(costs.max(initial=0)) + ZONE * 4)
    flow = network.flow(plan.sends)
    each = flow * network.columns()[2]
    return Chosen(flow[chosen] > 0, zone=int(each[zones].sum()), spread=int(each[spread].sum()))


class _Nodes:
    """Numbers: adapters, then pods by level, then zones of adapters, then the sink."""

    def __init__(self, adapters: Sequence[PlacedAdapter], pods: Sequence[PodRoom], *, pairs: Pairs) -> None:
        wants = np.array([max(0, each.replicas) for each in adapters], dtype=np.int64)
        self.first_pod = len(adapters)
        self.pods = len(pods)
        self.level_of = _levels(adapters, wants)
        self.entries = self.first_pod + self.level_of[pairs.adapter] * self.pods + pairs.pod
        first_zone = self.first_pod + len(LEVELS) * self.pods
        self.zone_keys, self.tails = _zone_nodes(pods, pairs, wants=wants, first=first_zone)
        self.first_zone = first_zone
        self.wants = wants
        self.sink = first_zone + len(self.zone_keys)

    @property
    def sends(self) -> Whole:
        """What each node sends."""
        sends: Whole = np.zeros(self.sink + 1, dtype=np.int64)
        sends[: self.first_pod] = self.wants
        sends[self.sink] = -self.wants.sum()
        return sends


def _levels(adapters: Sequence[PlacedAdapter], wants: Whole) -> Whole:
    """Level of each adapter by its rate per copy."""
    rates = np.array([max(0.0, each.rate) for each in adapters])
    mean = rates.sum() / max(1, wants.sum())
    if mean <= 0.0:
        return np.zeros(len(adapters), dtype=np.int64)
    above = np.array([rates / np.maximum(1, wants) >= least * mean for least, _ in LEVELS[1:]])
    levels: Whole = above.sum(axis=0, dtype=np.int64)
    return levels


def _zone_nodes(pods: Sequence[PodRoom], pairs: Pairs, *, wants: Whole, first: int) -> tuple[Whole, Whole]:
    """Adapter of each (adapter, zone) node; and where each pair begins, at such a node or at its adapter."""
    names = {name: number for number, name in enumerate(dict.fromkeys(pod.zone for pod in pods if pod.zone))}
    zone = np.array([names[pod.zone] if pod.zone else -1 for pod in pods], dtype=np.int64)[pairs.pod]
    if len(names) < 2:
        return np.zeros(0, dtype=np.int64), pairs.adapter
    split = (zone >= 0) & (wants[pairs.adapter] > 1)
    keys, places = np.unique(pairs.adapter[split] * len(names) + zone[split], return_inverse=True)
    tails = pairs.adapter.copy()
    tails[split] = first + places
    return keys // len(names), tails


def _zone_arcs(network: Network, plan: _Nodes) -> slice:
    """One arc for each unit that may go to a zone."""
    owners = plan.zone_keys
    reach = np.bincount(plan.tails, minlength=plan.sink)[plan.first_zone : plan.sink]
    counts = np.minimum(reach, plan.wants[owners])
    nodes = np.arange(len(owners), dtype=np.int64)
    each = np.repeat(nodes, counts)
    copy = np.arange(len(each)) - np.repeat(np.cumsum(counts) - counts, counts)
    zones = np.maximum(1, np.bincount(owners, minlength=len(plan.wants)))
    share = -(-plan.wants // zones)[owners[each]]
    beyond = np.maximum(0, copy + 1 - share)
    return network.add(
        owners[each], plan.first_zone + each, costs=beyond * ZONE, capacities=np.ones(len(each), dtype=np.int64)
    )


def _pod_arcs(network: Network, plan: _Nodes, *, pods: Sequence[PodRoom]) -> slice:
    """From each level to the one below, from the lowest to the sink."""
    rows = [
        (node, below, cost, width)
        for row, pod in enumerate(pods)
        for level in _used_levels(plan)
        for node, below in [_along(plan, row=row, level=level)]
        for cost, width in _rising(max(0, pod.slots), level)
    ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return network.add(columns[:, 0], columns[:, 1], costs=columns[:, 2], capacities=columns[:, 3])


def _used_levels(plan: _Nodes) -> range:
    return range(int(plan.level_of.max(initial=0)) + 1)


def _along(plan: _Nodes, *, row: int, level: int) -> tuple[int, int]:
    """A pod's node on a level, and where it leads."""
    node = plan.first_pod + level * plan.pods + row
    return node, (node - plan.pods if level else plan.sink)


def _rising(slots: int, level: int) -> list[tuple[int, int]]:
    """Cost and width of each parallel arc."""
    steps = min(slots, _STEPS)
    edges = [slots * step // steps for step in range(steps + 1)] if steps else [0]
    weight = LEVELS[level][1]
    return [
        (min(SPREAD_AT_MOST, weight * begin // (1 if level else max(1, slots))), end - begin)
        for begin, end in pairwise(edges)
    ]


def _missing_arcs(network: Network, plan: _Nodes, *, adapters: Sequence[PlacedAdapter], dearest: int) -> None:
    prices = missing_prices(adapters, dearest=dearest)
    tails = np.repeat(np.arange(len(adapters), dtype=np.int64), plan.wants)
    costs = np.array([price for each in prices for price in each], dtype=np.int64)
    network.add(tails, np.full(len(tails), plan.sink), costs=costs, capacities=np.ones(len(tails), dtype=np.int64))
