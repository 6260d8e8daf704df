"""What changed in who is asked for: groups of adapters that appeared together, as values.

Not here: how they are found (see `core.signals.shifts`), words (see `core.doctor`).
"""

from enum import StrEnum

import msgspec

from lorapick.model.units import AdapterName, Ratio, Seconds


class ShiftKind(StrEnum):
    """What happened."""

    SPLIT = "split"
    """The new ones took part of the old ones' traffic: an A/B test, or a rollout under way."""
    REPLACED = "replaced"
    """The new ones took it all."""
    ADDED = "added"
    """The new ones came on top; nobody lost anything."""
    UNCLEAR = "unclear"
    """Too early to say."""


class ShiftPair(msgspec.Struct, frozen=True, kw_only=True):
    """An old adapter and a new one that took of its traffic. Rates are in requests per second."""

    old: AdapterName
    new: AdapterName
    before: float
    """Rate of the old one before."""
    old_now: float
    new_now: float


class Shift(msgspec.Struct, frozen=True, kw_only=True):
    """One group of new adapters."""

    kind: ShiftKind
    since: Seconds
    """First request for any of them, on the driver's clock."""
    new: tuple[AdapterName, ...]
    """Most asked for first."""
    pairs: tuple[ShiftPair, ...] = ()
    """Largest first. Which of several alike is whose is a guess; the group is not."""
    share: Ratio = 0.0
    """Of all requests now, those for the new ones."""
    lost: Ratio = 0.0
    """Of all requests now, those that the old ones of the pairs lack, measured by what they had before."""
    taken: Ratio | None = None
    """Of the pairs' traffic now, what the new ones have."""
    evidence: float = 0.0
    """Nats for a split against traffic on top."""
