"""Decisions that explain themselves [R2.6].

In: what one decision read, copied when it was taken. Out: an `Explanation`: the winner, each score by term,
and for every other pod the filter or score that cost it the request. Terms and reasons of the losers are
rebuilt on demand by the slow twin of `pick`; the copy costs about two microseconds for a few pods.
Not here: wording and layout (see `cli.explain`).
"""

from collections import OrderedDict
from typing import NamedTuple

from lorapick.core.columns import FrozenView, PodColumns
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.query import Query
from lorapick.core.picking.verdicts import chosen_by, verdicts
from lorapick.model.picks import Explanation, Pick
from lorapick.model.units import Ratio, RequestId, Seconds

KEPT = 2000
"""Decisions that can be explained; the oldest is forgotten first."""
ALWAYS_ROWS = 64
"""Up to this many rows every decision is kept; above, one in SAMPLE and every rejection."""
SAMPLE = 16


class Decision(NamedTuple):
    """One decision as taken."""

    t: Seconds
    model: str
    pick: Pick
    outcome: str
    """`dispatched`, `held` or `rejected`."""
    query: Query
    """Reads the copied residency codes of `view`."""
    view: FrozenView
    policy: Policy
    told: str | None = None
    """What a refused client was told."""
    waited: Seconds | None = None
    """For how long it had waited at the picker by then; None: it had not."""


class Journal:
    """The latest decisions by request id; a request that was held and then dispatched shows its last decision."""

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
        if request_id in kept:
            kept.move_to_end(request_id)
        kept[request_id] = decision
        if len(kept) > KEPT:
            kept.popitem(last=False)

    def latest(self, limit: int) -> list[Decision]:
        """Newest first."""
        kept = [*self._kept.values()]
        return kept[: -limit - 1 : -1] if limit else []

    def explain(self, request_id: RequestId) -> Explanation | None:
        """Rebuild every pod's part in a kept decision; None when it is not kept."""
        decision = self._kept.get(request_id)
        return _explanation(decision) if decision is not None else None


def _explanation(decision: Decision) -> Explanation:
    pick, policy = decision.pick, decision.policy
    return Explanation(
        request_id=pick.request_id,
        t=decision.t,
        model=decision.model,
        adapter=pick.adapter,
        policy=pick.policy,
        weights=policy.weights(),
        outcome=decision.outcome,
        reason=pick.reason,
        verdicts=verdicts(decision.query, decision.view, now=decision.t, policy=policy, pick=pick),
        fallbacks=pick.fallbacks,
        degraded=pick.degraded,
        follows=pick.follows,
        chosen_by=chosen_by(decision.query, decision.view, now=decision.t, policy=policy, pick=pick),
        told=decision.told,
        waited=decision.waited,
    )
