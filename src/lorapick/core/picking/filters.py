"""Which pods may serve a request, one pod at a time and all at once.

In: a `Query`, the columns, the time. Out: a veto code per pod (0: may serve). A filter only narrows.
The order of the filters is part of the contract: the first that vetoes names the reason.
Not here: preferences among the pods that remain (see the policies).
"""

from math import inf

import numpy as np
from numpy.typing import NDArray

from lorapick.core.columns import CODE, PINNED, TIER_BITS, PodColumns
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds

CRITICAL = CODE[Reason.PRESSURE_CRITICAL]
STALE = CODE[Reason.STALE]
WRONG_BASE = CODE[Reason.WRONG_BASE]
WRONG_ROLE = CODE[Reason.WRONG_ROLE]
RANK_TOO_LARGE = CODE[Reason.RANK_TOO_LARGE]
UNREGISTERED = CODE[Reason.ADAPTER_UNREGISTERED]
QUEUE_FULL = CODE[Reason.QUEUE_FULL]
SLOTS_FULL = CODE[Reason.SLOTS_FULL]
RESERVED = CODE[Reason.RESERVED]
LOADING, IDLE = int(Tier.LOADING), int(Tier.GPU_IDLE)
_TIERS = bytes(code & TIER_BITS for code in range(256))
"""Tier by residency code."""


def veto(query: Query, view: FleetView, *, row: int, now: Seconds) -> int:
    """Code of the first filter that refuses the pod of `row`; 0 when it may serve."""
    if view.gate[row] and not (query.ignore_full and view.gate[row] == CRITICAL):
        return view.gate[row]
    if view.fresh_until[row] < now and not query.ignore_stale:
        return STALE
    if query.base is not None and view.base[row] != query.base:
        return WRONG_BASE
    if (view.decode_only if query.prefill else view.prefill_only)[row]:
        return WRONG_ROLE
    if query.mask is not None and query.mask[row]:
        return query.mask[row]
    codes = query.codes
    pinned = codes is not None and codes[row] & PINNED
    if view.kept[row] == inf and not pinned:
        return RESERVED
    if codes is not None:
        if query.rank > view.max_rank[row]:
            return RANK_TOO_LARGE
        tier = codes[row] & TIER_BITS
        if not tier:
            return UNREGISTERED
        if tier < LOADING and view.pressure[row] and not query.ignore_full:
            return view.pressure[row]
        if (tier < LOADING or tier == IDLE) and view.slots_left[row] <= (0.0 if pinned else view.kept[row]):
            return SLOTS_FULL
    if view.queue[row] >= view.max_queue[row] and not query.ignore_full:
        return QUEUE_FULL
    return 0


def passing(query: Query, view: PodColumns, *, now: Seconds) -> list[int]:
    """Rows that `veto` passes, in row order; not to be changed."""
    # Most decisions: nobody is refused, and the columns know that.
    if (
        view.none_shut(now)
        and not query.prefill
        and query.mask is None
        and (query.base is None or (query.base == 0 and len(view.base_models) == 1))
    ):
        codes = query.codes
        if (codes is None and view.none_reserved) or (
            codes is not None
            and (view.none_refuses(query.rank) and codes.tobytes().translate(_TIERS).find(0, 0, view.rows) < 0)
        ):
            return view.every
    return _tested(query, view, now=now)


def _tested(query: Query, view: PodColumns, *, now: Seconds) -> list[int]:
    """The tests of `veto` in one loop without a call per row."""
    oldest = float("-inf") if query.ignore_stale else now
    # Without limits a pod is open unless its gate says something else than that its memory is all but full.
    any_queue, open_gate = query.ignore_full, CRITICAL if query.ignore_full else 0
    # Columns are longer than `rows`; the range ends the loop.
    other_role = view.decode_only if query.prefill else view.prefill_only
    common = (range(view.rows), view.gate, other_role, view.queue, view.max_queue, view.fresh_until)
    codes = query.codes
    if codes is None:
        rows = [
            row
            for row, gate, other, queue, limit, fresh, kept in zip(*common, view.kept, strict=False)
            if (not gate or gate == open_gate)
            and not other
            and (queue < limit or any_queue)
            and fresh >= oldest
            and kept < inf
        ]
    else:
        # A rank that is not known is 0 and fits everywhere.
        rank, bits, loading, idle, pin = query.rank, TIER_BITS, LOADING, IDLE, PINNED
        rows = [
            row
            for row, gate, other, queue, limit, fresh, code, pressure, most, left, kept in zip(
                *common, codes, view.pressure, view.max_rank, view.slots_left, view.kept, strict=False
            )
            if (not gate or gate == open_gate)
            and not other
            and (queue < limit or any_queue)
            and fresh >= oldest
            and (tier := code & bits)
            and (tier >= loading or not pressure or any_queue)
            and (kept < inf or code & pin)
            and (left > (0.0 if code & pin else kept) or tier == loading or tier > idle)
            and rank <= most
        ]
    if query.base is not None:
        rows = [row for row in rows if view.base[row] == query.base]
    if query.mask is not None:
        rows = [row for row in rows if not query.mask[row]]
    return rows


def eligible(query: Query, columns: PodColumns, *, now: Seconds) -> NDArray[np.bool_]:
    """Rows that `veto` passes, all at once. Which filter refused the others is rebuilt only when someone asks."""
    view = columns.vectors()
    other_role = view.decode_only if query.prefill else view.prefill_only
    may: NDArray[np.bool_] = other_role == 0
    if query.ignore_full:
        may &= (view.gate == 0) | (view.gate == CRITICAL)
    else:
        may &= (view.gate == 0) & (view.queue < view.max_queue)
    if not query.ignore_stale:
        may &= view.fresh_until >= now
    if query.base is not None:
        may &= view.base == query.base
    if query.mask is not None:
        may &= np.frombuffer(query.mask, dtype=np.uint8) == 0
    if query.codes is None:
        may &= view.kept < inf
    else:
        codes = np.frombuffer(query.codes, dtype=np.uint8)[: columns.rows]
        tiers, pinned = codes & TIER_BITS, (codes & PINNED) > 0
        may &= (tiers != 0) & ((tiers >= LOADING) | (view.pressure == 0) | query.ignore_full)
        may &= (view.slots_left > np.where(pinned, 0.0, view.kept)) | (tiers == LOADING) | (tiers > IDLE)
        may &= pinned | (view.kept < inf)
        if query.rank:
            may &= view.max_rank >= query.rank
    return may
