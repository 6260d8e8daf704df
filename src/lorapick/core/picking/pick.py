"""Choose a pod for one request.

In: a prepared request, a read-only view of the fleet, the time, one draw in [0, 1), a policy.
Out: a `Choice`: the winning row, its score, the next best rows. Losers' reasons are rebuilt on demand
(`core.picking.verdicts`). Not here: I/O, clocks, logging, holding, or changes to the fleet (see `core.fleet`).

Two ways to the same answer: a loop for few pods, columns for many. Both score with the same float64
operations in the same order, break ties by `draw` over the tied rows in row order, and rank fallbacks by
score and then row; a property test holds them equal to a slow oracle.
"""

import math
from typing import NamedTuple

import numpy as np

from lorapick.core.columns import PINNED, TIER_BITS, PodColumns
from lorapick.core.picking.filters import eligible, passing
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.query import Query
from lorapick.model.tiers import Tier
from lorapick.model.units import Ratio, Seconds

LOOP_ROWS = 48
"""Up to this many rows the loop is faster than the columns (bench/pick.py)."""


class Choice(NamedTuple):
    """The best row, or none."""

    row: int
    """-1: every pod was vetoed."""
    score: float
    """NaN when there is no row."""
    fallbacks: tuple[int, ...]
    """Next best rows, best first."""


NOBODY = Choice(-1, math.nan, ())


def pick(query: Query, columns: PodColumns, *, now: Seconds, draw: Ratio, policy: Policy, fallbacks: int = 2) -> Choice:
    """Return the row with the best score among those no filter vetoes.

    Raises:
        ValueError: the policy scored some pod NaN.
    """
    assert 0.0 <= draw < 1.0, draw
    if columns.rows <= LOOP_ROWS:
        return pick_by_loop(query, columns, now=now, draw=draw, policy=policy, fallbacks=fallbacks)
    return pick_by_columns(query, columns, now=now, draw=draw, policy=policy, fallbacks=fallbacks)


def pick_by_loop(
    query: Query, columns: PodColumns, *, now: Seconds, draw: Ratio, policy: Policy, fallbacks: int
) -> Choice:
    """Row after row; best for some dozens of pods."""
    rows = passing(query, columns, now=now)
    if rows and policy.narrows:
        rows = policy.narrow(query, columns, rows=rows)
    if not rows:
        return NOBODY
    scores = policy.score_rows(query, columns, rows=rows)
    if math.isnan(sum(scores)):
        raise _not_a_number(policy)
    # Best first; a sort with `reverse` keeps the order of equals, so equals stay in row order.
    ranked = sorted(range(len(rows)), key=scores.__getitem__, reverse=True)
    place = ranked[int(draw * scores.count(scores[ranked[0]]))]
    session = query.session_row
    if session >= 0 and policy.keeps_sessions and session in rows and _equal_holders(query, session, other=rows[place]):
        place = rows.index(session)
    if place == ranked[0]:
        rest = ranked[1 : fallbacks + 1]
    else:
        rest = [other for other in ranked[: fallbacks + 1] if other != place][:fallbacks]
    return Choice(rows[place], scores[place], tuple([rows[other] for other in rest]))


def pick_by_columns(
    query: Query, columns: PodColumns, *, now: Seconds, draw: Ratio, policy: Policy, fallbacks: int
) -> Choice:
    """All rows at once; best for hundreds and thousands of pods."""
    may = eligible(query, columns, now=now)
    if policy.narrows and may.any():
        kept = policy.narrow(query, columns, rows=np.flatnonzero(may).tolist())
        may = np.zeros_like(may)
        may[kept] = True
    if not may.any():
        return NOBODY
    scores = policy.scores(query, columns, may=may)
    scores[~may] = -np.inf
    best = scores.max()
    if math.isnan(best):
        raise _not_a_number(policy)
    ties = np.flatnonzero(scores == best)
    winner = int(ties[int(draw * len(ties))])
    session = query.session_row
    if session >= 0 and policy.keeps_sessions and may[session] and _equal_holders(query, session, other=winner):
        winner = session
    score = float(scores[winner])
    rest: list[int] = []
    scores[winner] = -np.inf
    for _ in range(fallbacks):
        # argmax names the first of equal maxima, so the order is by score and then row.
        row = int(scores.argmax())
        if scores[row] == -np.inf:
            break
        rest.append(row)
        scores[row] = -np.inf
    return Choice(winner, score, tuple(rest))


def _not_a_number(policy: Policy) -> ValueError:
    return ValueError(f"policy {policy.name!r} scored some pod NaN; a score is a number, higher is better")


def _equal_holders(query: Query, one: int, *, other: int) -> bool:
    """Whether two rows hold the adapter alike, so that a session may prefer its last pod over the best score.

    Serving and idle are one class: both hold it. Only another tier or a pin tells holders apart.
    """
    codes = query.codes
    return codes is None or _holder_class(codes[one]) == _holder_class(codes[other])


def _holder_class(code: int) -> int:
    return (code & PINNED) | min(code & TIER_BITS, Tier.GPU_IDLE)
