"""The pod where a request costs the least time, when another one may prefill it [R4.1].

    alone = wait for the adapter + prefill + others' wait for the prefill + answer
    pair  = prefill elsewhere + transfer of KV + wait for the adapter + answer
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
from lorapick.core.picking.legs import Leg, Legs
from lorapick.core.picking.links import transfer_seconds
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.disaggregation import Decide, SplitCosts
from lorapick.model.picks import Terms
from lorapick.model.pods import Pod
from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds

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
    uncached = legs.tokens * (1.0 - query.kv.get(row, 0.0))
    others = view.load[row]
    wait, price = load_costs(query, view, row=row)
    answer = costs.base + 2.0 * costs.each * others + price
    alone = wait + legs.per_token * uncached * (1.0 + others) + answer
    leg, transfer = _nearest(legs, pod)
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


def _nearest(legs: Legs, pod: Pod) -> tuple[Leg, Seconds]:
    """The pod that prefills for `pod`, of the best in each place, and what the transfer takes."""
    found = [legs.best]
    if pod.zone is not None and pod.zone in legs.by_zone:
        found.append(legs.by_zone[pod.zone])
    node = pod.labels.get(legs.settings.node_label)
    if node is not None and node in legs.by_node:
        found.append(legs.by_node[node])
    timed = [(leg, transfer_seconds(leg.pod, pod, tokens=legs.tokens, settings=legs.settings)) for leg in found]
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


class Pairs:
    """Least seconds, of pairs and of single pods."""

    name = "pairs"
    coalesces = True
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
        return [self.score(query, view, row=row, rows=rows) for row in rows]

    def scores(self, query: Query, columns: PodColumns, *, may: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The same for all rows."""
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
