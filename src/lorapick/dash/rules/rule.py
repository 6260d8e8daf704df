"""One alert rule.

In: nothing. Out: values. Not here: the rules themselves (see `dash.rules.alerts`, `dash.rules.around`).
"""

from typing import NamedTuple

from lorapick.model.units import Seconds

PAGE, WARN, INFO = "page", "warn", "info"


class Rule(NamedTuple):
    """One alert rule. Texts may hold Prometheus's templates."""

    name: str
    alert: str
    """Name of the alert, and of its runbook."""
    severity: str
    expr: str
    wait: Seconds
    """For how long `expr` must hold."""
    summary: str
    description: str
