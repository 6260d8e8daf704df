"""How much service each fairness id has had lately, for `admission.fairness: least_attained` [R3.8].

In: requests that are sent to pods, and their ends with what they really took. Out: a claim by fairness id; less of it
goes first. A token counts for half after `HALF_LIFE`, whoever had it, so claims keep their order while nothing happens.
Bounded: of many ids those that have had least are forgotten. Not here: who waits, whose turn it is
(see `core.admission.queues`).
"""

from lorapick.model.events import RequestEnded
from lorapick.model.requests import Request
from lorapick.model.units import Seconds, Tokens

HALF_LIFE: Seconds = 60.0
"""Service counts for half as much after this: a tenant that was busy an hour ago is like any other."""
MOST = 10_000
"""Fairness ids remembered at once."""
_FARTHEST = 64.0
"""Half-lives after which all claims are written anew, before the weight of a token grows out of bounds."""
_MOST_TIMES = 1000.0
"""Half-lives whose weight a float can hold."""
_LEAST = 0.5
"""Tokens; a claim below this is forgotten then."""


class Attained:
    """Claims of all fairness ids. "" stands for requests without one."""

    __slots__ = ("_claims", "_from")

    def __init__(self) -> None:
        self._claims: dict[str, float] = {}
        """Tokens, each weighted by 2 to the half-lives from `_from` to when it was given: later ones count for more,
        which is the same as that earlier ones fade."""
        self._from: Seconds = 0.0

    def __len__(self) -> int:
        return len(self._claims)

    def of(self, fairness_id: str) -> float:
        """To be compared with those of others only; 0: nothing is known."""
        return self._claims.get(fairness_id, 0.0)

    def tokens(self, fairness_id: str, *, now: Seconds) -> float:
        """The same in tokens, as of now."""
        return self.of(fairness_id) / self._weight(now)

    def sent(self, request: Request, *, now: Seconds) -> None:
        """A request goes to a pod: charge what it may take."""
        self._add(request.fairness_id or "", float(_reckoned(request)), at=now)

    def ended(self, request: Request, event: RequestEnded, *, sent: Seconds) -> None:
        """A request that was sent at `sent` ended: what it really took, where that is known, takes the place of it."""
        prompt = event.prompt_tokens if event.prompt_tokens is not None else request.prompt_tokens or 0
        output = event.output_tokens if event.output_tokens is not None else request.max_tokens or 0
        more = prompt + output - _reckoned(request)
        if more:
            self._add(request.fairness_id or "", float(more), at=sent)

    def lift(self, fairness_id: str, *, to: float) -> None:
        """Who begins to wait has no claim from the time in which it did not."""
        if self.of(fairness_id) < to:
            self._set(fairness_id, to)

    def _add(self, fairness_id: str, tokens: float, *, at: Seconds) -> None:
        if (at - self._from) / HALF_LIFE > _FARTHEST:
            self._write_anew(at)
        self._set(fairness_id, max(0.0, self.of(fairness_id) + tokens * self._weight(at)))

    def _set(self, fairness_id: str, claim: float) -> None:
        if fairness_id not in self._claims and len(self._claims) >= MOST:
            ranked = sorted(self._claims, key=self._claims.__getitem__)
            for name in ranked[: max(1, MOST // 8)]:
                del self._claims[name]
        self._claims[fairness_id] = claim

    def _weight(self, at: Seconds) -> float:
        # Longer ago than claims are kept it is as good as nothing.
        return float(2.0 ** min(_MOST_TIMES, max(-_FARTHEST, (at - self._from) / HALF_LIFE)))

    def _write_anew(self, now: Seconds) -> None:
        weight = self._weight(now)
        claims = {name: claim / weight for name, claim in self._claims.items()}
        self._claims = {name: claim for name, claim in claims.items() if claim >= _LEAST}
        self._from = now


def _reckoned(request: Request) -> Tokens:
    """What a request may take, as far as it says."""
    return (request.prompt_tokens or 0) + (request.max_tokens or 0)
