"""What prefill on another pod takes, and what is being prefilled where.

In: legs that begin and end. Out: tokens under way by pod, seconds per token, whose end nobody has told. Not here: which
pod (see `core.picking.pairing`), what a leg does to a pod (see `core.splitting`).
"""

from collections import deque
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
MOST_LATE: Seconds = 300.0
LEAST_PER_TOKEN, MOST_PER_TOKEN = 1e-7, 1e-1
"""Seconds, between which the estimate stays."""
UNSEEN: Seconds = 2.0
"""After the headers of an answer: when its request counts as running where nobody looks at bodies, whose first bytes
say so. Headers come as the engine takes a request in; what is left is the way of the KV and a seat in the batch."""
PATIENT = 3
"""Prefills in a row that may fail on one pod before it is left alone."""
PAUSE: Seconds = 1.0
"""For how long at first; it doubles with each more."""
LONGEST_PAUSE: Seconds = 60.0
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
    load: Seconds = 0.0
    """Expected until its adapter is there."""


class Failures(NamedTuple):
    """Prefills in a row that failed on one pod."""

    times: int = 0
    until: Seconds = 0.0
    """Nobody is sent there before."""
    tried: Seconds = 0.0
    """Nor before this, while one that was sent after the pause has not ended: it tells whether the pod works again."""

    @property
    def over(self) -> Seconds:
        """When somebody may be sent there."""
        return max(self.until, self.tried)


class LegTimes:
    """What prefill takes, and what is being prefilled where."""

    __slots__ = ("_came", "_due", "_failures", "bodies", "next_due", "per_token", "queued")

    def __init__(self) -> None:
        self.per_token: Seconds = FIRST_PER_TOKEN
        self.queued: dict[int, Tokens] = {}
        """Tokens of legs in flight, by row."""
        self._due: list[tuple[Seconds, RequestId, Seconds]] = []
        """When it counts as over, of whom, sent when; ends are not taken out."""
        self._came: deque[tuple[Seconds, RequestId]] = deque()
        """When it counts as running, and of whom; ends are not taken out."""
        self.bodies = False
        """Whether somebody says when the bodies of answers begin."""
        self._failures: dict[int, Failures] = {}
        """Prefills in a row that failed, by row."""
        self.next_due: Seconds = inf
        """When the next leg counts as over, or the next request as running."""

    def begin(self, request_id: RequestId, leg: LegInFlight) -> None:
        """A leg begins."""
        if leg.tokens:
            self.queued[leg.row] = self.queued.get(leg.row, 0) + leg.tokens
        expected = min((leg.tokens + leg.ahead) * self.per_token + leg.load, MOST_LATE)
        failures = self._failures.get(leg.row)
        if failures is not None and failures.times >= PATIENT:
            self._failures[leg.row] = failures._replace(tried=leg.sent + LONGEST_PAUSE)
        heappush(self._due, (leg.sent + max(LEAST_LATE, LATE * expected), request_id, leg.sent))
        self._look()

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
            moved = self.per_token * (1.0 + STEP if now - leg.sent > work * self.per_token else 1.0 - STEP)
            self.per_token = min(max(moved, LEAST_PER_TOKEN), MOST_PER_TOKEN)

    def overdue(self, now: Seconds) -> list[tuple[RequestId, Seconds]]:
        """Requests whose legs should have been over by now, with when they were sent; some of them are."""
        found = []
        while self._due and self._due[0][0] <= now:
            _, request_id, sent = heappop(self._due)
            found.append((request_id, sent))
        self._look()
        return found

    def came(self, request_id: RequestId, *, now: Seconds) -> None:
        """The pod that decodes has a request, and its engine may not run it yet."""
        if not self.bodies:
            self._came.append((now + UNSEEN, request_id))
            self._look()

    def running(self, now: Seconds) -> list[RequestId]:
        """Requests that count as running by now, since nobody says it; some have ended, or said so themselves."""
        found = []
        while self._came and self._came[0][0] <= now:
            found.append(self._came.popleft()[1])
        self._look()
        return found

    def _look(self) -> None:
        due = self._due[0][0] if self._due else inf
        self.next_due = min(due, self._came[0][0]) if self._came else due

    def gone(self, row: int) -> None:
        """A pod went, or its process is another one."""
        self.queued.pop(row, None)
        self._failures.pop(row, None)

    # -- pods that fail

    def worked(self, row: int) -> None:
        """A prefill went well there."""
        self._failures.pop(row, None)

    def failed(self, row: int, *, sent: Seconds, now: Seconds) -> None:
        """A prefill failed there. After some in a row nobody is sent for a while: the queue of who fails is short.

        What was `sent` before that pause ended says nothing new: many that fail at once are one failure of the pod.
        """
        before = self._failures.get(row, Failures())
        if before.times >= PATIENT and sent < before.until:
            return
        count = before.times + 1
        pause = 0.0 if count < PATIENT else min(PAUSE * 2.0 ** min(count - PATIENT, 16), LONGEST_PAUSE)
        self._failures[row] = Failures(count, now + pause)

    def paused(self, row: int, *, now: Seconds) -> bool:
        """Whether nobody is sent there now."""
        return row in self._failures and now < self._failures[row].over

    def failing(self, row: int) -> bool:
        """Whether so many prefills in a row failed there that it is left alone from time to time, until one works."""
        return row in self._failures and self._failures[row].times >= PATIENT

    def paused_rows(self, *, now: Seconds) -> list[int]:
        """Where nobody is sent now."""
        return [row for row, failures in self._failures.items() if now < failures.over]


def splits(roles: Iterable[Role], *, decide: Decide) -> bool:
    """Whether a fleet of such pods splits requests at all."""
    there = dict.fromkeys(roles)
    return decide is not Decide.NEVER and (Role.PREFILL in there or (Role.DECODE in there and Role.BOTH in there))
