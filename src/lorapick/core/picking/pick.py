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
    """Return the row with the best score among those no filter vetoes."""
    assert 0.0 <= draw < 1.0, draw
    if columns.rows <= LOOP_ROWS:
        return pick_by_loop(query, columns, now=now, draw=draw, policy=policy, fallbacks=fallbacks)
    return pick_by_columns(query, columns, now=now, draw=draw, policy=policy, fallbacks=fallbacks)


def pick_by_loop(
    query: Query, columns: PodColumns, *, now: Seconds, draw: Ratio, policy: Policy, fallbacks: int
) -> Choice:
    """Row after row; best for some dozens of pods."""
    rows = passing(query, columns, now)
    if not rows:
        return NOBODY
    scores = policy.score_rows(query, columns, rows)
    best = max(scores)
    tied = [row for row, score in zip(rows, scores, strict=True) if score == best]
    winner = tied[int(draw * len(tied))]
    if query.session_row >= 0:
        winner = _sticky(query, winner, rows)
    ranked = sorted(zip([-score for score in scores], rows, strict=True))
    rest = tuple([row for _, row in ranked[: fallbacks + 1] if row != winner][:fallbacks])
    return Choice(winner, scores[rows.index(winner)], rest)


def pick_by_columns(
    query: Query, columns: PodColumns, *, now: Seconds, draw: Ratio, policy: Policy, fallbacks: int
) -> Choice:
    """All rows at once; best for hundreds and thousands of pods."""
    may = eligible(query, columns, now)
    scores = policy.scores(query, columns)
    scores[~may] = -np.inf
    best = scores.max()
    if best == -np.inf:
        return NOBODY
    ties = np.flatnonzero(scores == best)
    winner = int(ties[int(draw * len(ties))])
    session = query.session_row
    if session >= 0 and may[session]:
        winner = _sticky(query, winner, [session])
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


def _sticky(query: Query, winner: int, may: list[int]) -> int:
    """Among equal holders the session's last pod: same residency code as the winner, and allowed to serve."""
    session = query.session_row
    if session not in may or session == winner:
        return winner
    codes = query.codes
    # Serving and idle are one class here: both hold the adapter; only a pin or another tier tells them apart.
    if codes is None or _holder_class(codes[session]) == _holder_class(codes[winner]):
        return session
    return winner


def _holder_class(code: int) -> int:
    return (code & PINNED) | min(code & TIER_BITS, Tier.GPU_IDLE)
