"""What prefill on another pod takes, and what is being prefilled where.

In: legs that begin and end. Out: tokens under way by pod, seconds per token, whose end nobody has told. Not here: which
pod (see `core.picking.pairing`), what a leg does to a pod (see `core.splitting`).
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from lorapick.model.disaggregation import Decide
from lorapick.model.pods import Role
from lorapick.model.tiers import Tier
from lorapick.model.units import RequestId, Seconds, Tokens

STEP = 0.05
"""By how much of itself one leg moves the estimate of what a token takes."""
LATE = 4.0
"""Times what a leg was expected to take after which it counts as over when nobody says so: the answer of a request
that is not streamed comes at the end of everything."""
LEAST_LATE: Seconds = 1.0
FIRST_PER_TOKEN: Seconds = 1e-4
"""Until it is learnt: an 8B model on an H100 takes a third of it, a 70B model three times as much."""


class LegInFlight(NamedTuple):
    """A request's stay on the pod that prefills."""

    row: int
    tokens: Tokens
    """That are not cached there."""
    sent: Seconds
    ahead: Tokens
    """Tokens of legs that were there before."""
    tier: Tier | None
    """Of the adapter, as believed then; None: the base model."""


class LegTimes:
    """What prefill takes, and what is being prefilled where."""

    __slots__ = ("_due", "next_due", "per_token", "queued")

    def __init__(self) -> None:
        self.per_token: Seconds = FIRST_PER_TOKEN
        self.queued: dict[int, Tokens] = {}
        """Tokens of legs in flight, by row."""
        self._due: list[tuple[Seconds, RequestId]] = []
        self.next_due: Seconds = inf
        """When the next leg counts as over."""

    def begin(self, request_id: RequestId, leg: LegInFlight) -> None:
        """A leg begins."""
        if leg.tokens:
            self.queued[leg.row] = self.queued.get(leg.row, 0) + leg.tokens
        expected = (leg.tokens + leg.ahead) * self.per_token
        heappush(self._due, (leg.sent + max(LEAST_LATE, LATE * expected), request_id))
        self.next_due = self._due[0][0]

    def end(self, leg: LegInFlight) -> None:
        """It is over, however that is known."""
        left = self.queued.get(leg.row, 0) - leg.tokens
        if left > 0:
            self.queued[leg.row] = left
        else:
            self.queued.pop(leg.row, None)

    def learn(self, leg: LegInFlight, *, now: Seconds) -> None:
        """It went well, without a load: its length says what a token takes."""
        work = leg.tokens + leg.ahead
        if work > 0 and (leg.tier is None or leg.tier.on_gpu):
            self.per_token *= 1.0 + STEP if now - leg.sent > work * self.per_token else 1.0 - STEP

    def overdue(self, now: Seconds) -> list[RequestId]:
        """Requests whose legs should have been over by now; some of them are."""
        found = []
        while self._due and self._due[0][0] <= now:
            found.append(heappop(self._due)[1])
        self.next_due = self._due[0][0] if self._due else inf
        return found

    def gone(self, row: int) -> None:
        """A pod went."""
        self.queued.pop(row, None)


def splits(roles: Iterable[Role], *, decide: Decide) -> bool:
    """Whether a fleet of such pods splits requests at all."""
    there = dict.fromkeys(roles)
    return decide is not Decide.NEVER and (Role.PREFILL in there or (Role.DECODE in there and Role.BOTH in there))
