"""The slow, obvious twin of `pick`: every pod's part in a decision, in words.

In: the query and view of one decision (live, or a frozen copy), the same time and draw, the same policy.
Out: the winner and a `PodVerdict` per pod. Used by explanations, by rejections (which reason to give the client)
and as the oracle in tests. Not here: speed.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from lorapick.core.columns import CODE, PINNED, REASONS, SOURCE_SHIFT, SOURCES, TIER_BITS
from lorapick.core.picking.epp.policy import ProfilePolicy
from lorapick.core.picking.filters import veto
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.query import FleetView, Query
from lorapick.model.picks import Pick, PodVerdict
from lorapick.model.pods import Pod
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Evidence, Tier
from lorapick.model.units import Ratio, Seconds

SILENT = CODE[Reason.CIRCUIT_OPEN]
"""What stands in the column `gate` of a pod that does not answer; adapters that failed to load are in masks."""
Heard = tuple[int, Seconds, Seconds | None, Evidence | None]
"""What the table knew of an adapter on one pod, beside tier and source: row, since when, when something last spoke of
it, what. A plain tuple: one is made for each pod at each decision."""
NOTHING_HEARD: Sequence[Heard] = ()
"""Nobody spoke of the adapter anywhere, or it is a base model."""


class Judged(NamedTuple):
    """One pod, judged."""

    row: int
    reason: Reason | None
    """None: no filter vetoes it."""
    score: float | None


def judge(query: Query, view: FleetView, *, now: Seconds, policy: Policy) -> list[Judged]:
    """Every pod's veto or score, in row order."""
    reasons = {
        row: REASONS[veto(query, view, row=row, now=now)] for row, pod in enumerate(view.pods) if pod is not None
    }
    rows = [row for row, reason in reasons.items() if reason is None]
    if rows and policy.narrows:
        kept = policy.narrow(query, view, rows=rows)
        reasons |= {row: Reason.FILTERED for row in rows if row not in kept}
        rows = kept
    scores = dict(zip(rows, policy.score_rows(query, view, rows=rows), strict=True)) if rows else {}
    return [Judged(row, reason, scores.get(row)) for row, reason in reasons.items()]


def oracle(query: Query, view: FleetView, *, now: Seconds, draw: Ratio, policy: Policy) -> int | None:
    """The row that must win, found the obvious way; None when every pod is vetoed."""
    pods = [row for row, pod in enumerate(view.pods) if pod is not None]
    rows = [row for row in pods if not veto(query, view, row=row, now=now)]
    if rows and policy.narrows:
        rows = policy.narrow(query, view, rows=rows)
    if not rows:
        return None
    scores = {row: policy.score(query, view, row=row, rows=rows) for row in rows}
    best = max(scores.values())
    tied = [row for row, score in scores.items() if score == best]
    winner = tied[int(draw * len(tied))]
    session = query.session_row
    if session in scores and policy.keeps_sessions and _same_hold(query, session, other=winner):
        return session
    return winner


def _same_hold(query: Query, one: int, *, other: int) -> bool:
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
    pick: Pick,
    heard: Sequence[Heard] = NOTHING_HEARD,
) -> tuple[PodVerdict, ...]:
    """Every pod's part: the winner first, then by score, then by name.

    When nobody won, the decision's own reason is also what a pod lost by that could have served.
    """
    judged = judge(query, view, now=now, policy=policy)
    won = next((pod.score for pod in judged if _named(view, pod.row).name == pick.pod), None)
    known = {each[0]: each for each in heard}
    parts: Mapping[int, dict[str, float]] = {}
    scored = [pod.row for pod in judged if pod.score is not None]
    if isinstance(policy, ProfilePolicy) and scored:
        parts = policy.parts(query, view, rows=scored)
    rows = []
    for pod in judged:
        if _named(view, pod.row).name == pick.pod:
            lost_by = None
        elif pod.reason is not None or pick.pod is None:
            lost_by = pod.reason or pick.reason
        elif pod.score is not None and won is not None and pod.score >= won:
            # As good a score or a better one: the load that the request follows decided, else a tie was broken.
            lost_by = Reason.HELD_FOR_LOAD if pick.follows is not None else Reason.LOST_TIE
        else:
            lost_by = Reason.OUTSCORED
        made = _verdict(query, view, pod=pod, policy=policy, lost_by=lost_by)
        if pod.row in known:
            _, since, spoken, evidence = known[pod.row]
            made = replace(made, since=since, last_evidence=spoken, evidence=evidence)
        if pod.row in parts:
            made = replace(made, scorers=parts[pod.row])
        rows.append(made)
    return tuple(sorted(rows, key=lambda row: (not row.won, row.score is None, -(row.score or 0.0), row.pod)))


def chosen_by(query: Query, view: FleetView, *, now: Seconds, policy: Policy, pick: Pick) -> str | None:
    """What made the winner win, as a word of `Explanation.chosen_by`."""
    if pick.pod is None:
        return None
    if pick.follows is not None:
        return "load"
    scores = {pod.row: pod.score for pod in judge(query, view, now=now, policy=policy) if pod.score is not None}
    winner = next((row for row in scores if _named(view, row).name == pick.pod), None)
    tied = winner is None or list(scores.values()).count(scores[winner]) > 1
    if winner == query.session_row and (tied or scores[winner] < max(scores.values())):
        return "session"
    return "draw" if tied else "score"


def _named(view: FleetView, row: int) -> Pod:
    pod = view.pods[row]
    assert pod is not None
    return pod


def _verdict(query: Query, view: FleetView, *, pod: Judged, policy: Policy, lost_by: Reason | None) -> PodVerdict:
    code = query.codes[pod.row] if query.codes is not None else None
    return PodVerdict(
        pod=_named(view, pod.row).name,
        won=lost_by is None,
        reason=lost_by,
        score=pod.score,
        terms=policy.terms(query, view, row=pod.row) if pod.score is not None else None,
        tier=Tier(code & TIER_BITS) if code is not None else None,
        source=SOURCES[code >> SOURCE_SHIFT] if code is not None else None,
        queue_depth=view.queue[pod.row],
        max_queue=int(view.max_queue[pod.row]),
        gpu_source=view.gpu_source[pod.row],
        pinned=bool(code is not None and code & PINNED),
        silent=view.gate[pod.row] == SILENT,
    )


_MILDEST: Sequence[Reason] = (
    Reason.QUEUE_FULL,
    Reason.SLOTS_FULL,
    Reason.LOAD_BUDGET,
    Reason.PROBATION,
    Reason.PRESSURE_SOFT,
    Reason.PRESSURE_HARD,
    Reason.PRESSURE_CRITICAL,
)
FULL = tuple(CODE[reason] for reason in _MILDEST)
"""Veto codes of pods that will have room again."""


def why_nobody(judged: Sequence[Judged]) -> Reason:
    """Reason to give the client when every pod is vetoed: the one nearest to being served.

    A full pod will have room again; a pod that is away or does not fit is `no_pod`.
    """
    reasons = [pod.reason for pod in judged]
    return next((reason for reason in _MILDEST if reason in reasons), Reason.NO_POD)
