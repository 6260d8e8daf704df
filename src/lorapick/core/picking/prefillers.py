"""Find who could prefill a request elsewhere than where it is decoded.

In: a query being prepared, the columns, what the prompt is. Out: its `Legs`; None when nobody could. Not here: what
becomes of them (see `core.splitting`).

Two ways to the same legs, as in `pick`: a loop for few pods, columns for many. Of equal legs the one on the pod with
more free slots is better, then the one of the lower row.
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import TIER_BITS, PodColumns
from lorapick.core.picking.filters import LOADING, eligible, passing
from lorapick.core.picking.legs import BestByPlace, Leg, LegRows, Legs
from lorapick.core.picking.links import transfers
from lorapick.core.picking.pairing import load_cost_rows, load_costs
from lorapick.core.picking.pick import LOOP_ROWS
from lorapick.core.picking.places import EVERYWHERE, NOWHERE
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.units import Seconds, Tokens

NOTHING_QUEUED: Mapping[int, Tokens] = {}
"""No pod has prompts of others to prefill."""


class Asked(NamedTuple):
    """What is to be prefilled, and how things are on the pods that could do it."""

    settings: DisaggregationSettings
    tokens: Tokens
    per_token: Seconds
    queued: Mapping[int, Tokens] = NOTHING_QUEUED
    """Of others, being prefilled on each row."""
    paused: Sequence[int] = ()
    """Rows that nobody is sent to now."""
    may_load: bool = True
    """Whether a pod that would have to load the adapter counts."""


def find(query: Query, columns: PodColumns, *, now: Seconds, asked: Asked) -> Legs | None:
    """Pods that could prefill, the best of each place; None: none could now."""
    if columns.rows <= LOOP_ROWS:
        return find_by_loop(query, columns, now=now, asked=asked)
    return find_by_columns(query, columns, now=now, asked=asked)


def as_leg(query: Query) -> Query:
    """The same request, looking for a pod that prefills."""
    found = Query(query.request_id, query.adapter)
    for name in Query.__slots__:
        setattr(found, name, getattr(query, name))
    found.prefill = True
    found.session_row = -1
    return found


# -- one by one


def find_by_loop(query: Query, columns: PodColumns, *, now: Seconds, asked: Asked) -> Legs | None:
    """Row after row; best for some dozens of pods."""
    query.prefill = True  # for the filters alone: a copy costs more than they do
    try:
        rows, codes = passing(query, columns, now=now), query.codes
    finally:
        query.prefill = False
    if asked.paused:
        rows = [row for row in rows if row not in asked.paused]
    if not asked.may_load and codes is not None:
        rows = [row for row in rows if codes[row] & TIER_BITS >= LOADING]
    if not rows:
        return None
    return _best_of_each_place(columns, [leg_of(query, columns, row=row, asked=asked) for row in rows], asked=asked)


def leg_of(query: Query, view: FleetView, *, row: int, asked: Asked) -> Leg:
    """One pod that could prefill: what is queued there, what the prompt has not cached there, and a load."""
    pod = view.pods[row]
    assert pod is not None
    work = asked.queued.get(row, 0) + query.uncached(row, asked.tokens)
    wait, price = load_costs(query, view, row=row)
    return Leg(row, pod, asked.per_token * work + wait, price)


def _best_of_each_place(columns: PodColumns, legs: list[Leg], *, asked: Asked) -> Legs:
    label, free = asked.settings.node_label, columns.free_slots
    by_zone: dict[str, Leg] = {}
    by_node: dict[str, Leg] = {}
    best, least = legs[0], (inf, 0.0)
    ranks: dict[int, tuple[float, float]] = {}
    for leg in legs:
        row, pod = leg.row, leg.pod
        rank = ranks[row] = (leg.seconds + leg.price, -free[row])
        if rank < least:
            best, least = leg, rank
        zone, node = pod.zone, pod.labels.get(label)
        if zone is not None and (zone not in by_zone or rank < ranks[by_zone[zone].row]):
            by_zone[zone] = leg
        if node is not None and (node not in by_node or rank < ranks[by_node[node].row]):
            by_node[node] = leg
    return Legs(asked.settings, asked.tokens, asked.per_token, best, by_zone, by_node)


# -- all at once


def find_by_columns(query: Query, columns: PodColumns, *, now: Seconds, asked: Asked) -> Legs | None:
    """All rows at once; best for hundreds and thousands of pods."""
    query.prefill = True
    try:
        may = eligible(query, columns, now=now)
    finally:
        query.prefill = False
    for row in asked.paused:
        may[row] = False
    if not asked.may_load and query.codes is not None:
        may &= (np.frombuffer(query.codes, dtype=np.uint8)[: columns.rows] & TIER_BITS) >= LOADING
    rows = may.nonzero()[0]
    if not len(rows):
        return None
    found = _rows_of(query, columns, rows=rows, asked=asked)
    return Legs(
        asked.settings,
        asked.tokens,
        asked.per_token,
        found.leg(int(found.best[EVERYWHERE])),
        BestByPlace(found, found.places.zone_codes),
        BestByPlace(found, found.places.node_codes),
        found,
    )


def _rows_of(query: Query, columns: PodColumns, *, rows: NDArray[np.intp], asked: Asked) -> LegRows:
    count, tokens = columns.rows, asked.tokens
    uncached = np.full(count, tokens * 1.0)
    for row in query.kv:
        uncached[row] = query.uncached(row, tokens)
    work = uncached
    if asked.queued:
        work = uncached.copy()
        queued = np.fromiter(asked.queued, np.intp, len(asked.queued))
        work[queued] += np.fromiter(asked.queued.values(), np.float64, len(queued))
    wait, price = load_cost_rows(query, columns)
    seconds = asked.per_token * work + wait
    total = np.empty(count + 1)
    np.add(seconds, price, out=total[:count])
    total[count] = inf
    places = columns.places(asked.settings.node_label)
    # Worst first: of several values for one element the last one stays.
    totals = total[rows]
    ranked = rows[np.lexsort((-columns.vectors().free_slots[rows], totals))[::-1]]
    farthest = total[ranked[-1]] + max(transfers(tokens, settings=asked.settings))
    rivals = int(np.count_nonzero(totals < farthest)) > 1
    best = np.full(places.count, -1)
    best[places.of_row[:, ranked]] = ranked
    best[NOWHERE] = -1
    return LegRows(places, uncached, wait, price, seconds, total, best, rivals)
