"""What the doctor says: findings with remedies, as values.

Not here: what leads to them (see the checks beside), how they are shown (see `cli.doctor`).
"""

from enum import StrEnum

import msgspec

from lorapick.model.units import AdapterName, PodName


class Urgency(StrEnum):
    """What a finding asks of whoever reads it."""

    PAGE = "page"
    """Users are harmed: act now."""
    WARN = "warn"
    """It will harm them, or hides that it does."""
    INFO = "info"
    """Good to know."""


ORDER = (Urgency.PAGE, Urgency.WARN, Urgency.INFO)


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that helps."""

    action: str
    price: str
    """What it costs, or `unknown` and why."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    check: str
    """Name of the check: stable, for scripts."""
    urgency: Urgency
    what: str
    """In one sentence."""
    arithmetic: tuple[str, ...] = ()
    """Figures beside their bounds."""
    remedies: tuple[Remedy, ...] = ()
    """The cheapest first."""
    weight: float = 0.0
    """Among findings of one urgency those of more weight come first; about: how far beyond its bound."""
    pods: tuple[PodName, ...] = ()
    adapters: tuple[AdapterName, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found."""

    findings: tuple[Finding, ...] = ()
    """Worst first."""
    figures: tuple[str, ...] = ()
    """What was looked at, also where nothing is wrong."""
    unknown: tuple[str, ...] = ()
    """What could not be looked at, and why."""

    @property
    def pages(self) -> bool:
        """Whether somebody should act now."""
        return any(finding.urgency is Urgency.PAGE for finding in self.findings)
