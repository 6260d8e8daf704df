"""The rules file as Prometheus loads it.

In: a configuration's thresholds, where runbooks are. Out: the document, ready for YAML. Not here: the rules themselves
(see `dash.rules.records`, `dash.rules.alerts`), writing files (see the command).
"""

from typing import Any

from lorapick.dash.rules.alerts import PICKER_ABSENT, RULES_ONLY, rules
from lorapick.dash.rules.records import records
from lorapick.dash.rules.rule import Rule
from lorapick.dash.rules.thresholds import Thresholds, duration
from lorapick.dash.runbooks import first_steps
from lorapick.model.alerts import Alert

__all__ = ["RULES_ONLY", "Rule", "alert_words", "rules_document"]


def alert_words() -> tuple[str, ...]:
    """Names of all alerts, each with a runbook: the picker's own, then those of the rules alone."""
    return (*(str(alert) for alert in Alert), *RULES_ONLY)


def rules_document(thresholds: Thresholds, *, runbooks: str) -> dict[str, Any]:
    """Two groups: records, and alerts which rest on them. `runbooks` is the URL above the runbooks' names."""
    recorded = [{"record": name, "expr": expr} for name, expr in records(thresholds)]
    alerts = [_alert(rule, runbooks.rstrip("/")) for rule in rules(thresholds)]
    return {"groups": [{"name": "lorapick-records", "rules": recorded}, {"name": "lorapick-alerts", "rules": alerts}]}


def _alert(rule: Rule, runbooks: str) -> dict[str, Any]:
    return {
        "alert": rule.name,
        "expr": rule.expr,
        **({"for": duration(rule.wait)} if rule.wait else {}),
        "labels": {"severity": rule.severity, "alert": str(rule.alert)},
        "annotations": {
            "summary": rule.summary,
            "description": rule.description,
            "runbook_url": f"{runbooks}/{rule.alert}",
            # Whoever is told that there is no picker cannot open a page that the picker serves.
            **({"first_steps": first_steps(rule.alert)} if rule.alert == PICKER_ABSENT else {}),
        },
    }
