"""Decisions that explain themselves [R2.6].

In: what one decision read, copied when it was taken. Out: an `Explanation`: the winner, each score by term,
and for every other pod the filter or score that cost it the request. Terms and reasons of the losers are
rebuilt on demand by the slow twin of `pick`; the copy costs about two microseconds for a few pods.
Not here: wording and layout (see `cli.explain`).
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from lorapick.core.columns import PodColumns
from lorapick.core.frozen import FrozenView
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.prefill_verdicts import Side, side_verdicts, uncached_there, why_unsplit
from lorapick.core.picking.query import Query
from lorapick.core.picking.verdicts import NOTHING_HEARD, Heard, chosen_by, verdicts
from lorapick.model.picks import Came, Explanation, Pick, Waited
from lorapick.model.reasons import Reason, status_of
from lorapick.model.units import Ratio, RequestId, Seconds

KEPT = 2000
"""Decisions that can be explained; the oldest is forgotten first."""
ALWAYS_ROWS = 64
"""Up to this many rows every decision is kept; above, one in SAMPLE and every rejection."""
SAMPLE = 16
TOO_MANY_REQUESTS = 429
"""Status from which on a refusal is for want of capacity, and no mistake of the client's."""
MOST_CAME = 8
"""Things that came of one decision that are kept: the last ones."""
MOST_WAITS = 8
"""Waits of one request that are kept: the first, and the last ones."""


class Decision(NamedTuple):
    """One decision as taken."""

    t: Seconds
    model: str
    pick: Pick
    outcome: str
    """`dispatched`, `held`, `rejected`; or `observed`: all of it is what would have been."""
    query: Query
    """Reads the copied residency codes of `view`."""
    view: FrozenView
    policy: Policy
    told: str | None = None
    """What a refused client was told."""
    waited: Seconds | None = None
    """For how long it had waited at the picker by then; None: it had not."""
    until: Seconds | None = None
    """Of a decision to wait, when it would be decided for good."""
    because: Reason | None = None
    """Of a decision to wait for a place, what kept it from a pod that may soon have room."""
    heard: Sequence[Heard] = NOTHING_HEARD
    """What the table knew of the adapter."""
    course: tuple[Waited, ...] = ()
    """What it waited for before."""
    left_out: int = 0
    """Waits in the middle of the course that are not kept."""
    side: Side | None = None
    """How things were on the pods that prefill; None: this fleet does not split requests."""
    came: tuple[Came, ...] = ()
    """What came of it since."""


class Journal:
    """The latest decisions by request id; of a request that was held, the last one and what it waited for before."""

    __slots__ = ("_kept", "on")

    def __init__(self) -> None:
        self.on = True
        """Whether anything is kept."""
        self._kept: OrderedDict[RequestId, Decision] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    @staticmethod
    def wants(columns: PodColumns, draw: Ratio, *, rejected: bool) -> bool:
        """Whether this decision is kept."""
        # The draw's lower digits: the upper ones break ties, and the sample must not prefer one side of them.
        return rejected or columns.rows <= ALWAYS_ROWS or draw * 4096.0 % 1.0 < 1.0 / SAMPLE

    def record(self, decision: Decision) -> None:
        """Keep a decision."""
        request_id = decision.pick.request_id
        kept = self._kept
        before = kept.get(request_id)
        if before is not None:
            kept.move_to_end(request_id)
            # One that did not wait is over, and its id is used again.
            decision = _after(before, decision) if before.outcome == "held" else decision
        kept[request_id] = decision
        if len(kept) > KEPT:
            kept.popitem(last=False)

    def came(self, request_id: RequestId, news: Came, *, since: Seconds) -> None:
        """Keep what came of a dispatch that was decided at `since` or later: earlier ones are of another request."""
        decision = self._kept.get(request_id)
        if decision is not None and decision.t >= since and decision.outcome in ("dispatched", "observed"):
            self._kept[request_id] = decision._replace(came=(*decision.came, news)[-MOST_CAME:])

    def latest(self, limit: int) -> list[Decision]:
        """Newest first."""
        kept = [*self._kept.values()]
        return kept[: -limit - 1 : -1] if limit else []

    def refused(self, since: Seconds) -> dict[str, int]:
        """Requests refused since then by reason, of the decisions that are kept; not those for a client's mistake."""
        found: dict[str, int] = {}
        for decision in reversed(self._kept.values()):
            if decision.t < since:
                break
            reason = decision.pick.reason
            if decision.outcome == "rejected" and reason is not None and status_of(reason) >= TOO_MANY_REQUESTS:
                found[reason] = found.get(reason, 0) + 1
        return found

    def explain(self, request_id: RequestId) -> Explanation | None:
        """Rebuild every pod's part in a kept decision; None when it is not kept."""
        decision = self._kept.get(request_id)
        return _explanation(decision) if decision is not None else None


def _waits(decision: Decision) -> tuple[Waited, ...]:
    """The course of a decision, itself included when it is one to wait."""
    pick = decision.pick
    if decision.outcome != "held" or pick.reason is None:
        return decision.course
    wait = Waited(
        t=decision.t, reason=pick.reason, follows=pick.follows, because=decision.because, until=decision.until
    )
    return (*decision.course, wait)


def _after(before: Decision, decision: Decision) -> Decision:
    """The decision, with what the request waited for before it."""
    first, *rest = _waits(before)
    lost = max(0, len(rest) - MOST_WAITS + 1)
    return decision._replace(course=(first, *rest[lost:]), left_out=before.left_out + lost)


def _explanation(decision: Decision) -> Explanation:
    pick, policy, now = decision.pick, decision.policy, decision.t
    query, view = decision.query, decision.view
    uncached, least = uncached_there(decision.side, query, view=view, pick=pick)
    return Explanation(
        request_id=pick.request_id,
        t=decision.t,
        model=decision.model,
        adapter=pick.adapter,
        policy=pick.policy,
        weights=policy.weights(),
        outcome=decision.outcome,
        reason=pick.reason,
        verdicts=verdicts(query, view, now=now, policy=policy, pick=pick, heard=decision.heard),
        fallbacks=pick.fallbacks,
        degraded=pick.degraded,
        follows=pick.follows,
        chosen_by=chosen_by(query, view, now=now, policy=policy, pick=pick),
        told=decision.told,
        waited=decision.waited,
        course=_waits(decision),
        course_left_out=decision.left_out,
        prefill=pick.prefill,
        prefill_tier=pick.prefill_tier,
        pair=pick.pair,
        prefill_side=side_verdicts(decision.side, query, view=view, now=now, policy=policy, pick=pick),
        uncached_tokens=uncached,
        least_uncached_tokens=least,
        unsplit=why_unsplit(decision.side, query, view=view, pick=pick),
        came=decision.came,
    )
