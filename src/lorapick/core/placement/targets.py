"""Targets: one adapter that should hold a slot of one pod, and why. What every placement policy yields.

Not here: policies (see `core.placement.controller`), who accepts a target (see `core.placement.guard`).
"""

from typing import NamedTuple

from lorapick.model.placement import Why
from lorapick.model.units import AdapterName

ORDER: dict[Why, int] = {why: place for place, why in enumerate(Why)}
"""Earlier ones go first."""
INSISTED: dict[Why, None] = dict.fromkeys(
    (Why.PIN, Why.PAIR, Why.OPERATOR, Why.HANDOVER, Why.SCHEDULE, Why.TRIGGER, Why.GROUP, Why.WARM_UP, Why.REGISTER)
)
"""Somebody asked for it, or a pod needs it: not counted against the churn budget."""


class Target(NamedTuple):
    """One adapter on one pod."""

    row: int
    adapter: AdapterName
    why: Why
    name: str = ""
    """Which schedule, event or group it is."""
