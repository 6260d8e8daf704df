"""What the gate is told and what it says.

In: nothing. Out: values. Not here: any judgement.
"""

from enum import StrEnum

import msgspec

from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.model.units import AdapterName, Ratio, Seconds
from lorapick.plan.prediction.values import Demand, FleetShape, Prediction


class Level(StrEnum):
    """How bad something is; the worst of all findings decides."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of [R1.8]. Those that an alert has too are the alert's."""

    active_per_slot: float = 0.8
    """Active adapters / slots of the cluster above which there is no room for more: warns."""
    residency: Seconds = 300.0
    """Mean residency below which adapters leave too soon: warns."""
    swap_rate_healthy: float = 0.1
    """Swaps per second and pod above which it warns."""
    swap_rate: float = 0.5
    """Above which it fails."""
    hit_ratio: Ratio = 0.8
    """Below which it fails."""
    times_today: float = 2.0
    """Swap rate / today's, from which on it fails, if it is above `swap_rate_healthy` too."""
    latency_p95: Seconds | None = None
    """What users were promised, above which it fails; None: nothing."""


def rules_of(alerts: AlertSettings, slo: SloSettings) -> Rules:
    """The bounds that a configuration has."""
    return Rules(
        active_per_slot=alerts.active_per_slot,
        residency=alerts.residency,
        swap_rate=alerts.swap_rate,
        hit_ratio=alerts.hit_ratio,
        latency_p95=slo.latency_p95,
    )


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet and what is asked of it."""

    fleet: FleetShape
    demand: tuple[Demand, ...]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, and what became of it."""

    rule: str
    level: Level
    message: str
    """In words: value, limit."""
    adapter: AdapterName | None = None
    """Whose fault it is; None: the fleet's as a whole."""
    unsure: bool = False
    """Whether the figure is nearer to its bound than the prediction may be off."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A way to do it otherwise, at its smallest."""

    kind: str
    """`policy`, `policy+slots`, `pins`, `pins+slots`, `slots`, `slots_for_all`, `pods`, `fewer`."""
    words: str
    costs: str
    """What it costs, in words."""
    passes: bool
    level: Level
    """Of what would be left."""
    prediction: Prediction
    plan: Plan
    failing: tuple[Finding, ...] = ()
    """Rules that would still fail."""
    unsure: bool = False
    """Whether its hits are nearer to their bound than the prediction may be off."""

    @property
    def shortfall(self) -> tuple[float, ...]:
        """How far it is from passing; smaller is closer. Rules that fail count first, then misses, then swaps."""
        found = self.prediction
        return (len(self.failing), 1.0 - (1.0 if found.hit_ratio is None else found.hit_ratio), found.worst_swap_rate)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """All that the gate says."""

    level: Level
    today: Prediction | None
    """None: nobody said what is active today."""
    after: Prediction
    added: tuple[AdapterName, ...]
    removed: tuple[AdapterName, ...]
    findings: tuple[Finding, ...]
    """Every rule, in the order of the page, then faults of adapters."""
    changes: tuple[Change, ...] = ()
    """Cheapest first; empty when nothing fails that one of them could mend."""

    @property
    def cheapest(self) -> Change | None:
        """That would pass; None: nothing fails, or none of them does."""
        return next((change for change in self.changes if change.passes), None)

    @property
    def closest(self) -> Change | None:
        """That comes closest to passing where none passes; None: one does, or none was looked for."""
        if self.cheapest is not None or not self.changes:
            return None
        return min(self.changes, key=lambda change: change.shortfall)
