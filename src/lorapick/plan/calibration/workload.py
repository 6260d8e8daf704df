"""The requests of a measured run, and the client that sent them.

In: a run, a seed. Out: arrivals with adapter and lengths, and when the client can send.
Not here: what a pod does with them (`simulated`).

Arrivals are Poisson per adapter. Lengths are those of single ShareGPT turns: a table has only their means, so both are
log-normal with the run's means, cut to the client's filter (prompts of 4 to 1024 tokens, 2048 together). Coefficients
of variation: 1 for prompts; 0.76 for answers, with which a running request holds as many KV tokens on average as in the
runs whose KV memory was full.

The load generator was one process on the engine's host that opened a connection per request and waited for none. Its
ports come from the range that Linux gives out by default, 32,768 to 60,999, and one whose connection has closed stays
taken for a minute (TIME_WAIT). So never more than 28,232 requests were in flight or had ended within that minute, and
further ones could not be sent. The tables show it: in overloaded runs with a slot for every adapter, where requests are
served as they come, the longest waits are (28,232 - running - answers of a minute) / answers per second.
"""

from bisect import bisect_left
from collections import deque
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from lorapick.model.units import Seconds, Tokens
from lorapick.plan.calibration.runs import Run

PORTS = 28_232
LINGER: Seconds = 60.0
PROMPT_SPREAD = 1.0
OUTPUT_SPREAD = 0.76
SHORTEST: Tokens = 4
LONGEST_PROMPT: Tokens = 1024
LONGEST: Tokens = 2048


class Arrivals:
    """What would come if the client could always send; parallel lists, by time.

    Runs with the same rates and adapters get the same chance, so what sets them apart is their slots and rank.
    """

    __slots__ = ("adapters", "outputs", "prompts", "times")

    def __init__(self, run: Run, seconds: Seconds, *, seed: int) -> None:
        chance = np.random.default_rng([seed, run.adapters, *(round(rate * 1e6) for rate in run.rates)])
        rates = np.array([run.rate_of(adapter) for adapter in range(run.adapters)])
        offered = float(rates.sum())
        count = int(chance.poisson(offered * seconds))
        prompts = _lengths(run.prompt_tokens, spread=PROMPT_SPREAD, longest=LONGEST_PROMPT, count=count, chance=chance)
        outputs = _lengths(
            run.output_tokens, spread=OUTPUT_SPREAD, longest=LONGEST - SHORTEST, count=count, chance=chance
        )
        self.times: list[Seconds] = np.sort(chance.uniform(0.0, seconds, count)).tolist()
        self.adapters: list[int] = chance.choice(run.adapters, count, p=rates / offered).tolist()
        self.prompts: list[Tokens] = prompts.tolist()
        self.outputs: list[Tokens] = np.minimum(outputs, LONGEST - prompts).tolist()

    def first_from(self, t: Seconds, index: int) -> int:
        """Index of the first arrival at or after `t`, of those from `index` on."""
        return bisect_left(self.times, t, lo=index)


def _lengths(
    mean: float, *, spread: float, longest: Tokens, count: int, chance: np.random.Generator
) -> NDArray[np.int64]:
    """Cut log-normal numbers whose mean is right after the cut."""
    deviation = sqrt(log(1.0 + spread * spread))
    normal = chance.standard_normal(max(count, 1000))
    middle = mean
    for _ in range(8):
        numbers = np.clip(np.rint(np.exp(log(middle) - deviation**2 / 2 + deviation * normal)), SHORTEST, longest)
        middle *= mean / float(numbers.mean())
    return numbers[:count].astype(np.int64)


class Client:
    """The ports of the load generator."""

    __slots__ = ("_lingering", "in_flight")

    def __init__(self) -> None:
        self.in_flight = 0
        self._lingering: deque[Seconds] = deque()
        """When ports become free again, in order."""

    def sent(self) -> None:
        """A request went out."""
        self.in_flight += 1

    def answered(self, t: Seconds) -> None:
        """A request was answered; times never go back."""
        self.in_flight -= 1
        self._lingering.append(t + LINGER)

    def free_at(self, now: Seconds) -> Seconds | None:
        """When the next request can be sent: `now`, or later; None: not before one has been answered."""
        lingering = self._lingering
        while lingering and lingering[0] <= now:
            lingering.popleft()
        if self.in_flight + len(lingering) < PORTS:
            return now
        return lingering[0] if lingering else None
