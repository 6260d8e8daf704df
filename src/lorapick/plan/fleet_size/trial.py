"""One try of a scenario: is its P95 within a limit, and is hardly anything lost?

In: a scenario, a policy, a seed, limits. Out: an `Outcome`. Not here: what is tried next (see `search`, and
`plan.capacity` for rates), what a run is (see `sim.run`).
"""

from collections.abc import Callable

import msgspec

from lorapick.model.units import Ratio, Seconds
from lorapick.sim.run import Options, run
from lorapick.sim.scenario import Scenario

MOST_LOST = 0.01
"""Share of requests that may be lost, unless somebody says otherwise."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What is still good enough."""

    p95: Seconds
    lost: Ratio = MOST_LOST


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one try."""

    arrivals: int
    rate: float
    """Arrivals per second."""
    p95: Seconds | None
    """Of the requests that were served; None: none was."""
    lost: Ratio
    """Share of arrivals that were not served, apart from those in flight."""

    def keeps(self, limits: Limits) -> bool:
        """Whether both limits are kept. Refusals do not make a fleet fast: who is refused is lost."""
        return self.p95 is not None and self.p95 <= limits.p95 and self.lost <= limits.lost


def tried(scenario: Scenario, *, policy: str, seed: int, progress: Callable[[float], None] | None = None) -> Outcome:
    """Play the scenario once.

    Raises:
        As `sim.run.run`.
    """
    # The fewest possible loads are no part of the answer, and reckoning them takes time.
    whole = run(scenario, policy=policy, seed=seed, options=Options(progress=progress, bounds=False)).whole
    return Outcome(
        arrivals=whole.arrivals,
        rate=whole.arrivals / whole.length,
        p95=whole.latency.p95,
        lost=(whole.failed + whole.rejected + whole.abandoned) / whole.arrivals if whole.arrivals else 0.0,
    )
