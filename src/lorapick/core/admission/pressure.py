"""In which pressure tier a pod is [R3.8].

In: a share in [0, 1] from each scrape, the tier before. Out: the tier. Not here: what pressure is made of
(see `core.podload`), what each tier forbids (see `core.admission.gates`).
"""

from enum import IntEnum

from lorapick.model.settings import PressureSettings
from lorapick.model.units import Ratio


class Pressure(IntEnum):
    """Rising."""

    NONE = 0
    SOFT = 1
    """No new loads: requests go where their adapter is, or wait."""
    HARD = 2
    """Idle adapters leave where that frees memory; requests go elsewhere when they can."""
    CRITICAL = 3
    """Nobody may come."""

    @property
    def word(self) -> str:
        """Lower-case name, as people read it."""
        return self.name.lower()


_NONE = Pressure.NONE


def tier_of(pressure: Ratio, before: Pressure, *, bounds: PressureSettings) -> Pressure:
    """The tier now. A tier is left only `hysteresis` below where it begins, so that a pod at an edge does not flap."""
    if not bounds.enabled:
        return _NONE
    if before is _NONE and pressure < bounds.soft <= bounds.hard <= bounds.critical:
        return _NONE  # most pods, most of the time
    edges = (0.0, bounds.soft, bounds.hard, bounds.critical)
    reached = max(tier for tier in Pressure if pressure >= edges[tier])
    if reached >= before:
        return reached
    held = max(tier for tier in Pressure if pressure >= edges[tier] - (bounds.hysteresis if tier else 0.0))
    return min(before, held)
