"""The pod where a request costs the least time, when another one may prefill it [R4.1].

    alone = wait for the adapter + prefill + others' wait for the prefill + answer
    pair  = prefill elsewhere + transfer of the KV that is not there + wait for the adapter + answer
    answer = base + each·n + each·n + price of a load

with n requests on the pod that decodes: the request adds as much to each of them as they do to it. A load on the pod
that decodes begins with the prefill, so the request itself waits only for what outlasts that. It counts in full all the
same: were it free, each busy moment of a holder would make another copy, which takes a slot from somebody.
`disaggregation.decide` says which of the two counts. Scores are negative seconds, as of the policy `cost`.

Pods of one place (node, zone) are alike for a transfer, so the best of each place and the best of all are enough to
know the best pair of every pod that decodes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import TIER_BITS, PodColumns
from lorapick.core.picking.legs import Leg, LegRows, Legs
from lorapick.core.picking.links import transfer_seconds, transfers
from lorapick.core.picking.places import EVERYWHERE
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.disaggregation import Decide, SplitCosts
from lorapick.model.picks import Terms
from lorapick.model.pods import Pod
from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds

Doubles = NDArray[np.float64]
Moves = tuple[float, float, float] | tuple[Doubles, Doubles, Doubles]
_DISK, _LOADING = int(Tier.DISK), int(Tier.LOADING)


class Split(NamedTuple):
    """What one pod that decodes would cost, and who prefills for it."""

    leg: Leg | None
    """None: it does everything by itself."""
    costs: SplitCosts
    """Of the pair, or of the best one that was not taken."""
    seconds: Seconds
    """What counts."""


def split(query: Query, legs: Legs, *, view: FleetView, row: int) -> Split:
    """Who prefills when `row` decodes, and what the request costs then."""
    settings, costs, pod = legs.settings, query.costs, view.pods[row]
    assert pod is not None
    uncached = query.uncached(row, legs.tokens)
    others = view.load[row]
    wait, price = load_costs(query, view, row=row)
    answer = costs.base + 2.0 * costs.each * others + price
    alone = wait + legs.per_token * uncached * (1.0 + others) + answer
    leg, transfer = _nearest(legs, pod, uncached=uncached)
    arrives = leg.seconds + transfer
    found = SplitCosts(
        prefill=leg.seconds,
        transfer=transfer,
        decode=max(0.0, wait - arrives) + answer,
        alone=alone,
        besides=min(wait, arrives) + leg.price,
    )
    cheaper = found.counted < alone
    if leg.row != row and _elsewhere(settings.decide, uncached >= settings.uncached_tokens, cheaper=cheaper):
        return Split(leg, found, found.counted)
    return Split(None, found, alone)


def _elsewhere(decide: Decide, many: bool, *, cheaper: bool) -> bool:
    match decide:
        case Decide.TOKENS:
            return many
        case Decide.COST:
            return cheaper
        case Decide.ALWAYS:
            return True
        case Decide.NEVER:
            return False


def _nearest(legs: Legs, pod: Pod, *, uncached: float) -> tuple[Leg, Seconds]:
    """The pod that prefills for `pod`, of the best in each place, and what the transfer of so many tokens takes."""
    zone, node = pod.zone, pod.labels.get(legs.settings.node_label)
    near = (
        legs.by_zone.get(zone) if zone is not None else None,
        legs.by_node.get(node) if node is not None else None,
    )
    found = [legs.best, *(leg for leg in near if leg is not None and leg.row != legs.best.row)]
    timed = [(leg, transfer_seconds(leg.pod, pod, tokens=uncached, settings=legs.settings)) for leg in found]
    return min(timed, key=lambda each: each[0].seconds + each[0].price + each[1])


def load_costs(query: Query, view: FleetView, *, row: int) -> tuple[Seconds, Seconds]:
    """For how long a pod waits for the adapter, and what its load does to others."""
    codes, costs = query.codes, query.costs
    if codes is None:
        return 0.0, 0.0
    tier = codes[row] & TIER_BITS
    if tier < _LOADING:
        return (costs.from_disk if tier == _DISK else costs.from_cpu), view.load_price[row]
    return (costs.remaining.get(row, 0.0) if tier == _LOADING else 0.0), 0.0


# -- some rows in a loop, all rows at once: the same operations in the same order


def split_some(query: Query, legs: Legs, *, view: FleetView, rows: list[int]) -> list[float]:
    """Negative seconds of `split` of some rows, with everything looked up once."""
    settings, costs, loads, pods, tokens = legs.settings, query.costs, view.load, view.pods, legs.tokens
    label, decide, few, best = settings.node_label, settings.decide, settings.uncached_tokens, legs.best
    by_zone, by_node, cached = legs.by_zone, legs.by_node, query.kv
    uncached = tokens * 1.0
    same_node, same_zone, elsewhere = transfers(uncached, settings=settings)
    best_zone, best_node, total = best.pod.zone, best.pod.labels.get(label), best.seconds + best.price
    found = []
    for row in rows:
        pod, others = pods[row], loads[row]
        assert pod is not None
        if cached:
            uncached = query.uncached(row, tokens)
            same_node, same_zone, elsewhere = transfers(uncached, settings=settings)
        wait, price = load_costs(query, view, row=row)
        answer = costs.base + 2.0 * costs.each * others + price
        alone = wait + legs.per_token * uncached * (1.0 + others) + answer
        zone, node = pod.zone, pod.labels.get(label)
        leg = best
        if row == best.row:
            transfer = 0.0
        elif node is not None and node == best_node:
            transfer = same_node
        else:
            transfer = same_zone if zone is not None and zone == best_zone else elsewhere
        least = total + transfer
        near = by_zone.get(zone) if zone is not None else None
        if near is not None and near is not best:
            near_by = node is not None and near.pod.labels.get(label) == node
            moved = 0.0 if near.row == row else same_node if near_by else same_zone
            if (counts := near.seconds + near.price + moved) < least:
                leg, transfer, least = near, moved, counts
        near = by_node.get(node) if node is not None else None
        if near is not None and near is not leg:
            moved = 0.0 if near.row == row else same_node
            if near.seconds + near.price + moved < least:
                leg, transfer = near, moved
        arrives = leg.seconds + transfer
        decode = max(0.0, wait - arrives) + answer
        counted = arrives + decode + (min(wait, arrives) + leg.price)
        if leg.row != row and _elsewhere(decide, uncached >= few, cheaper=counted < alone):
            found.append(-counted)
        else:
            found.append(-alone)
    return found


def load_cost_rows(query: Query, columns: PodColumns) -> tuple[Doubles, Doubles]:
    """`load_costs` of all rows."""
    if query.codes is None:
        return np.zeros(columns.rows), np.zeros(columns.rows)
    costs = query.costs
    tiers = np.frombuffer(query.codes, dtype=np.uint8)[: columns.rows] & TIER_BITS
    by_tier = [costs.from_cpu] * _LOADING + [0.0] * (TIER_BITS + 1 - _LOADING)
    by_tier[_DISK] = costs.from_disk
    wait: Doubles = np.array(by_tier)[tiers]
    for row, left in costs.remaining.items():
        if tiers[row] == _LOADING:
            wait[row] = left
    return wait, np.where(tiers < _LOADING, columns.vectors().load_price, 0.0)


def split_rows(query: Query, columns: PodColumns, *, legs: Legs, rows: LegRows) -> Doubles:
    """Seconds of `split` of all rows."""
    settings, costs, others, wait = legs.settings, query.costs, columns.vectors().load, rows.wait
    answer = costs.base + 2.0 * costs.each * others + rows.price
    # Most prompts have nothing cached anywhere.
    moves: Moves = (
        transfers(rows.uncached, settings=settings) if query.kv else transfers(legs.tokens * 1.0, settings=settings)
    )
    leg, transfer = _nearest_rows(rows, moves)
    arrives = rows.seconds[leg] + transfer
    decode = np.maximum(0.0, wait - arrives) + answer
    counted: Doubles = arrives + decode + (np.minimum(wait, arrives) + rows.price[leg])
    elsewhere = leg != rows.places.each
    if settings.decide is Decide.TOKENS:
        elsewhere &= rows.uncached >= settings.uncached_tokens
    if settings.decide in (Decide.TOKENS, Decide.ALWAYS) and elsewhere.all():
        return counted
    alone: Doubles = wait + legs.per_token * rows.uncached * (1.0 + others) + answer
    if settings.decide is Decide.NEVER:
        return alone
    if settings.decide is Decide.COST:
        elsewhere &= counted < alone
    return np.where(elsewhere, counted, alone)


def _nearest_rows(rows: LegRows, moves: Moves) -> tuple[NDArray[np.intp], Doubles]:
    """`_nearest` of all rows: the row of the leg, and what the transfer takes, given `transfers` of each."""
    places, zone, node = rows.places, rows.places.zone, rows.places.node
    same_node, same_zone, elsewhere = moves
    if not rows.rivals:
        best = int(rows.best[EVERYWHERE])
        # What its own row would send itself is of no matter: that one is no pair.
        there = np.where(node == node[best], same_node, np.where(zone == zone[best], same_zone, elsewhere))
        return np.full(len(node), best), there
    near = rows.best[places.of_row]
    moved = np.where(node[near] == node, same_node, np.where(zone[near] == zone, same_zone, elsewhere))
    moved[near == places.each] = 0.0
    # The first of equals: the best of all, of the zone, of the node.
    nearest = (rows.total[near] + moved).argmin(axis=0)
    return near[nearest, places.each], moved[nearest, places.each]


class Pairs:
    """Least seconds, of pairs and of single pods."""

    name = "pairs"
    coalesces = True
    waits = True
    keeps_sessions = True
    reads: tuple[str, ...] = ("load", "load_price")
    counts_in_flight = False
    narrows = False

    def narrow(self, query: Query, view: FleetView, *, rows: list[int]) -> list[int]:
        """All of them."""
        del query, view
        return rows

    def score(self, query: Query, view: FleetView, *, row: int, rows: list[int]) -> float:
        """Negative seconds with one pod to decode."""
        del rows
        assert query.legs is not None, "pairs are for requests that somebody could prefill"
        return -split(query, query.legs, view=view, row=row).seconds

    def score_rows(self, query: Query, view: FleetView, *, rows: list[int]) -> list[float]:
        """The same for the candidates."""
        assert query.legs is not None, "pairs are for requests that somebody could prefill"
        return split_some(query, query.legs, view=view, rows=rows)

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
        if query.legs is not None and query.legs.rows is not None:
            return -split_rows(query, columns, legs=query.legs, rows=query.legs.rows)
        rows: list[int] = np.flatnonzero(may).tolist()
        found = np.full(columns.rows, -np.inf)
        found[rows] = self.score_rows(query, columns, rows=rows)
        return found

    def terms(self, query: Query, view: FleetView, *, row: int) -> Terms | None:
        """None: its parts are seconds, which `Terms` does not hold."""
        del query, view, row
        return None

    def weights(self) -> dict[str, float]:
        """None: nothing is weighed."""
        return {}


PAIRS = Pairs()
