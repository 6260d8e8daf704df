"""The slow, obvious twin of `pick`: every pod's part in a decision, in words.

In: the query and view of one decision (live, or a frozen copy), the same time and draw, the same policy.
Out: the winner and a `PodVerdict` per pod. Used by explanations, by rejections (which reason to give the client)
and as the oracle in tests. Not here: speed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lorapick.core.columns import PINNED, REASONS, TIER_BITS
from lorapick.core.picking.filters import veto
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.picks import PodVerdict
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Source, Tier
from lorapick.model.units import PodName, Ratio, Seconds


class Judged(NamedTuple):
    """One pod, judged."""

    row: int
    reason: Reason | None
    """None: no filter vetoes it."""
    score: float | None


def judge(query: Query, view: FleetView, *, now: Seconds, policy: Policy) -> list[Judged]:
    """Every pod's veto or score, in row order."""
    judged = []
    for row, pod in enumerate(view.pods):
        if pod is None:
            continue
        reason = REASONS[veto(query, view, row, now)]
        judged.append(Judged(row, reason, policy.score(query, view, row) if reason is None else None))
    return judged


def oracle(query: Query, view: FleetView, *, now: Seconds, draw: Ratio, policy: Policy) -> int | None:
    """The row that must win, found the obvious way; None when every pod is vetoed."""
    judged = judge(query, view, now=now, policy=policy)
    scores = {pod.row: pod.score for pod in judged if pod.score is not None}
    if not scores:
        return None
    best = max(scores.values())
    tied = [row for row, score in scores.items() if score == best]
    winner = tied[int(draw * len(tied))]
    session = query.session_row
    if session in scores and _same_hold(query, session, winner):
        return session
    return winner


def _same_hold(query: Query, one: int, other: int) -> bool:
    if query.codes is None:
        return True

    def hold(row: int) -> tuple[bool, str]:
        assert query.codes is not None
        tier = Tier(query.codes[row] & TIER_BITS)
        return bool(query.codes[row] & PINNED), "gpu" if tier.on_gpu else tier.word

    return hold(one) == hold(other)


def verdicts(
    query: Query,
    view: FleetView,
    *,
    now: Seconds,
    policy: Policy,
    winner: PodName | None,
    sources: dict[PodName, Source] | None = None,
) -> tuple[PodVerdict, ...]:
    """Every pod's part: the winner first, then by score, then by name."""
    judged = judge(query, view, now=now, policy=policy)
    best = max((pod.score for pod in judged if pod.score is not None), default=None)
    rows = [_verdict(query, view, pod, policy=policy, winner=winner, best=best) for pod in judged]
    if sources:
        rows = [_with_source(row, sources.get(row.pod)) for row in rows]
    return tuple(sorted(rows, key=lambda row: (not row.won, row.score is None, -(row.score or 0.0), row.pod)))


def _with_source(row: PodVerdict, source: Source | None) -> PodVerdict:
    fields = {name: getattr(row, name) for name in row.__struct_fields__}
    return PodVerdict(**{**fields, "source": source})


def _verdict(
    query: Query, view: FleetView, pod: Judged, *, policy: Policy, winner: PodName | None, best: float | None
) -> PodVerdict:
    named = view.pods[pod.row]
    assert named is not None
    won = named.name == winner
    reason = pod.reason
    if reason is None and not won:
        reason = Reason.LOST_TIE if pod.score == best else Reason.OUTSCORED
    code = query.codes[pod.row] if query.codes is not None else None
    return PodVerdict(
        pod=named.name,
        won=won,
        reason=None if won else reason,
        score=pod.score,
        terms=policy.terms(query, view, pod.row) if pod.score is not None else None,
        tier=Tier(code & TIER_BITS) if code is not None else None,
        source=None,
        queue_depth=view.queue[pod.row],
        max_queue=int(view.max_queue[pod.row]),
        gpu_source=view.gpu_source[pod.row],
        pinned=bool(code is not None and code & PINNED),
    )


_MILDEST: Sequence[Reason] = (
    Reason.QUEUE_FULL,
    Reason.SLOTS_FULL,
    Reason.LOAD_BUDGET,
    Reason.PRESSURE_SOFT,
    Reason.PRESSURE_HARD,
    Reason.PRESSURE_CRITICAL,
)


def why_nobody(judged: Sequence[Judged]) -> Reason:
    """Reason to give the client when every pod is vetoed: the one nearest to being served.

    A full pod will have room again; a pod that is away or does not fit is `no_pod`.
    """
    reasons = [pod.reason for pod in judged]
    return next((reason for reason in _MILDEST if reason in reasons), Reason.NO_POD)
